import FoundationEssentials
import PinfoldModel
import PinfoldWire
import Testing

@testable import PinfoldTLS

/// One recorded handshake of Tests/Fixtures/Handshakes (its README says what each file is).
struct Capture: CustomTestStringConvertible, Sendable {
  let name: String
  let client: [UInt8]
  let server: [UInt8]
  let facts: Facts
  let keyLog: String

  var testDescription: String { name }

  /// The facts these tests look at.
  struct Facts: Decodable, Sendable {
    struct Certificate: Decodable, Sendable {
      let sha256: String
      let spkiSha256: String
    }
    struct Flight: Decodable, Sendable {
      let start: Int
      let end: Int
    }
    let outcome: String
    let version: String?
    let leafSpkiSha256: String?
    let leafSha256: String?
    let rawPublicKeySpkiSha256: String?
    let certificates: [Certificate]?
    let certificateCompression: Compression?
    let serverFlight: Flight?
    let serverMessagesEncrypted: [String]?
    let alpn: String?
    let helloRetryRequest: Bool?

    /// The key shown, in a certificate or by itself.
    var shownKey: String? { leafSpkiSha256 ?? rawPublicKeySpkiSha256 }
  }

  /// Written as a name or as an object, depending on the case.
  struct Compression: Decodable, Sendable {
    init(from decoder: any Decoder) throws {}
  }

  private static let root: String = {
    var parts = #filePath.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    parts.removeLast(2)
    return parts.joined(separator: "/") + "/Fixtures/Handshakes"
  }()

  /// All cases by name.
  static let all: [Capture] = {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: root)) ?? []
    return names.sorted().compactMap { Capture($0) }
  }()

  /// The TLS 1.3 cases whose secrets were written down.
  static let openable = all.filter { !$0.keyLog.isEmpty }

  /// The cases whose client offers TLS 1.3 and whose hello can be read.
  static let hellos13 = all.filter { (try? $0.hello())?.offersTLS13 == true }

  static func named(_ name: String) throws -> Capture { try #require(all.first { $0.name == name }) }

  private static var decoder: JSONDecoder {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return decoder
  }

  init?(_ name: String) {
    let folder = Self.root + "/" + name
    guard let client = FileManager.default.contents(atPath: folder + "/client.bin"),
      let server = FileManager.default.contents(atPath: folder + "/server.bin"),
      let facts = FileManager.default.contents(atPath: folder + "/facts.json"),
      let decoded = try? Self.decoder.decode(Facts.self, from: facts)
    else { return nil }
    self.name = name
    self.client = Array(client)
    self.server = Array(server)
    self.facts = decoded
    keyLog =
      FileManager.default.contents(atPath: folder + "/keylog.txt").map { String(decoding: $0, as: UTF8.self) } ?? ""
  }

  struct Unreadable: Error {}

  /// The client's first hello.
  func hello() throws -> ClientHello {
    var reader = ClientHelloReader()
    guard case .hello(let hello) = reader.receive(client.span) else { throw Unreadable() }
    return hello
  }

  /// The clear messages, a retry included.
  func hellos() throws -> Hellos13 {
    let first = try hello()
    var reader = ServerFlightReader(answering: first)
    switch reader.receive(server.span) {
    case .tls13(let answer): return Hellos13(first: first, server: answer)
    case .helloRetryRequest(let request):
      let second = try secondHello(after: first)
      guard case .tls13(let answer) = reader.secondHello(second) else { throw Unreadable() }
      return Hellos13(first: first, retry: (request, second), server: answer)
    default: throw Unreadable()
    }
  }

  func secondHello(after first: ClientHello) throws -> ClientHello {
    var reader = ClientHelloReader(after: first)
    guard case .hello(let second) = reader.receive(Array(client[first.end...]).span) else { throw Unreadable() }
    return second
  }

  /// A secret by its key-log label.
  func secret(_ label: String) throws -> SecretBytes {
    let line = try #require(keyLog.split(separator: "\n").first { $0.hasPrefix(label + " ") })
    let digits = try #require(line.split(separator: " ").last)
    var bytes = try #require(Hex.decode(digits))
    return SecretBytes(taking: &bytes)
  }

  /// An opener with the right secret.
  func opener(_ hellos: Hellos13, secret: SecretBytes? = nil) throws -> FlightOpener {
    try FlightOpener(
      secret: secret ?? self.secret("SERVER_HANDSHAKE_TRAFFIC_SECRET"), hellos: hellos,
      now: Timestamp(seconds: 1_795_219_200))
  }
}
