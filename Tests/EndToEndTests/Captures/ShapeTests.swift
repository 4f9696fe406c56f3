import Testing

extension Handshakes {
  /// Shapes that are not among the captures, made of captures by changing bytes. What else would be wrong with them (a
  /// signature that does not fit any more) has another reason, so that each row fails if its own check is gone.
  @Suite struct ShapeTests {
    struct Row: Sendable, CustomTestStringConvertible {
      let testDescription: String
      let capture: String
      /// The host of the CONNECT line.
      var host = Capture.host
      let reason: String
      var method = "none"
      var passed = CaptureVerdict.Passed.nothing
      /// Bytes of the client that may reach the server; `nil`: the hellos.
      var sentUp: Int?
      let change: @Sendable (inout Capture) throws -> Void
    }

    /// `DOWNGRD` and the version given up, in the last 8 bytes of the ServerHello's random (RFC 8446 §4.1.3).
    private static func sentinel(_ version: UInt8) -> @Sendable (inout Capture) -> Void {
      { $0.server.replaceSubrange(35..<43, with: Array("DOWNGRD".utf8) + [version]) }
    }

    private static func prefixed(_ bytes: [UInt8]) -> @Sendable (inout Capture) -> Void {
      { $0.prefixServer(bytes) }
    }

    /// The suite that the one offered and chosen in `tls12-openssl-rsa-kex` is replaced with.
    private static func suite(_ number: UInt16) -> @Sendable (inout Capture) throws -> Void {
      { capture in
        let old: [UInt8] = [0x00, 0x9c]
        let new = [UInt8(number >> 8), UInt8(number & 255)]
        // The hello has no session id and two suites; the ServerHello has no session id.
        let offered = 5 + 4 + 2 + 32 + 1 + 2
        let chosen = 5 + 4 + 2 + 32 + 1
        guard capture.client[offered..<offered + 2].elementsEqual(old), capture.server[chosen..<chosen + 2] == old[...]
        else { throw HarnessError("not where it was expected") }
        capture.client.replaceSubrange(offered..<offered + 2, with: new)
        capture.server.replaceSubrange(chosen..<chosen + 2, with: new)
      }
    }

    private static let warning: [UInt8] = [21, 3, 3, 0, 2, 1, 112]

