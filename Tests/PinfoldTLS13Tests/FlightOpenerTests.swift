import PinfoldModel
import PinfoldWire
import Testing

@testable import PinfoldTLS

/// The core that opens and judges an encrypted flight, over every recorded TLS 1.3 handshake.
@Suite("opening the encrypted flight") struct FlightOpenerTests {
  /// All of the server's bytes behind its ServerHello.
  private func flightBytes(_ capture: Capture, _ hellos: Hellos13) -> ArraySlice<UInt8> {
    capture.server[hellos.server.end...]
  }

  private func open(
    _ capture: Capture, hellos: Hellos13? = nil, secret: SecretBytes? = nil, bytes: [UInt8]? = nil
  ) throws -> FlightOpener.Event {
    let hellos = try hellos ?? capture.hellos()
    return try capture.opener(hellos, secret: secret).receive(bytes?[...] ?? Array(flightBytes(capture, hellos))[...])
  }

  @Test("there are captures to try") func corpus() {
    #expect(Capture.openable.count >= 49)
    #expect(Capture.openable.filter { $0.facts.helloRetryRequest == true }.count >= 7)
  }

  @Test("every capture gives its stated facts, with key and Finished verified", arguments: Capture.openable)
  func facts(_ capture: Capture) throws {
    let hellos = try capture.hellos()
    guard case .flight(let flight) = try open(capture, hellos: hellos) else {
      Issue.record("not opened: \(try open(capture, hellos: hellos))")
      return
    }
    #expect(flight.end == capture.facts.serverFlight?.end)
    #expect(flight.messages.messages.map { Self.name($0.type) } == capture.facts.serverMessagesEncrypted)
    #expect(flight.leafKey?.base64 == capture.facts.shownKey)
    let digests = try flight.certificates.map { try Digest.sha256($0).hex }
    #expect(digests.first == capture.facts.leafSha256)
    #expect(digests == (capture.facts.certificates ?? []).map(\.sha256))
    #expect((flight.compression != nil) == (capture.facts.certificateCompression != nil))
    #expect(flight.messages.alpn.map { String(decoding: $0, as: UTF8.self) } == capture.facts.alpn)
    switch flight.identity {
    case .preSharedKey: #expect(capture.facts.outcome != "full")
    default: #expect(capture.facts.outcome == "full")
    }
  }

  private static func name(_ type: UInt8) -> String {
    switch type {
    case 8: "encrypted_extensions"
    case 11: "certificate"
    case 13: "certificate_request"
    case 15: "certificate_verify"
    case 20: "finished"
    case 25: "compressed_certificate"
    default: "\(type)"
    }
  }

  @Test("byte by byte gives what all at once gives, and nothing before the end", arguments: Capture.openable)
  func everySplit(_ capture: Capture) throws {
    let hellos = try capture.hellos()
    let end = try #require(capture.facts.serverFlight?.end)
    let opener = try capture.opener(hellos)
    for offset in hellos.server.end..<(end - 1) {
      guard case .incomplete = opener.receive(capture.server[offset...offset]) else {
        Issue.record("an answer before the end, at \(offset)")
        return
      }
    }
    guard case .flight(let flight) = opener.receive(capture.server[(end - 1)...]) else {
      Issue.record("no flight at the end")
      return
    }
    #expect(flight.leafKey?.base64 == capture.facts.shownKey)
  }

  /// Small flights, one per cipher, form of certificate and shape, so that every bit of them can be tried.
  static let small = [
    "tls13-openssl-p256", "tls13-openssl-ccm-rsapss", "tls13-openssl-chacha", "tls13-openssl35-raw-public-key",
    "tls13-openssl35-zlib", "tls13-chromium-boringssl-brotli", "tls13-nss-openssl-hrr", "tls13-openssl-external-psk",
  ]

  @Test("a flipped bit anywhere in the flight is never let through", arguments: small)
  func flippedBits(_ name: String) throws {
    let capture = try Capture.named(name)
    let hellos = try capture.hellos()
    let end = try #require(capture.facts.serverFlight?.end)
    let bytes = Array(capture.server[hellos.server.end..<end])
    for index in bytes.indices {
      var broken = bytes
      broken[index] ^= 1 << UInt8(index % 8)
      if case .flight = try open(capture, hellos: hellos, bytes: broken) {
        Issue.record("let through with byte \(index) changed")
      }
    }
  }

