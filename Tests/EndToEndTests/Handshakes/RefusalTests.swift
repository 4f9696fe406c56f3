import Foundation
import Testing

extension Handshakes {
  /// What the upstream shows is wrong in exactly one way, and the pin always matches the leaf it shows: so nothing but
  /// the named check can refuse. Each refusal has its own reason, and nothing of the flight reaches the client.
  @Suite struct RefusalTests {
    struct Row: Sendable, CustomTestStringConvertible {
      let testDescription: String
      let identity: @Sendable (Certificates) -> Certificates.Identity
      let reason: String
      var trustsStranger = false
      var pinsRoot = false
      var rule = ""
    }

    static let rows = [
      Row(
        testDescription: "a chain from a root that nobody trusts, the pinned key behind it", identity: \.stranger,
        reason: "chain_invalid"),
      Row(
        testDescription: "a self-signed certificate with the pinned key", identity: \.selfSigned,
        reason: "chain_invalid"),
      Row(
        testDescription: "an expired certificate with the pinned key", identity: \.expired, reason: "chain_invalid"),
      Row(
        testDescription: "the pinned key in a certificate of another name", identity: \.wrongName,
        reason: "name_mismatch"),
      Row(
        testDescription: "the pinned authority appended to a stranger's chain, the stranger not trusted",
        identity: \.strangerWithOurChain, reason: "chain_invalid", pinsRoot: true, rule: #"match: "chain""#),
      Row(
        testDescription: "the pinned authority appended to a stranger's chain, the stranger trusted",
        identity: \.strangerWithOurChain, reason: "pin_mismatch", trustsStranger: true, pinsRoot: true,
        rule: #"match: "chain""#),
      Row(
        testDescription: "the authority's own pin where only the leaf counts", identity: \.ecdsa,
        reason: "pin_mismatch", pinsRoot: true),
    ]

    @Test("Refused for one reason", arguments: rows, ["TLSv1.2", "TLSv1.3"])
    func refused(row: Row, protocols: String) throws {
      let certificates = try Certificates.shared()
      let identity = row.identity(certificates)
      let server = try Servers.nginx(identity, protocols: protocols)
      let pin = row.pinsRoot ? certificates.rootPin : identity.pin
      let settings = try Settings.pinned(pin, port: server.port, rule: row.rule).with {
        if row.trustsStranger { $0.rootFile = certificates.strangerRootFile }
      }
      let pinfold = try Pinfold(settings)
      let tap = try Tap(to: pinfold.port)
      // -k: the client would take anything, so that nothing but Pinfold refuses.
      let fetched = try Client.curl.fetch(proxy: tap.port, options: ["-k"])
      #expect(!fetched.succeeded, "\(fetched)")
      #expect(try pinfold.reasons() == [row.reason])
      #expect(tap.connections.allSatisfy { ProxyReply($0.backward.all).isSilentRefusal })
      let metrics = try pinfold.metrics()
      #expect(
        metrics.sum("pinfold_verifications_total", #"result="failure""#, #"reason="\#(row.reason)""#) == 1)
    }

    /// The counterpart: the same rule lets a chain pass that really leads to the pinned authority.
    @Test("A pinned authority passes where the chain was built through it", arguments: ["TLSv1.2", "TLSv1.3"])
    func pinnedAuthorityPasses(protocols: String) throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: protocols)
      for pin in [certificates.rootPin, certificates.intermediatePin] {
        let pinfold = try Pinfold(.pinned(pin, port: server.port, rule: #"match: "chain""#))
        let fetched = try Client.curl.fetch(proxy: pinfold.port)
        #expect(fetched.succeeded, "\(fetched)")
        #expect(try pinfold.reasons() == ["pin_match"])
      }
    }

    /// Guards: `tls13: "deny"` for what cannot be watched in band.
    @Test("TLS 1.3 is refused where the rule denies it, TLS 1.2 is not") func tls13Denied() throws {
      let certificates = try Certificates.shared()
      for (protocols, reason) in [("TLSv1.3", "tls13_denied"), ("TLSv1.2", "pin_match")] {
        let server = try Servers.nginx(certificates.ecdsa, protocols: protocols)
        let pinfold = try Pinfold(.pinned(certificates.ecdsa.pin, port: server.port, rule: #"tls13: "deny""#))
        let tap = try Tap(to: pinfold.port)
        let fetched = try Client.curl.fetch(proxy: tap.port)
        #expect(fetched.succeeded == (reason == "pin_match"), "\(fetched)")
        #expect(try pinfold.reasons() == [reason])
        if reason != "pin_match" {
          #expect(tap.connections.allSatisfy { ProxyReply($0.backward.all).isSilentRefusal })
        }
      }
    }

    /// Guards: the time that certificates are judged by. The harness's are valid for 30 days; a clock that was set back
    /// makes an expired one look valid, and what is known to have passed says otherwise.
    @Test("A clock that was set back revives no certificate", arguments: ["TLSv1.2", "TLSv1.3"])
    func clockSetBack(protocols: String) throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: protocols)
      let pinfold = try Pinfold(.pinned(certificates.ecdsa.pin, port: server.port)) { workspace in
        try FileManager.default.createDirectory(
          atPath: workspace.path("state"), withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        let path = try workspace.write(
          "state/policy.state", "pinfold-state v1\nhighest_version 0\nclock_floor 2040-01-01T00:00:00Z\n")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
      }
      #expect(try !Client.curl.fetch(proxy: pinfold.port, options: ["-k"]).succeeded)
      #expect(try pinfold.reasons() == ["chain_invalid"])
    }

    /// Guards: anonymous suites prove no key, whatever pins say.
    @Test("An anonymous suite is refused") func anonymousSuite() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.openssl(certificates.rsa, ["-tls1_2", "-cipher", "ADH-AES128-SHA256:@SECLEVEL=0"])
      let pinfold = try Pinfold(.pinned(certificates.rsa.pin, port: server.port))
      let tap = try Tap(to: pinfold.port)
      let options = ["-k", "--tls-max", "1.2", "--ciphers", "ADH-AES128-SHA256:@SECLEVEL=0"]
      #expect(try !Client.curl.fetch(proxy: tap.port, options: options).succeeded)
      #expect(try pinfold.reasons() == ["anonymous_suite"])
      #expect(tap.connections.allSatisfy { ProxyReply($0.backward.all).isSilentRefusal })
    }
  }
}
