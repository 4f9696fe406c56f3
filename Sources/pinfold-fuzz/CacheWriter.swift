import Glibc
import PinfoldSupply

/// Writes records of the sealed cache without end, for a test that kills it: after each a line with name and number.
///
/// The contents of number *n* are as long as *n* tells and made of its digits, so that a reader can tell a whole record
/// from a half one. Records that cannot be kept are said too, and nothing ends for that. It ends when nobody listens any
/// more: a test that was interrupted leaves no writer behind, which blocks the signals that the test blocked.
enum CacheWriter {
  static let names = (0..<8).map { "host-\($0).example.com:443" }

  /// What record number `number` holds.
  static func contents(_ number: Int) -> [UInt8] {
    let digits = Array("\(number) ".utf8)
    return (0..<(digits.count + number &* 7919 % 70_000)).map { digits[$0 % digits.count] }
  }

  /// Whether these are the contents of a number, and of which.
  static func number(of contents: [UInt8]) -> Int? {
    let digits = contents.prefix { $0 != 0x20 }
    guard let number = Int(String(decoding: digits, as: UTF8.self)), Self.contents(number) == contents else {
      return nil
    }
    return number
  }

  /// Starts at `first`; `count` records, by default until nobody listens.
  static func run(_ directory: String, first: Int, count: Int = .max) throws {
    // A file-size limit is to be an error of the write, as it is in the proxy.
    signal(SIGXFSZ, SIG_IGN)
    var warnings: [String] = []
    let cache = try SealedCache(stateDirectory: directory, keyFile: nil, warnings: &warnings)
    cache.removeLeftovers()
    for number in first..<(count == .max ? .max : first &+ count) {
      let name = names[number % names.count]
      let line: String
      do throws(CacheError) {
        try cache.write(.pins, name, contents(number))
        line = "kept \(name) \(number)\n"
      } catch {
        line = "lost \(name) \(number): \(error)\n"
      }
      guard say(line) else { return }
    }
  }

  /// In one write, past every buffer: what was said before the end was said whole. `false` when nobody took it.
  private static func say(_ line: String) -> Bool {
    let bytes = Array(line.utf8)
    return unsafe bytes.withUnsafeBytes { unsafe write(STDOUT_FILENO, $0.baseAddress, $0.count) } == bytes.count
  }
}
