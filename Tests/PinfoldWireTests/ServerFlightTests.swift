import PinfoldModel
import PinfoldWire
import Testing

/// What a flight of TLS 1.2 may not look like, and where that is seen.
struct FlightRow: CustomTestStringConvertible, Sendable {
  let testDescription: String
  let reason: Reason
  let detail: String
  /// Makes the flight of the four messages ServerHello, Certificate, ServerKeyExchange, ServerHelloDone.
  let make: @Sendable ([[UInt8]]) -> [UInt8]

  init(
    _ name: String, _ detail: String, _ reason: Reason = .malformedHandshake,
    _ make: @escaping @Sendable ([[UInt8]]) -> [UInt8]
  ) {
    testDescription = name
    self.detail = detail
    self.reason = reason
    self.make = make
  }
}

@Suite struct ServerFlightTests {
  private static let order = "a handshake message out of order"
  private static let past = "a field runs past the end of what holds it"
  private static let behind = "bytes lie behind the last field"

  private static func one(_ messages: [UInt8]...) -> [UInt8] { Wire.handshake(messages.flatMap { $0 }) }

  /// A ServerKeyExchange on X25519 with a scheme of two bytes.
  private static func exchange(
    curve: [UInt8] = [3, 0, 29], key: [UInt8] = Array(repeating: 1, count: 32), scheme: [UInt8] = [4, 3],
    signature: [UInt8] = [1], trailing: [UInt8] = []
  ) -> [UInt8] {
    Wire.message(12, curve + Wire.vector(1, key) + scheme + Wire.vector(2, signature) + trailing)
  }

