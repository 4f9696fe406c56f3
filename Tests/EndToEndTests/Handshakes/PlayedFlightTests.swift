import Foundation
import Testing

extension Handshakes {
  /// Encrypted flights that no server of this system sends, judged by the key log: played by a second implementation of
  /// the key schedule and the record layer (played_server.py) for a captured ClientHello.
  ///
  /// Everything about a flight is right but for what its row says, so that each row fails if its own check is gone; that
  /// the rest is right is what the rows show that pass.
  @Suite struct PlayedFlightTests {
    struct Row: Sendable, CustomTestStringConvertible {
      /// The plan, as the server knows it.
      let testDescription: String
      let reason: String
      var shown: @Sendable (Actors) -> Certificates.Identity = { $0.certificates.ecdsa }
      /// Whose key signs; `nil`: the one that is shown.
      var signer: (@Sendable (Actors) -> Certificates.Identity)?
      /// Whether a delegated credential is shown and signs.
      var delegates = false
      var capture = "tls13-firefox-nginx35-mlkem"
      var changesCookie = false
    }

    static let rows = [
      Row(testDescription: "as it should be", reason: "pin_match"),
      Row(testDescription: "padded", reason: "pin_match"),
      Row(testDescription: "byte by byte", reason: "pin_match"),
      Row(testDescription: "asks for a certificate", reason: "pin_match"),
      Row(testDescription: "compressed", reason: "pin_match"),
      Row(testDescription: "cookie", reason: "pin_match"),
      Row(
        testDescription: "cookie, and the client gives back another", reason: "malformed_handshake", changesCookie: true
      ),
      Row(testDescription: "compressed, wrong length", reason: "malformed_handshake"),
      Row(testDescription: "compressed bomb", reason: "malformed_handshake"),
      Row(testDescription: "a certificate swapped in", reason: "key_not_proven", signer: { $0.certificates.other }),
      Row(testDescription: "wrong Finished", reason: "key_not_proven"),
      Row(testDescription: "client's context", reason: "key_not_proven"),
      Row(
        testDescription: "ML-DSA leaf", reason: "key_not_proven", shown: { $0.mldsa }, capture: "tls13-chromium-nginx"),
      Row(
        testDescription: "ML-DSA signature of another key", reason: "key_not_proven", capture: "tls13-chromium-nginx"),
      Row(
        testDescription: "delegated credential", reason: "pin_match", shown: { $0.certificates.delegating },
        delegates: true),
      Row(
        testDescription: "own credential", reason: "key_not_proven", shown: { $0.certificates.delegating },
        delegates: true),
      Row(
        testDescription: "old credential", reason: "key_not_proven", shown: { $0.certificates.delegating },
        delegates: true),
      Row(
        testDescription: "long credential", reason: "key_not_proven", shown: { $0.certificates.delegating },
        delegates: true),
      Row(testDescription: "a leaf that may not delegate", reason: "key_not_proven", delegates: true),
      Row(
        testDescription: "a credential nobody asked for", reason: "malformed_handshake",
        shown: { $0.certificates.delegating }, delegates: true, capture: "tls13-chromium-nginx"),
      Row(testDescription: "certificate twice", reason: "malformed_handshake"),
      Row(testDescription: "extension twice", reason: "malformed_handshake"),
      Row(testDescription: "no verify", reason: "malformed_handshake"),
      Row(testDescription: "empty record", reason: "malformed_handshake"),
      Row(testDescription: "padding alone in front", reason: "malformed_handshake"),
      Row(testDescription: "a record of more than may be", reason: "malformed_handshake"),
      Row(testDescription: "data inside", reason: "malformed_handshake"),
      Row(testDescription: "alert inside", reason: "upstream_unreachable"),
      Row(testDescription: "ticket behind", reason: "malformed_handshake"),
      Row(testDescription: "in the clear", reason: "malformed_handshake"),
      Row(testDescription: "half", reason: "upstream_unreachable"),
    ]

    /// The server, the proxy and the keys of all rows. Every key shown is pinned, so that no pin refuses.
    final class Actors: Sendable {
      let certificates: Certificates
      let mldsa: Certificates.Identity
      let secret = KeyLogLines.digits(32)
      let workspace: Workspace
      let pinfold: Pinfold
      let server: Servers.Running
      let credentialKey: String

