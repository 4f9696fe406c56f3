import Foundation
import PinfoldWire
import Testing

/// One captured connection with its facts. The files lie beside the test targets, see Tests/Fixtures/Handshakes.
struct Capture: CustomTestStringConvertible, Sendable {
  let name: String
  let facts: Facts

  var testDescription: String { name }

  private static let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Fixtures/Handshakes")

  init(_ name: String) throws {
    self.name = name
    let data = try Data(contentsOf: Self.folder.appending(path: "\(name)/facts.json"))
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    facts = try decoder.decode(Facts.self, from: data)
  }

  /// Every folder, in order of name.
  static let all: [Capture] = {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path())) ?? []
    return names.filter { !$0.hasSuffix(".md") && !$0.hasSuffix(".pem") }.sorted().compactMap { try? Capture($0) }
  }()

  /// Those whose client begins with a TLS record and whose hello is not SSL 3.0.
  static let withHello = all.filter { $0.facts.clientHello != nil && $0.facts.version != "SSL3.0" }

  /// Those whose ServerHello is one a client of today reads.
  static let withServerHello = withHello.filter { $0.facts.serverHello != nil }

  var client: [UInt8] { bytes("client.bin") }
  var server: [UInt8] { bytes("server.bin") }

  private func bytes(_ file: String) -> [UInt8] {
    guard let data = try? Data(contentsOf: Self.folder.appending(path: "\(name)/\(file)")) else { return [] }
    return [UInt8](data)
  }

  /// The certificates of chain.pem in DER, leaf first.
  var chain: [[UInt8]] {
    let text = String(decoding: bytes("chain.pem"), as: UTF8.self)
    return text.components(separatedBy: "-----BEGIN CERTIFICATE-----").dropFirst().compactMap { part in
      let body = part.components(separatedBy: "-----END")[0].filter { !$0.isWhitespace }
      return Data(base64Encoded: body).map { [UInt8]($0) }
    }
  }

  /// The hello, read from the client's bytes at once.
  func hello() throws -> ClientHello {
    var reader = ClientHelloReader()
    guard case .hello(let hello) = reader.receive(client.span) else { throw Unexpected() }
    return hello
  }

  /// The second hello of a retry.
  func secondHello(after first: ClientHello) throws -> ClientHello {
    var reader = ClientHelloReader(after: first)
    guard case .hello(let hello) = reader.receive(Array(client[first.end...]).span) else { throw Unexpected() }
    return hello
  }

  /// What the server's bytes amount to, fed in pieces of `size` bytes, a retry answered with the client's second hello.
  func flight(size: Int = .max, upTo end: Int = .max) throws -> ServerFlightReader.Event {
    let first = try hello()
    var reader = ServerFlightReader(answering: first)
    let bytes = server.prefix(end)
    var index = 0
    var event = ServerFlightReader.Event.incomplete
    while index < bytes.count {
      let next = size < bytes.count - index ? index + size : bytes.count
      event = reader.receive(Array(bytes[index..<next]).span)
      if case .helloRetryRequest = event { event = reader.secondHello(try secondHello(after: first)) }
      index = next
    }
    return event
  }
}

/// A machine answered something else than the test is about.
struct Unexpected: Error {}
