import Foundation
import PinfoldModel
import PinfoldTLS
import PinfoldWire
import Testing

/// One captured connection, as far as certificates and signatures go. See Tests/Fixtures/Handshakes.
struct Capture: CustomTestStringConvertible, Sendable {
  struct Facts: Decodable, Sendable {
    struct Scheme: Decodable, Sendable { var id: String? }
    struct Sent: Decodable, Sendable {
      var spkiSha256: String
      var sha256: String
    }
    var outcome: String
    var version: String?
    var leafSpkiSha256: String?
    var leafSha256: String?
    var rawPublicKeySpkiSha256: String?
    var chainVerifies: Bool?
    var nameMatches: Bool?
    var certificates: [Sent]?
    var signatureScheme: Scheme?
    var keyProof: String?
  }

  let name: String
  let facts: Facts
  var testDescription: String { name }

  static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Fixtures/Handshakes")
  static let trustedPath = folder.appending(path: "ca.pem").path()
  static let host = HostName("api.pinfold.test")
  /// Within the validity of everything captured: 2026-11-21.
  static let now = Timestamp(seconds: 1_795_219_200)

  init(_ name: String) throws {
    self.name = name
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    facts = try decoder.decode(
      Facts.self, from: Data(contentsOf: Self.folder.appending(path: "\(name)/facts.json")))
  }

  static let all: [Capture] = {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path())) ?? []
    return names.filter { !$0.contains(".") || $0.contains("-") }.sorted().compactMap { try? Capture($0) }
  }()
  static let withChain = all.filter { !$0.chain.isEmpty }
  /// Full handshakes of TLS 1.0–1.2 whose key proves itself.
  static let inBand = all.filter {
    ["TLS1.0", "TLS1.1", "TLS1.2"].contains($0.facts.version) && $0.facts.outcome == "full"
      && $0.name != "ssl2-hello-java-openssl" && ["server_key_exchange", "key_transport"].contains($0.facts.keyProof)
      && $0.name != "tls12-openssl-dsa" && $0.name != "tls12-openssl-rsa-psk"
  }
  static let signed = inBand.filter { $0.facts.keyProof == "server_key_exchange" }

  var chainPath: String { Self.folder.appending(path: "\(name)/chain.pem").path() }
  /// The certificates of chain.pem, in their order.
  var chain: [[UInt8]] {
    let text = String(decoding: bytes("chain.pem"), as: UTF8.self)
    return text.components(separatedBy: "-----BEGIN CERTIFICATE-----").dropFirst().compactMap { part in
      let body = part.components(separatedBy: "-----END")[0].filter { !$0.isWhitespace }
      return Data(base64Encoded: body).map { [UInt8]($0) }
    }
  }

  func bytes(_ file: String) -> [UInt8] {
    (try? Data(contentsOf: Self.folder.appending(path: "\(name)/\(file)"))).map { [UInt8]($0) } ?? []
  }

  /// Hello and server flight as the wire layer reads them.
  func flight() throws -> (client: ClientHello, flight: ServerFlight) {
    var helloReader = ClientHelloReader()
    guard case .hello(let hello) = helloReader.receive(bytes("client.bin").span) else { throw Unexpected() }
    var reader = ServerFlightReader(answering: hello)
    guard case .tls12Flight(let flight) = reader.receive(bytes("server.bin").span) else { throw Unexpected() }
    return (hello, flight)
  }
}

/// Something other happened than the test is about.
struct Unexpected: Error {}
