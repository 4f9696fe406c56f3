import Foundation
import Glibc
import Testing

extension Operation {
  /// Signing keys that follow one another while proxies run.
  @Suite struct KeyRotationTests {
    private let certificates: Certificates
    private let server: BundleServer

    init() throws {
      certificates = try Certificates.shared()
      server = try BundleServer(certificates.ecdsa)
      try server.start()
    }

    private func settings(_ version: Int, next: [String] = []) throws -> Settings {
      try .pinned(certificates.ecdsa.pin, port: 1).with {
        $0.version = version
        $0.bundles = [server.url()]
        $0.policyKeys = "refresh_seconds: 1"
        guard !next.isEmpty else { return }
        let keys = next.map { "\"\($0)\"" }.joined(separator: ", ")
        $0.document = "trusted_keys: { keys: [\(keys)], required_signatures: \(next.count) },"
      }
    }

    private func newKey(_ pinfold: Pinfold, _ name: String) throws -> String {
      try Command.output([Pinfold.binary, "keygen", "-o", pinfold.workspace.path(name)])
        .trimmingCharacters(in: .whitespacesAndNewlines)
    }

    private func waitForVersion(_ version: Int, _ pinfold: Pinfold) throws {
      try Wait.untilTrue("version \(version)") {
        try pinfold.metrics().sum("pinfold_policy_version") == Double(version)
      }
    }

    private func waitForRefusal(_ cause: String, _ pinfold: Pinfold) throws {
      try Wait.untilTrue("a refusal by \(cause)") { pinfold.log.contains { $0["cause"] as? String == cause } }
    }

    /// Guards: that a stolen old key is worth nothing after the rotation, restarts included.
    @Test("New keys take over by a policy that both have signed, and the old ones are out for good")
    func rotation() throws {
      let pinfold = try Pinfold(settings(1))
      try server.publish(pinfold.workspace.path("policy.signed.json"))
      try waitForVersion(1, pinfold)
      let next = try newKey(pinfold, "next")

      let sealed = try pinfold.sign(settings(2, next: [next]), keys: ["key", "next"])
      try server.publish(sealed)
      try waitForVersion(2, pinfold)
      try Wait.untilTrue("a line about the rotation") {
        pinfold.log.contains { $0["message"] as? String == "policy keys rotated" && $0["policy"] as? Int == 2 }
      }
      try server.publish(pinfold.sign(settings(3), keys: ["key"]))
      try waitForRefusal("signatures", pinfold)
      try server.publish(pinfold.sign(settings(3), keys: ["next"]))
      try waitForVersion(3, pinfold)

      server.stop()
      try pinfold.end()
      let second = try Pinfold(after: pinfold)
      try waitForVersion(3, second)
      try server.publish(second.sign(settings(4), keys: ["key"]))
      try server.start()
      try waitForRefusal("signatures", second)
      try server.publish(second.sign(settings(4), keys: ["next"]))
      try waitForVersion(4, second)

      // check says which keys count, and that the configuration is behind.
      let check = try Pinfold.command("check", "-c", second.workspace.path("pinfold.json5"))
      #expect(check.succeeded, "\(check)")
      #expect(check.output.contains("rotated_by: 2\ntrusted_key: \(next)\nrequired_signatures: 1\n"), "\(check)")
      #expect(check.output.contains("warning: policy.trusted_keys: other keys count since version 2"))
    }

    @Test("A rotation that only one side has signed is refused, and sign does not make one") func oneSided() throws {
      let pinfold = try Pinfold(settings(1))
      try server.publish(pinfold.workspace.path("policy.signed.json"))
      try waitForVersion(1, pinfold)
      let next = try newKey(pinfold, "next")
      try server.publish(pinfold.sign(settings(2, next: [next]), keys: ["next"]))
      try waitForRefusal("signatures", pinfold)

      let document = try pinfold.workspace.write("policy.json5", settings(2, next: [next]).policyText)
      let refused = try Pinfold.command(
        "sign", "-k", pinfold.workspace.path("key"), document, "-o", pinfold.workspace.path("out"))
      #expect(refused.ending == .exited(1))
      #expect(refused.errors.contains("it names new keys and is not signed by enough of them: 0 of 1 required"))
      #expect(pinfold.workspace.read("out").isEmpty)
      #expect(try pinfold.metrics().sum("pinfold_policy_version") == 1)
    }

    @Test("verify shows who comes next, and wants their signatures") func verify() throws {
      let pinfold = try Pinfold(settings(1))
      let next = try newKey(pinfold, "next")
      let path = try pinfold.sign(settings(2, next: [next]), keys: ["key", "next"])
      let good = try Pinfold.command("verify", "-p", pinfold.trustedKey, path)
      #expect(good.succeeded && good.output.contains("\nnext_keyid: ") && good.output.contains("\nnext_required: 1\n"))
      let text = pinfold.workspace.read("policy.signed.json")
      let start = try #require(text.range(of: ",{\"keyid\""))
      let cut = try pinfold.workspace.write("cut", text[..<start.lowerBound] + "]}\n")
      let bad = try Pinfold.command("verify", "-p", pinfold.trustedKey, cut)
      #expect(bad.ending == .exited(1) && bad.errors.contains("it names new keys"), "\(bad)")
    }
  }
}