      init() throws {
        certificates = try Certificates.shared()
        workspace = try Workspace("played")
        let leaf = workspace.path("mldsa.pem")
        let pin = try Command.output([
          "python3", "\(Client.scripts)/mldsa_leaf.py", certificates.ecdsa.chainFile,
          "\(certificates.folder)/intermediate.key", leaf,
        ]).trimmingCharacters(in: .newlines)
        // Nobody has its key: the server makes the signature up.
        mldsa = Certificates.Identity(
          name: "mldsa", keyFile: certificates.ecdsa.keyFile, chainFile: leaf, issuersFile: "", pin: pin,
          certificatePin: "")
        credentialKey = workspace.path("credential.key")
        try Command.output([
          "openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", credentialKey,
        ])
        server = try Servers.script("played_server.py", secret, workspace.path("orders"))
        let settings = try Settings.pinned(
          certificates.ecdsa.pin, certificates.delegating.pin, pin, port: server.port, rule: #"tls13: "key_log""#)
        pinfold = try Pinfold(
          settings.with {
            $0.keyLog = "keys"
            // The server is a slow one on a busy machine: it computes in Python.
            $0.limits["handshake_seconds"] = 20
          })
      }
    }

    private static let actors = Result { try Actors() }

    @Test("By the key log", arguments: rows) func flight(row: Row) throws {
      let actors = try Self.actors.get()
      let capture = try Capture.named(row.capture)
      let shown = row.shown(actors)
      let signer = row.signer?(actors) ?? shown
      let orders = [row.testDescription, shown.chainFile, signer.keyFile, row.delegates ? actors.credentialKey : ""]
      try actors.workspace.write("orders", orders.joined(separator: "\n"))
      let before = actors.pinfold.decisions.count
      let client = try RawClient(to: actors.pinfold.port)
      let head = try client.connect("\(Capture.host):443")
      client.send(Array(capture.client[..<capture.helloEnd]))
      var got = try record(from: client)
      if row.testDescription.hasPrefix("cookie") {
        var cookie = Array(got.suffix(40))
        if row.changesCookie { cookie[7] ^= 1 }
        client.send(capture.hello(with: cookie))
        if !row.changesCookie { got += try record(from: client) }
      }
      let random = capture.client[11..<43].map { String(UInt16($0) + 256, radix: 16).dropFirst() }.joined()
      try KeyLogLines.write(
        [KeyLogLines.line(random: random, secret: actors.secret)], to: actors.pinfold.workspace.path("keys"))
      // An alert at most may follow a refusal; a flight is longer.
      let helloEnd = got.count
      while got.count < helloEnd + 100, case .bytes(let more) = client.socket.receive() { got += more }
      client.socket.shutDown()
      let passes = row.reason == "pin_match"
      let reply = ProxyReply(Array(head.head.utf8) + got)
      let isHeldBack = row.changesCookie ? reply.isSilentRefusal(allowsRetry: true) : reply.isServerHelloAlone()
      #expect(isHeldBack == !passes, "\(got.count) bytes")
      #expect(try actors.pinfold.reasons(before + 1).last == row.reason, "\(actors.pinfold.decisions.last ?? [:])")
      // The cookie is wrong before there is a flight; half a flight ends before anything can be said of it.
      let method = row.changesCookie || row.testDescription == "half" ? "none" : "key_log"
      #expect(actors.pinfold.decisions.last?["method"] as? String == method)
    }

    private func record(from client: RawClient) throws -> [UInt8] {
      var bytes = try client.receive(atLeast: 5)
      while let length = TLSRecords.firstLength(bytes), bytes.count < length {
        bytes += try client.receive(atLeast: 1)
      }
      return bytes
    }
  }
}

extension Capture {
  /// The first hello again with a cookie as its last extension, in one record (RFC 8446 §4.1.2).
  fileprivate func hello(with cookie: [UInt8]) -> [UInt8] {
    func number(_ value: Int, _ width: Int) -> [UInt8] {
      (0..<width).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }
    let added = [0, 44] + number(cookie.count + 2, 2) + number(cookie.count, 2) + cookie
    var body = Array(client[9..<helloEnd])
    // Behind version and random: session id, cipher suites, compression methods, then the extensions' length.
    var place = 34
    place += 1 + Int(body[place])
    place += 2 + (Int(body[place]) << 8 | Int(body[place + 1]))
    place += 1 + Int(body[place])
    let length = (Int(body[place]) << 8 | Int(body[place + 1])) + added.count
    body.replaceSubrange(place..<place + 2, with: number(length, 2))
    body += added
    return [22, 3, 3] + number(body.count + 4, 2) + [1] + number(body.count, 3) + body
  }
}
