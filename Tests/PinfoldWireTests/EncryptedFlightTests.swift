import PinfoldModel
import PinfoldWire
import Testing

/// Decrypted flights made by hand around real certificates: what is read, and what is refused.
@Suite struct EncryptedFlightTests {
  private static let client = try? Capture("tls13-curl-nginx").hello()
  private static let resuming = try? Capture("tls13-openssl-early-data").hello()

  private static let extensions = Wire.message(
    8, Wire.extensions([(0, []), (10, [0, 2, 0, 29]), (16, [0, 3, 2, 0x68, 0x32])]))
  private static let verify = Wire.message(15, [4, 3] + Wire.vector(2, [1, 2, 3]))
  private static let finished = Wire.message(20, Array(repeating: 5, count: 48))
  private static let request = Wire.message(13, [0] + Wire.extensions([(13, [0, 2, 4, 3])]))

  private static func certificate(
    _ entries: [([UInt8], [(Int, [UInt8])])] = [([1, 2], []), ([3], [])], context: [UInt8] = [],
    trailing: [UInt8] = []
  ) -> [UInt8] {
    let list = entries.flatMap { Wire.vector(3, $0.0) + Wire.extensions($0.1) }
    return Wire.message(11, Wire.vector(1, context) + Wire.vector(3, list) + trailing)
  }

  private static func compressed(_ algorithm: Int = 1, length: Int = 100, content: [UInt8] = [1]) -> [UInt8] {
    Wire.message(25, Wire.number(algorithm, width: 2) + Wire.number(length, width: 3) + Wire.vector(3, content))
  }

  private func hello(_ capture: Capture) throws -> ServerHello {
    guard case .tls13(let hello) = try capture.flight() else { throw Unexpected() }
    return hello
  }

  private func reader(_ name: String = "tls13-curl-nginx") throws -> EncryptedFlightReader {
    let capture = try Capture(name)
    return EncryptedFlightReader(answering: try capture.hello(), with: try hello(capture))
  }

  @Test func `a flight is read in any cut of records`() throws {
    let chain = try Capture("tls13-curl-nginx").chain
    let messages = [
      Self.extensions, Self.request, Self.certificate(chain.map { ($0, []) }), Self.verify, Self.finished,
    ]
    let bytes = messages.flatMap { $0 }
    for size in [bytes.count, 1, 100, 1000] {
      var reader = try reader()
      var event = EncryptedFlightReader.Event.incomplete
      for start in stride(from: 0, to: bytes.count, by: size) {
        guard case .incomplete = event else { throw Unexpected() }
        event = reader.receive(Array(bytes[start..<min(start + size, bytes.count)]).span)
      }
      guard case .flight(let flight) = event, case .entries(let entries) = flight.certificate else {
        throw Unexpected()
      }
      #expect(entries.map { Array(flight.bytes($0.certificate)) } == chain)
      #expect(flight.messages.map(\.type) == [8, 13, 11, 15, 20])
      #expect(flight.messages.map { Array(flight.bytes($0.range)) } == messages)
      #expect(flight.alpn.map { Array($0) } == [0x68, 0x32])
      #expect(flight.scheme == 0x0403)
      #expect(flight.signature.map { Array(flight.bytes($0)) } == [1, 2, 3])
      #expect(flight.verifyData.count == 48)
      #expect(flight.requestsClientCertificate)
      #expect(!flight.acceptsEarlyData)
      #expect(!flight.usesRawPublicKey)
    }
  }

  @Test func `a resumption has neither certificate nor signature`() throws {
    var reader = try reader("tls13-openssl-early-data")
    let bytes = Wire.message(8, Wire.extensions([(42, [])])) + Self.finished
    guard case .flight(let flight) = reader.receive(bytes.span) else { throw Unexpected() }
    #expect(flight.certificate == .none)
    #expect(flight.scheme == nil)
    #expect(flight.acceptsEarlyData)
  }