  static let rows = [
    FlightRow("no Certificate", order) { one($0[0], $0[2], $0[3]) },
    FlightRow("no ServerKeyExchange", order) { one($0[0], $0[1], $0[3]) },
    FlightRow("the exchange before the Certificate", order) { one($0[0], $0[2], $0[1], $0[3]) },
    FlightRow("a second Certificate", order) { one($0[0], $0[1], $0[1], $0[2], $0[3]) },
    FlightRow("a second Certificate behind the exchange", order) { one($0[0], $0[1], $0[2], $0[1], $0[3]) },
    FlightRow("a second ServerKeyExchange", order) { one($0[0], $0[1], $0[2], $0[2], $0[3]) },
    FlightRow("a second ServerHello", order) { one($0[0], $0[0], $0[1], $0[2], $0[3]) },
    FlightRow("a CertificateStatus nobody promised", order) {
      one($0[0], $0[1], Wire.message(22, [1, 0, 0, 1, 0]), $0[2], $0[3])
    },
    FlightRow("a HelloRequest", order) { one($0[0], Wire.message(0, []), $0[1], $0[2], $0[3]) },
    FlightRow("a NewSessionTicket nobody promised", order) {
      one($0[0], Wire.message(4, [0, 0, 0, 0, 0, 0]))
    },
    FlightRow("a Finished", order) { one($0[0], $0[1], $0[2], Wire.message(20, [0])) },
    FlightRow("two CertificateRequests", order) {
      let request = Wire.message(13, [1, 1, 0, 2, 4, 3, 0, 0])
      return one($0[0], $0[1], $0[2], request, request, $0[3])
    },
    FlightRow("a CertificateRequest before the exchange", order) {
      one($0[0], $0[1], Wire.message(13, [1, 1, 0, 2, 4, 3, 0, 0]), $0[2], $0[3])
    },
    FlightRow("a CertificateRequest with trailing bytes", behind) {
      one($0[0], $0[1], $0[2], Wire.message(13, [1, 1, 0, 2, 4, 3, 0, 0, 0]), $0[3])
    },
    FlightRow("a ServerHelloDone with content", behind) { one($0[0], $0[1], $0[2], Wire.message(14, [0])) },
    FlightRow("a message behind the ServerHelloDone", "bytes lie behind the ServerHelloDone in its record") {
      one($0[0], $0[1], $0[2], $0[3], $0[1])
    },
    FlightRow("an empty list of certificates", "a vector is shorter than the protocol allows") {
      one($0[0], Wire.message(11, [0, 0, 0]), $0[2], $0[3])
    },
    FlightRow("an empty certificate", "a vector is shorter than the protocol allows") {
      one($0[0], Wire.message(11, Wire.vector(3, [0, 0, 0])), $0[2], $0[3])
    },
    FlightRow("a certificate longer than its list", past) {
      one($0[0], Wire.message(11, Wire.vector(3, [0, 0, 2, 1])), $0[2], $0[3])
    },
    FlightRow("a list shorter than its message", behind) {
      one($0[0], Wire.message(11, Wire.vector(3, [0, 0, 1, 1]) + [0]), $0[2], $0[3])
    },
    FlightRow("a list longer than its message", past) { one($0[0], Wire.message(11, [0, 0, 9, 0, 0, 1, 1])) },
    FlightRow("65 certificates", "too many certificates") {
      one($0[0], Wire.message(11, Wire.vector(3, (0..<65).flatMap { _ in [0, 0, 1, 1] as [UInt8] })))
    },
    FlightRow("an explicit curve", "an explicit curve in the ServerKeyExchange") {
      one($0[0], $0[1], exchange(curve: [1, 0, 29]))
    },
    FlightRow("a group that was not offered", "the ServerKeyExchange has a group that was not offered") {
      one($0[0], $0[1], exchange(curve: [3, 0, 1]))
    },
    FlightRow("an empty key", "a vector is shorter than the protocol allows") { one($0[0], $0[1], exchange(key: [])) },
    FlightRow(
      "a scheme that was not offered", "the ServerKeyExchange has a signature scheme that was not offered"
    ) { one($0[0], $0[1], exchange(scheme: [2, 1])) },
    FlightRow("an empty signature", "a vector is shorter than the protocol allows") {
      one($0[0], $0[1], exchange(signature: []))
    },
    FlightRow("bytes behind the signature", behind) { one($0[0], $0[1], exchange(trailing: [0])) },
    FlightRow("a ChangeCipherSpec behind the ServerHello", "a ChangeCipherSpec before the flight is whole") {
      one($0[0]) + Wire.record(20, [1])
    },
    FlightRow("a ChangeCipherSpec behind the Certificate", "a ChangeCipherSpec before the flight is whole") {
      one($0[0], $0[1]) + Wire.record(20, [1])
    },
    FlightRow("a record of another type inside a message", "a record of another type inside a handshake message") {
      Wire.handshake(Array($0[0].dropLast())) + Wire.record(20, [1])
    },
    FlightRow("an alert inside a message", "a record of another type inside a handshake message") {
      one($0[0]) + Wire.handshake([11, 0]) + Wire.record(21, [1, 112])
    },
    FlightRow("application data", "application data inside the handshake") { one($0[0]) + Wire.record(23, [1]) },
    FlightRow("an unknown record type", "a record has an unknown type") { one($0[0]) + Wire.record(24, [1]) },
    FlightRow("an empty fragment", "a record is empty") { one($0[0]) + Wire.record(22, []) },
    FlightRow("a record of another version", "a record is not of the version agreed on") {
      one($0[0]) + Wire.handshake($0[1], version: 0x0302)
    },
    FlightRow("a warning inside the flight", "an alert that may not stand here") {
      one($0[0], $0[1]) + Wire.record(21, [1, 112])
    },
    FlightRow("a fatal alert inside the flight", "a fatal alert inside the flight", .upstreamUnreachable) {
      one($0[0], $0[1]) + Wire.record(21, [2, 80])
    },
    FlightRow("a Certificate without end", "more bytes than may be held") { messages in
      let piece = Wire.handshake(Array(repeating: 0, count: 1))
      let header = Wire.handshake([11, 1, 0xff, 0xff, 1, 0xff, 0xfc, 1, 0xff, 0xf9])
      return one(messages[0]) + header + (0..<50000).flatMap { _ in piece }
    },
    FlightRow("a Certificate over 128 KiB", "a handshake message is too long") {
      one($0[0]) + Wire.handshake([11, 2, 0, 1])
    },
  ]