    static let rows = [
      Row(
        testDescription: "a second hello with the name of another host", capture: "tls13-curl-nginx-hrr",
        reason: "sni_mismatch", sentUp: 517
      ) { try $0.replaceInClient("api.pinfold", with: "www.pinfold", after: 517) },
      Row(
        testDescription: "a second hello with other cipher suites", capture: "tls13-curl-nginx-hrr",
        reason: "malformed_handshake", sentUp: 517
      ) { $0.client[523 + 5 + 4 + 2 + 32 + 33 + 3] ^= 1 },
      Row(
        testDescription: "a warning unrecognized_name before a TLS 1.3 ServerHello", capture: "tls13-curl-nginx",
        reason: "pin_match", method: "key_log", passed: .everything, change: prefixed(warning)),
      Row(
        testDescription: "two warnings", capture: "tls12-curl-nginx-ecdsa", reason: "malformed_handshake",
        change: prefixed(warning + warning)),
      Row(
        testDescription: "another warning", capture: "tls12-curl-nginx-ecdsa", reason: "malformed_handshake",
        change: prefixed([21, 3, 3, 0, 2, 1, 90])),
      Row(
        testDescription: "a close_notify instead of a ServerHello", capture: "tls12-curl-nginx-ecdsa",
        reason: "upstream_unreachable", change: prefixed([21, 3, 3, 0, 2, 1, 0])),
      Row(
        testDescription: "TLS 1.2 with the mark of a server that speaks 1.3", capture: "tls12-chromium-nginx",
        reason: "malformed_handshake", change: sentinel(1)),
      Row(
        testDescription: "TLS 1.1 with the mark of a server that speaks 1.2", capture: "tls11-openssl-new-hello",
        reason: "malformed_handshake", change: sentinel(0)),
      Row(
        testDescription: "the same mark where the client had no more to offer: what is wrong is the signature",
        capture: "tls12-openssl-p384", reason: "key_not_proven", method: "in_band", change: sentinel(1)),
      Row(
        testDescription: "a real ECH: the outer name is not the host's", capture: "tls13-chromium-nginx",
        host: "hidden.pinfold.test", reason: "sni_mismatch", sentUp: 0, change: { _ in }),
      Row(
        testDescription: "an export suite", capture: "tls12-openssl-rsa-kex", reason: "key_not_proven",
        change: suite(0x0008)),
      Row(
        testDescription: "an SRP suite", capture: "tls12-openssl-rsa-kex", reason: "key_not_proven",
        change: suite(0xc01e)),
      Row(
        testDescription: "a static ECDH suite", capture: "tls12-openssl-rsa-kex", reason: "key_not_proven",
        change: suite(0xc025)),
      Row(
        testDescription: "a suite that nobody knows", capture: "tls12-openssl-rsa-kex", reason: "key_not_proven",
        change: suite(0xfefe)),
      Row(
        testDescription: "a Kerberos suite", capture: "tls12-openssl-rsa-kex", reason: "anonymous_suite",
        method: "in_band", change: suite(0x001e)),
      Row(
        testDescription: "the null suite", capture: "tls12-openssl-rsa-kex", reason: "anonymous_suite",
        method: "in_band", change: suite(0x0000)),
      Row(
        testDescription: "DHE and a shared key", capture: "tls12-openssl-rsa-kex", reason: "anonymous_suite",
        method: "in_band", change: suite(0x00aa)),
      Row(
        testDescription: "an SSL 3.0 ServerHello", capture: "tls12-curl-nginx-ecdsa", reason: "not_tls"
      ) { $0.server[10] = 0 },
      Row(
        testDescription: "a ServerHello in a record of SSL 2.0", capture: "tls12-curl-nginx-ecdsa", reason: "not_tls",
        change: prefixed([0x80, 0x40, 4, 0, 1])),
      Row(
        testDescription: "a DTLS record of the server", capture: "tls12-curl-nginx-ecdsa", reason: "not_tls",
        change: prefixed([22, 0xfe, 0xfd])),
      Row(
        testDescription: "a HelloRequest before the ServerHello", capture: "tls12-curl-nginx-ecdsa",
        reason: "malformed_handshake", change: prefixed([22, 3, 3, 0, 4, 0, 0, 0, 0])),
      Row(
        testDescription: "a ChangeCipherSpec before the ServerHello", capture: "tls13-curl-nginx", reason: "not_tls",
        change: prefixed([20, 3, 3, 0, 1, 1])),
      Row(
        testDescription: "an empty record before the ServerHello", capture: "tls12-curl-nginx-ecdsa",
        reason: "malformed_handshake", change: prefixed([22, 3, 3, 0, 0])),
      Row(
        testDescription: "a changed byte in the encrypted flight", capture: "tls13-curl-nginx",
        reason: "malformed_handshake", method: "key_log", passed: .serverHello
      ) { $0.server[700] ^= 1 },
      Row(
        testDescription: "a changed byte in the first encrypted record", capture: "tls13-curl-nginx",
        reason: "key_not_proven", method: "key_log", passed: .serverHello
      ) { $0.server[127 + 6 + 5 + 3] ^= 1 },
      Row(
        testDescription: "a changed byte in the TLS 1.3 ServerHello, which the transcript covers",
        capture: "tls13-curl-nginx", reason: "key_not_proven", method: "key_log", passed: .serverHello
      ) { $0.server[20] ^= 1 },
      Row(
        testDescription: "a changed byte in the ClientHello, which the transcript covers", capture: "tls13-curl-nginx",
        reason: "key_not_proven", method: "key_log", passed: .serverHello
          // The last byte of its padding.
      ) { $0.client[516] = 1 },
    ]

    private static let stage = Result {
      try CaptureStage(
        rows.map { row in
          var capture = try Capture.named(row.capture)
          try row.change(&capture)
          return (row.testDescription, capture, CapturePolicy(), row.host)
        }, keyLog: true)
    }

    @Test("Refused for its own reason", arguments: rows) func shape(row: Row) throws {
      let stage = try Self.stage.get()
      var capture = try Capture.named(row.capture)
      try row.change(&capture)
      let (result, decision) = try stage.play(capture, at: try stage.place(row.testDescription))
      #expect(decision.reason == row.reason && decision.method == row.method, "\(decision.text)")
      var expected = CaptureVerdict(reason: row.reason, method: row.method, passed: row.passed)
      expected.reachesUpstream = row.sentUp != 0
      CaptureExpectation.check(result, of: capture, expected, sentUp: row.sentUp)
    }
  }
}

extension Capture {
  /// Puts bytes in front of everything the server says.
  mutating func prefixServer(_ bytes: [UInt8]) {
    server = bytes + server
    facts.serverHello?.end += bytes.count
    facts.serverFlight?.start += bytes.count
    facts.serverFlight?.end? += bytes.count
    facts.helloRetry?.end += bytes.count
    if let first = facts.flow.firstIndex(where: { $0.side == "s" }) { facts.flow[first].count += bytes.count }
  }

  /// Replaces the first text behind an offset with another one of the same length.
  mutating func replaceInClient(_ text: String, with other: String, after offset: Int) throws {
    let (old, new) = (Array(text.utf8), Array(other.utf8))
    guard old.count == new.count,
      let place = (offset..<client.count - old.count).first(where: { client[$0..<$0 + old.count].elementsEqual(old) })
    else { throw HarnessError("\(text) does not stand behind \(offset)") }
    client.replaceSubrange(place..<place + old.count, with: new)
  }
}
