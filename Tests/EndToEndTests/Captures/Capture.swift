import Foundation
import Testing

/// One captured connection of Tests/Fixtures/Handshakes: both sides' bytes and the facts about them.
struct Capture: CustomTestStringConvertible, Sendable {
  let name: String
  var facts: CaptureFacts
  /// Client to server, from the first byte of the ClientHello.
  var client: [UInt8]
  /// Server to client.
  var server: [UInt8]
  /// The key-log lines that the application wrote; empty where there were none.
  var keyLog: String
  /// Host and SNI of all captures.
  static let host = "api.pinfold.test"

  var testDescription: String { name }

  private static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "Fixtures/Handshakes")

  /// The roots to trust.
  static let rootFile = folder.appending(path: "ca.pem").path

  private init(_ name: String) throws {
    let folder = Self.folder.appending(path: name)
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    self.name = name
    facts = try decoder.decode(CaptureFacts.self, from: Data(contentsOf: folder.appending(path: "facts.json")))
    client = [UInt8](try Data(contentsOf: folder.appending(path: "client.bin")))
    server = [UInt8](try Data(contentsOf: folder.appending(path: "server.bin")))
    keyLog = (try? String(contentsOf: folder.appending(path: "keylog.txt"), encoding: .utf8)) ?? ""
  }

  /// Every folder in order of name. Those that cannot be read are missing: a test counts them.
  static let all: [Capture] = {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
    return names.sorted().compactMap { try? Capture($0) }
  }()

  static func named(_ name: String) throws -> Capture {
    guard let capture = all.first(where: { $0.name == name }) else { throw HarnessError("no capture \(name)") }
    return capture
  }

  /// Whether TLS 1.3 was agreed on.
  var isTLS13: Bool { facts.version == "TLS1.3" }

  /// Client bytes that may reach the server before a verdict: the hello, after a retry the second one as well.
  var helloEnd: Int {
    facts.helloRetry?.clientHello2.end ?? facts.clientHello?.end ?? facts.ssl2Hello?.end ?? client.count
  }

  /// Whether the client used the session that it was given: sent application data behind its ChangeCipherSpec.
  var clientSentData: Bool {
    var rest = client[...]
    while let length = TLSRecords.firstLength(Array(rest.prefix(5))), rest.count >= length {
      if rest.first == 23 { return true }
      rest = rest.dropFirst(length)
    }
    return false
  }

  /// How many client bytes the recorder had seen before each stretch of server bytes, and the other way round: whoever
  /// plays a side waits for that much of the other one.
  func turns(of side: String) -> [(range: Range<Int>, after: Int)] {
    var own = 0
    var other = 0
    var turns: [(range: Range<Int>, after: Int)] = []
    for step in facts.flow {
      if step.side == side {
        turns.append((own..<own + step.count, other))
        own += step.count
      } else {
        other += step.count
      }
    }
    return turns
  }
}