  private func messages(_ capture: Capture) throws -> [[UInt8]] {
    Wire.messages(of: capture.server, upTo: try #require(capture.facts.serverFlight?.end))
  }

  @Test(arguments: rows)
  func `a flight that may not be is refused, and says why`(_ row: FlightRow) throws {
    let capture = try Capture("tls12-curl-nginx-ecdsa")
    let messages = try messages(capture)
    #expect(messages.map { $0[0] } == [2, 11, 12, 14])
    let bytes = row.make(messages)
    var reader = ServerFlightReader(answering: try capture.hello())
    guard case .refused(let refusal) = reader.receive(bytes.span) else { throw Unexpected() }
    #expect(refusal.reason == row.reason, "\(refusal)")
    #expect(refusal.detail == row.detail, "\(refusal)")
    #expect((0...bytes.count).contains(refusal.offset))
  }

  @Test func `the flight the rows are made of is taken as it is`() throws {
    let capture = try Capture("tls12-curl-nginx-ecdsa")
    var reader = ServerFlightReader(answering: try capture.hello())
    let bytes = Wire.handshake(try messages(capture).flatMap { $0 })
    guard case .tls12Flight = reader.receive(bytes.span) else { throw Unexpected() }
    // A message in the next record is no part of the flight: it is held, and the answer stays.
    guard case .tls12Flight(let flight) = reader.receive(Wire.handshake([14, 0, 0, 0]).span) else {
      throw Unexpected()
    }
    #expect(flight.end == bytes.count)
    #expect(reader.receivedEnd == bytes.count + 9)
    #expect(Array(reader.held(0..<bytes.count)) == bytes)
  }

  @Test func `a flight beyond the limit is refused even behind its answer`() throws {
    let capture = try Capture("tls13-curl-nginx")
    var reader = ServerFlightReader(answering: try capture.hello())
    guard case .tls13 = reader.receive(capture.server.span) else { throw Unexpected() }
    let flood = [UInt8](repeating: 0, count: WireLimits.heldFlight)
    guard case .refused(let refusal) = reader.receive(flood.span) else { throw Unexpected() }
    #expect(refusal.detail == "more bytes than may be held")
    #expect(reader.receivedEnd == WireLimits.heldFlight)
  }

  @Test func `static RSA wants no ServerKeyExchange and takes none`() throws {
    let capture = try Capture("tls12-openssl-rsa-kex")
    let parts = try messages(capture)
    let bytes = Wire.handshake(parts[0] + parts[1] + Self.exchange() + parts[2])
    var reader = ServerFlightReader(answering: try capture.hello())
    guard case .refused(let refusal) = reader.receive(bytes.span) else { throw Unexpected() }
    #expect(refusal.detail == Self.order)
  }

  /// A resumption has to repeat the client's session id; a ticket that was promised has to come.
  @Test func `a resumption that is none is refused`() throws {
    let capture = try Capture("tls12-java-java-ticket-2-resumed")
    let client = try capture.hello()
    let end = try #require(capture.facts.serverFlight?.end)
    let bytes = Array(capture.server.prefix(end))
    var reader = ServerFlightReader(answering: client)
    guard case .tls12Resumed(let resumed) = reader.receive(bytes.span) else { throw Unexpected() }
    #expect(resumed.newTicket?.isEmpty == false)
    let parts = Wire.messages(of: capture.server, upTo: try #require(capture.facts.serverHello?.end))
    let change = Wire.record(20, [1]) + Wire.handshake(Array(repeating: 1, count: 40))
    let rows = [
      ("without the ticket it promised", Wire.handshake(parts[0]) + change),
      ("with another session id", Wire.handshake(parts[0].replacing(39, parts[0][39] ^ 1)) + change),
      ("with two bytes of ChangeCipherSpec", Wire.handshake(parts[0]) + Wire.record(20, [1, 1])),
    ]
    for row in rows {
      reader = ServerFlightReader(answering: client)
      guard case .refused(let refusal) = reader.receive(row.1.span) else { throw Unexpected() }
      #expect(refusal.reason == .malformedHandshake, "\(row.0)")
    }
  }

  @Test func `offsets of errors are those of the stream, whatever the records`() throws {
    let capture = try Capture("tls12-curl-nginx-ecdsa")
    let parts = try messages(capture)
    let broken = Self.exchange(curve: [1, 0, 29])
    let content = parts[0] + parts[1] + broken
    let place = parts[0].count + parts[1].count + 4
    for size in [1, 7, 100] {
      var bytes: [UInt8] = []
      for start in stride(from: 0, to: content.count, by: size) {
        bytes += Wire.handshake(Array(content[start..<min(start + size, content.count)]))
      }
      var reader = ServerFlightReader(answering: try capture.hello())
      guard case .refused(let refusal) = reader.receive(bytes.span) else { throw Unexpected() }
      #expect(refusal.offset == place + (place / size + 1) * 5)
      #expect(bytes[refusal.offset] == 1)
    }
  }
}
