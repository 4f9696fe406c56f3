import Foundation
import Glibc
import Testing

extension Handshakes {
  /// TLS 1.3 judged in band, with the secrets that real clients write into a real pipe.
  ///
  /// The rule is `tls13: "key_log"`, so no probe can stand in: what passes was opened by the line, and what is refused
  /// was refused by what the flight holds. Guards: the pipe, the line's way to its tunnel, decryption, pin, chain and
  /// name, and that nothing but the ServerHello record goes out before the verdict.
  @Suite struct KeyLogTests {
    static let clients: [Client] = [.curl, .wget, .python, .node]
    private static let rule = #"tls13: "key_log""#

    /// The pinned host, one with another's pin beside it, and a pipe to log into.
    static func settings(_ pin: String, port: UInt16, rule: String = Self.rule) throws -> Settings {
      let other = try Certificates.shared().other.pin
      return try Settings.pinned(pin, port: port, rule: rule).with {
        $0.hosts["www.pinfold.test"] = "{ pins: [\"\(other)\"], \(rule) }"
        $0.resolve["www.pinfold.test:443"] = port
        $0.keyLog = "keys"
      }
    }

    struct Row: Sendable, CustomTestStringConvertible {
      let testDescription: String
      let start: @Sendable (Certificates.Identity) throws -> Servers.Running
      let identity: @Sendable (Certificates) -> Certificates.Identity
      var clients = KeyLogTests.clients
      var options: [String] = []
      var retries = false
    }

    private static func openssl(
      _ options: String...
    ) -> @Sendable (Certificates.Identity) throws -> Servers.Running {
      { identity in try Servers.openssl(identity, ["-tls1_3"] + options) }
    }

    static let rows = [
      Row(
        testDescription: "nginx, ECDSA", start: { try Servers.nginx($0, protocols: "TLSv1.3") }, identity: \.ecdsa),
      Row(testDescription: "nginx, RSA", start: { try Servers.nginx($0, protocols: "TLSv1.3") }, identity: \.rsa),
      Row(
        testDescription: "nginx, after a HelloRetryRequest",
        start: { try Servers.nginx($0, protocols: "TLSv1.3", curve: "secp384r1") }, identity: \.ecdsa, retries: true),
      Row(testDescription: "openssl s_server, RSA", start: openssl(), identity: \.rsa),
      Row(
        testDescription: "openssl s_server, Ed25519 and AES-128-GCM",
        start: openssl("-ciphersuites", "TLS_AES_128_GCM_SHA256"), identity: \.ed25519, clients: [.curl]),
      Row(
        testDescription: "openssl s_server, ChaCha20-Poly1305",
        start: openssl("-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"), identity: \.ecdsa, clients: [.curl]),
      Row(
        testDescription: "openssl s_server, AES-128-CCM", start: openssl("-ciphersuites", "TLS_AES_128_CCM_SHA256"),
        identity: \.ecdsa, clients: [.curl], options: ["--tls13-ciphers", "TLS_AES_128_CCM_SHA256"]),
    ]

    @Test("The right pin passes by the key log alone, another is refused behind the ServerHello", arguments: rows)
    func pins(row: Row) throws {
      let identity = row.identity(try Certificates.shared())
      let server = try row.start(identity)
      let upstream = try Tap(to: server.port)
      let pinfold = try Pinfold(Self.settings(identity.pin, port: upstream.port))
      let pipe = pinfold.workspace.path("keys")
      for (number, client) in row.clients.enumerated() {
        let fetched = try client.fetch(proxy: pinfold.port, options: row.options, keyLog: pipe)
        #expect(fetched.succeeded, "\(fetched) \(pinfold.child.errors)")
        let tap = try Tap(to: pinfold.port)
        let refused = try client.fetch(
          "https://www.pinfold.test/", proxy: tap.port, options: row.options, keyLog: pipe)
        #expect(!refused.succeeded, "\(refused)")
        let reasons = try pinfold.reasons(2 * number + 2)
        #expect(reasons.suffix(2) == ["pin_match", "pin_mismatch"], "\(client): \(pinfold.child.errors)")
        for connection in tap.connections {
          let reply = ProxyReply(connection.backward.all)
          #expect(reply.isServerHelloAlone(retries: row.retries), "\(client): \(reply)")
        }
      }
      #expect(upstream.connections.count == 2 * row.clients.count, "a probe was dialled")
      let metrics = try pinfold.metrics()
      let count = Double(row.clients.count)
      #expect(metrics.sum("pinfold_verifications_total", #"method="key_log""#, #"reason="pin_match""#) == count)
      #expect(metrics.sum("pinfold_verifications_total", #"method="key_log""#, #"reason="pin_mismatch""#) == count)
      #expect(metrics.sum("pinfold_probe_total") == 0)
    }