  @Test func `a compressed certificate is handed on, and read once it is open`() throws {
    let capture = try Capture("tls13-openssl35-zlib")
    var reader = EncryptedFlightReader(answering: try capture.hello(), with: try hello(capture))
    let empty = Wire.message(8, Wire.extensions([]))
    let bytes = empty + Self.compressed(content: [7, 8]) + Self.verify + Self.finished
    guard case .flight(let flight) = reader.receive(bytes.span) else { throw Unexpected() }
    let place = empty.count + 4 + 2 + 3 + 3
    #expect(flight.certificate == .compressed(algorithm: 1, length: 100, content: place..<(place + 2)))
    let body = Array(Self.certificate().dropFirst(4))
    let opened = try EncryptedFlight.certificate(opened: body, answering: capture.hello(), rawPublicKey: false)
    guard case .entries(let entries) = opened else { throw Unexpected() }
    #expect(entries.map { Array(body[$0.certificate]) } == [[1, 2], [3]])
    #expect(throws: WireError.malformed("bytes lie behind the last field", at: body.count)) {
      try EncryptedFlight.certificate(opened: body + [0], answering: capture.hello(), rawPublicKey: false)
    }
  }

  @Test func `a raw public key is one entry`() throws {
    let capture = try Capture("tls13-openssl35-raw-public-key")
    let chosen = Wire.message(8, Wire.extensions([(20, [2])]))
    var reader = EncryptedFlightReader(answering: try capture.hello(), with: try hello(capture))
    let bytes = chosen + Self.certificate([([1, 2], [])]) + Self.verify + Self.finished
    guard case .flight(let flight) = reader.receive(bytes.span), case .rawPublicKey(let key) = flight.certificate
    else { throw Unexpected() }
    #expect(Array(flight.bytes(key)) == [1, 2])
    #expect(flight.usesRawPublicKey)
    reader = EncryptedFlightReader(answering: try capture.hello(), with: try hello(capture))
    guard case .refused(let refusal) = reader.receive((chosen + Self.certificate()).span) else { throw Unexpected() }
    #expect(refusal.detail == "more than one raw public key")
  }

  private static let order = "a handshake message out of order"
  private static let misplaced = "an extension that may not stand in this message"

  static let rows: [(name: String, bytes: [UInt8], detail: String)] = [
    ("no EncryptedExtensions", certificate(), order),
    ("a ServerHello", Wire.message(2, []), order),
    ("two EncryptedExtensions", extensions + extensions, order),
    ("a Finished in place of the certificate", extensions + finished, order),
    ("a CertificateVerify in place of the certificate", extensions + verify, order),
    ("a second Certificate", extensions + certificate() + certificate(), order),
    ("no CertificateVerify", extensions + certificate() + finished, order),
    ("a request behind the certificate", extensions + certificate() + request, order),
    ("two requests", extensions + request + request, order),
    ("a ticket before the Finished", extensions + Wire.message(4, []), order),
    ("a compressed certificate nobody asked for", extensions + compressed(), order),
    (
      "a request without schemes", extensions + Wire.message(13, [0] + Wire.extensions([])),
      "the CertificateRequest names no signature algorithms"
    ),
    (
      "a request with a context", extensions + Wire.message(13, [1, 1] + Wire.extensions([])),
      "the CertificateRequest has a context"
    ),
    (
      "a certificate with a context", extensions + certificate(context: [1]),
      "the server's Certificate has a request context"
    ),
    ("an empty list", extensions + certificate([]), "a vector is shorter than the protocol allows"),
    ("an empty certificate", extensions + certificate([([], [])]), "a vector is shorter than the protocol allows"),
    ("bytes behind the list", extensions + certificate(trailing: [0]), "bytes lie behind the last field"),
    ("65 certificates", extensions + certificate(Array(repeating: ([1], []), count: 65)), "too many certificates"),
    (
      "an entry's extension nobody asked for", extensions + certificate([([1], [(18, [])])]),
      "an extension that was not asked for"
    ),
    ("an entry's extension of another message", extensions + certificate([([1], [(51, [])])]), misplaced),
    ("a key share among the EncryptedExtensions", Wire.message(8, Wire.extensions([(51, [])])), misplaced),
    (
      "an extension nobody asked for", Wire.message(8, Wire.extensions([(19, [0])])),
      "an extension that was not asked for"
    ),
    ("an extension twice", Wire.message(8, Wire.extensions([(0, []), (0, [])])), "an extension stands twice"),
    ("bytes behind the extensions", Wire.message(8, Wire.extensions([]) + [0]), "bytes lie behind the last field"),
    (
      "a protocol that was not offered", Wire.message(8, Wire.extensions([(16, [0, 3, 2, 0x68, 0x33])])),
      "the server chose a protocol that was not offered"
    ),
    (
      "a scheme that was not offered", extensions + certificate() + Wire.message(15, [9, 4, 0, 1, 1]),
      "the CertificateVerify has a signature scheme that was not offered"
    ),
    (
      "a PKCS #1 scheme", extensions + certificate() + Wire.message(15, [4, 1, 0, 1, 1]),
      "the CertificateVerify has a signature scheme that was not offered"
    ),
    (
      "ECDSA with SHA-1", extensions + certificate() + Wire.message(15, [2, 3, 0, 1, 1]),
      "the CertificateVerify has a signature scheme that was not offered"
    ),
    (
      "ECDSA with SHA-224", extensions + certificate() + Wire.message(15, [3, 3, 0, 1, 1]),
      "the CertificateVerify has a signature scheme that was not offered"
    ),
    (
      "an empty signature", extensions + certificate() + Wire.message(15, [4, 3, 0, 0]),
      "a vector is shorter than the protocol allows"
    ),
    (
      "a Finished of the other hash",
      extensions + certificate() + verify + Wire.message(20, Array(repeating: 1, count: 32)),
      "the Finished has not the length of the suite's hash"
    ),
    (
      "bytes behind the Finished", extensions + certificate() + verify + finished + [4],
      "bytes lie behind the Finished in its record"
    ),
    ("a message over 128 KiB", [8, 2, 0, 1], "a handshake message is too long"),
    ("nothing", [], "an empty handshake record"),
  ]

  @Test(arguments: rows.indices)
  func `a decrypted flight that may not be is refused, and says why`(_ index: Int) throws {
    let row = Self.rows[index]
    var reader = try reader()
    guard case .refused(let refusal) = reader.receive(row.bytes.span) else {
      Issue.record("\(row.name) was not refused")
      return
    }
    #expect(refusal.reason == .malformedHandshake, "\(row.name)")
    #expect(refusal.detail == row.detail, "\(row.name)")
    #expect((0...row.bytes.count).contains(refusal.offset), "\(row.name)")
  }

  @Test func `a certificate in a resumption is refused`() throws {
    for message in [Self.certificate(), Self.request] {
      var reader = try reader("tls13-openssl-early-data")
      let bytes = Wire.message(8, Wire.extensions([])) + message
      guard case .refused(let refusal) = reader.receive(bytes.span) else { throw Unexpected() }
      #expect(refusal.detail == Self.order)
    }
  }

  @Test func `a compressed certificate may not open too far`() throws {
    for (message, detail) in [
      (
        Self.compressed(length: WireLimits.uncompressedCertificate + 1), "the compressed certificate would open too far"
      ),
      (Self.compressed(length: 0), "the compressed certificate would open too far"),
      (Self.compressed(2), "the certificate is compressed in a way that was not offered"),
    ] {
      var reader = try reader("tls13-openssl35-zlib")
      let bytes = Wire.message(8, Wire.extensions([])) + message
      guard case .refused(let refusal) = reader.receive(bytes.span) else { throw Unexpected() }
      #expect(refusal.detail == detail)
    }
  }

  @Test func `mutated flights crash nothing`() throws {
    let chain = try Capture("tls13-curl-nginx").chain
    let bytes = [Self.extensions, Self.certificate(chain.map { ($0, []) }), Self.verify, Self.finished].flatMap { $0 }
    var random = Random(seed: 13)
    var refused = 0
    for _ in 0..<2000 {
      var changed = bytes
      // The first 80 bytes and the last 80 hold all structure but the certificates' own.
      let index = random.next(below: 160)
      changed[index < 80 ? index : bytes.count - 160 + index] ^= UInt8(1 + random.next(below: 255))
      var reader = try reader()
      if case .refused = reader.receive(changed.span) { refused += 1 }
    }
    #expect(refused > 400)
  }
}