  @Test("another session's secret opens nothing", arguments: Capture.openable)
  func wrongSecret(_ capture: Capture) throws {
    let hellos = try capture.hellos()
    let count = try capture.secret("SERVER_HANDSHAKE_TRAFFIC_SECRET").count
    var bytes = [UInt8](repeating: 7, count: count)
    let event = try open(capture, hellos: hellos, secret: SecretBytes(taking: &bytes))
    guard case .refused(let refusal) = event else {
      Issue.record("not refused")
      return
    }
    #expect(refusal.reason == .keyNotProven)
    #expect(bytes.isEmpty)
    let other = try open(capture, hellos: hellos, secret: try capture.secret("CLIENT_HANDSHAKE_TRAFFIC_SECRET"))
    guard case .refused(let second) = other else {
      Issue.record("not refused")
      return
    }
    #expect(second.reason == .keyNotProven)
  }

  /// Guards: that a record whose tag is right is never taken for one of another handshake.
  @Test("padding alone in the first record is malformed: the secret is the right one") func paddingFirst() throws {
    let capture = try Capture.named("tls13-openssl-p256")
    let hellos = try capture.hellos()
    let seal = try RecordProtection(
      try #require(hellos.suite), secret: try capture.secret("SERVER_HANDSHAKE_TRAFFIC_SECRET"), .sealing)
    let opener = try capture.opener(hellos)
    let event = opener.receive(try #require(seal.seal(type: 0, content: [0, 0, 0]))[...])
    guard case .refused(let refusal) = event else {
      Issue.record("not refused")
      return
    }
    #expect(refusal.reason == .malformedHandshake && opener.hasOpened)
  }

  @Test("a secret of a wrong length is an error, not an opener")
  func secretLength() throws {
    let capture = try Capture.named("tls13-curl-nginx")
    let hellos = try capture.hellos()
    for count in [0, 32, 47, 49] {
      var bytes = [UInt8](repeating: 1, count: count)
      let secret = SecretBytes(taking: &bytes)
      #expect(throws: TLSError.self) { try capture.opener(hellos, secret: secret) }
    }
  }

  /// A server's flight written anew under its own secret, so that only the transcript can give the change away.
  private func rewritten(
    _ capture: Capture, _ hellos: Hellos13, _ change: (inout [[UInt8]]) -> Void
  ) throws -> [UInt8] {
    guard case .flight(let flight) = try open(capture, hellos: hellos) else { throw Capture.Unreadable() }
    var messages = flight.messages.messages.map { Array(flight.messages.bytes($0.range)) }
    change(&messages)
    let seal = try RecordProtection(
      try #require(hellos.suite), secret: try capture.secret("SERVER_HANDSHAKE_TRAFFIC_SECRET"), .sealing)
    var bytes: [UInt8] = []
    for message in messages { bytes += try #require(seal.seal(type: 22, content: message)) }
    return bytes
  }

  @Test("the flight sealed anew without a change opens; other cuts of the messages do too")
  func sealedAnew() throws {
    let capture = try Capture.named("tls13-openssl-p256")
    let hellos = try capture.hellos()
    guard case .flight = try open(capture, hellos: hellos, bytes: try rewritten(capture, hellos) { _ in }) else {
      Issue.record("not opened")
      return
    }
    let joined = try rewritten(capture, hellos) { $0 = [$0.flatMap { $0 }] }
    guard case .flight = try open(capture, hellos: hellos, bytes: joined) else {
      Issue.record("not opened in one record")
      return
    }
    let crumbs = try rewritten(capture, hellos) { $0 = $0.flatMap { $0 }.map { [$0] } }
    guard case .flight = try open(capture, hellos: hellos, bytes: crumbs) else {
      Issue.record("not opened in one-byte records")
      return
    }
  }

  @Test("another certificate under the right secret is not proven")
  func swappedCertificate() throws {
    let capture = try Capture.named("tls13-openssl-p256")
    let other = try Capture.named("tls13-openssl-ed25519")
    let hellos = try capture.hellos()
    guard case .flight(let stranger) = try open(other) else { throw Capture.Unreadable() }
    let certificate = try #require(stranger.messages.message(11))
    let bytes = try rewritten(capture, hellos) { messages in
      for index in messages.indices where messages[index][0] == 11 {
        messages[index] = Array(stranger.messages.bytes(certificate.range))
      }
    }
    guard case .refused(let refusal) = try open(capture, hellos: hellos, bytes: bytes) else {
      Issue.record("a swapped certificate was let through")
      return
    }
    #expect(refusal.reason == .keyNotProven)
  }

  @Test("a changed byte of CertificateVerify's signature or of Finished is not proven")
  func changedProofs() throws {
    let capture = try Capture.named("tls13-openssl-aes128")
    let hellos = try capture.hellos()
    for type in [15, 20] as [UInt8] {
      let bytes = try rewritten(capture, hellos) { messages in
        for index in messages.indices where messages[index][0] == type {
          messages[index][messages[index].count - 1] ^= 1
        }
      }
      guard case .refused(let refusal) = try open(capture, hellos: hellos, bytes: bytes) else {
        Issue.record("let through")
        return
      }
      #expect(refusal.reason == .keyNotProven)
    }
  }

  @Test("a flight under another hello's transcript is not proven")
  func otherTranscript() throws {
    let capture = try Capture.named("tls13-openssl-aes128")
    let other = try Capture.named("tls13-nss-openssl-ech-grease")
    let hellos = try capture.hellos()
    let mixed = Hellos13(first: try other.hello(), server: hellos.server)
    guard case .refused(let refusal) = try open(capture, hellos: mixed) else {
      Issue.record("let through")
      return
    }
    #expect(refusal.reason == .keyNotProven)
  }

  /// What may stand between the records, and what may not.
  struct Insertion: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let record: [UInt8]
    let times: Int
    let refusedAs: Reason?
  }

  static let insertions = [
    Insertion(testDescription: "one ChangeCipherSpec", record: [20, 3, 3, 0, 1, 1], times: 1, refusedAs: nil),
    Insertion(testDescription: "two of them", record: [20, 3, 3, 0, 1, 1], times: 2, refusedAs: .malformedHandshake),
    Insertion(
      testDescription: "one that says 2", record: [20, 3, 3, 0, 1, 2], times: 1, refusedAs: .malformedHandshake),
    Insertion(
      testDescription: "one of two bytes", record: [20, 3, 3, 0, 2, 1, 1], times: 1, refusedAs: .malformedHandshake),
    Insertion(testDescription: "an empty record", record: [23, 3, 3, 0, 0], times: 1, refusedAs: .malformedHandshake),
    Insertion(
      testDescription: "an alert in the clear", record: [21, 3, 3, 0, 2, 2, 40], times: 1,
      refusedAs: .upstreamUnreachable),
    Insertion(
      testDescription: "a handshake record in the clear", record: [22, 3, 3, 0, 4, 8, 0, 0, 0], times: 1,
      refusedAs: .malformedHandshake),
    Insertion(
      testDescription: "another version", record: [20, 3, 1, 0, 1, 1], times: 1, refusedAs: .malformedHandshake),
    Insertion(
      testDescription: "a record longer than any may be", record: [23, 3, 3, 0x41, 0x01], times: 1,
      refusedAs: .malformedHandshake),
  ]

  @Test("records between the others", arguments: insertions) func between(_ row: Insertion) throws {
    // This handshake is without compatibility mode: there is no ChangeCipherSpec of its own.
    let capture = try Capture.named("tls13-openssl-no-compat")
    let hellos = try capture.hellos()
    let inserted = [[UInt8]](repeating: row.record, count: row.times).flatMap { $0 }
    let event = try open(capture, hellos: hellos, bytes: inserted + flightBytes(capture, hellos))
    switch (event, row.refusedAs) {
    case (.flight, nil): break
    case (.refused(let refusal), .some(let reason)): #expect(refusal.reason == reason)
    default: Issue.record("\(event)")
    }
  }

  @Test("more bytes than may be held are refused") func tooMuch() throws {
    let capture = try Capture.named("tls13-openssl-p256")
    let opener = try capture.opener(try capture.hellos())
    let flood = [UInt8]([23, 3, 3, 0x40, 0]) + [UInt8](repeating: 0, count: WireLimits.heldFlight)
    guard case .refused(let refusal) = opener.receive(flood[...]) else {
      Issue.record("not refused")
      return
    }
    #expect(refusal.reason == .malformedHandshake)
  }
}