    struct Flaw: Sendable, CustomTestStringConvertible {
      let testDescription: String
      let identity: @Sendable (Certificates) -> Certificates.Identity
      let reason: String
    }

    static let flaws = [
      Flaw(testDescription: "a root that nobody trusts", identity: \.stranger, reason: "chain_invalid"),
      Flaw(testDescription: "a self-signed leaf", identity: \.selfSigned, reason: "chain_invalid"),
      Flaw(testDescription: "an expired leaf", identity: \.expired, reason: "chain_invalid"),
      Flaw(testDescription: "another name", identity: \.wrongName, reason: "name_mismatch"),
    ]

    @Test("A flight that opens is judged like any other: chain and name", arguments: flaws) func chain(
      flaw: Flaw
    ) throws {
      let identity = flaw.identity(try Certificates.shared())
      let server = try Servers.nginx(identity, protocols: "TLSv1.3")
      let pinfold = try Pinfold(Self.settings(identity.pin, port: server.port))
      let tap = try Tap(to: pinfold.port)
      let fetched = try Client.curl.fetch(
        proxy: tap.port, options: ["-k"], keyLog: pinfold.workspace.path("keys"))
      #expect(!fetched.succeeded, "\(fetched)")
      #expect(try pinfold.reasons() == [flaw.reason])
      #expect(tap.connections.allSatisfy { ProxyReply($0.backward.all).isServerHelloAlone() })
      #expect(
        try pinfold.metrics().sum("pinfold_verifications_total", #"method="key_log""#, #"reason="\#(flaw.reason)""#)
          == 1)
    }

    @Test("Where the rule demands the key log, an app that logs nothing ends in handshake_timeout") func silent() throws
    {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.3")
      let settings = try Self.settings(certificates.ecdsa.pin, port: server.port).with {
        $0.limits["handshake_seconds"] = 1
      }
      let pinfold = try Pinfold(settings)
      let tap = try Tap(to: pinfold.port)
      #expect(try !Client.curl.fetch(proxy: tap.port).succeeded)
      #expect(try pinfold.reasons() == ["handshake_timeout"])
      #expect(tap.connections.allSatisfy { ProxyReply($0.backward.all).isServerHelloAlone() })
    }

    /// Guards: a tunnel that keeps its place until the deadline though nobody is there any more.
    @Test("An app that logs nothing and leaves frees its tunnel at once") func leaves() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.3")
      let pinfold = try Pinfold(Self.settings(certificates.ecdsa.pin, port: server.port))
      #expect(try !Client.curl.fetch(proxy: pinfold.port, options: ["--max-time", "1"]).succeeded)
      let left = ContinuousClock.now
      #expect(try pinfold.reasons() == ["handshake_timeout"])
      #expect(ContinuousClock.now - left < .seconds(3))
      #expect(pinfold.decisions.first?["detail"] as? String == "the client went away before the verdict")
    }

    @Test("A TLS 1.2 answer needs no line") func tls12() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let pinfold = try Pinfold(Self.settings(certificates.ecdsa.pin, port: server.port))
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
      #expect(try pinfold.metrics().sum("pinfold_verifications_total", #"method="in_band""#) == 1)
    }

    @Test("With a probe beside it the line is used when it comes, and the probe counts when not")
    func probeBeside() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.3")
      let pinfold = try Pinfold(Self.settings(certificates.ecdsa.pin, port: server.port, rule: #"tls13: "probe""#))
      let pipe = pinfold.workspace.path("keys")
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
      // Under load the line may take longer than the probe is made to wait; that it is ever used is the point.
      try Wait.untilTrue("a verdict by key log", seconds: 20) {
        #expect(try Client.curl.fetch(proxy: pinfold.port, keyLog: pipe).succeeded)
        return try pinfold.metrics().sum("pinfold_verifications_total", #"method="key_log""#) >= 1
      }
      let metrics = try pinfold.metrics()
      #expect(metrics.sum("pinfold_verifications_total", #"method="probe""#, #"reason="pin_match""#) >= 1)
      #expect(metrics.sum("pinfold_verifications_total", #"result="failure""#) == 0)
    }

    @Test("A session that Pinfold has not seen made shows no key, with a line or without") func resumed() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.3")
      let pinfold = try Pinfold(Self.settings(certificates.ecdsa.pin, port: server.port))
      let tap = try Tap(to: pinfold.port)
      let client = try Command([
        "python3", "\(Client.scripts)/offer_session.py", "\(tap.port)", certificates.rootFile, "\(server.port)",
        "https://api.pinfold.test/", pinfold.workspace.path("keys"),
      ])
      #expect(client.ending == .exited(1), "\(client)")
      #expect(try pinfold.reasons() == ["resumption_unverified"])
      #expect(tap.connections.allSatisfy { ProxyReply($0.backward.all).isSilentRefusal })
    }
  }
}
