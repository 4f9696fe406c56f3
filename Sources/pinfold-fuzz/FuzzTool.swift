import FoundationEssentials
import Glibc

#if !FUZZ
  /// What the program is without libFuzzer: it replays inputs, and writes the first ones.
  @main enum FuzzTool {
    private static let usage = """
      usage: pinfold-fuzz replay DIR…             feeds each file of DIR to the target DIR is named after
             pinfold-fuzz seed HANDSHAKES OUT     writes first inputs made of captured handshakes to OUT/TARGET
             pinfold-fuzz cache DIR FIRST [COUNT] writes COUNT cache records (without end) to DIR, to be killed meanwhile
      """

    static func main() {
      let arguments = CommandLine.arguments.dropFirst()
      do {
        switch (arguments.first, arguments.count) {
        case ("replay", 2...): try replay(Array(arguments.dropFirst()))
        case ("seed", 3): try Seeds(handshakes: arguments[2]).write(to: arguments[3])
        case ("cache", 3), ("cache", 4):
          guard let first = Int(arguments[3]), let count = arguments.count == 4 ? Int(arguments[4]) : .max else {
            fallthrough
          }
          try CacheWriter.run(arguments[2], first: first, count: count)
        default:
          print(usage)
          exit(64)
        }
      } catch {
        print(error)
        exit(1)
      }
    }

    private static func replay(_ folders: [String]) throws {
      for folder in folders {
        let count = try Corpus.replay(folder) { print("\($0): \($1)") }
        print("\(folder): \(count) inputs")
      }
    }
  }
#endif
