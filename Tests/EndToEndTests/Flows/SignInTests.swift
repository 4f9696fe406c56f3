import Foundation
import Testing

extension Operation {
  /// An OAuth 2.1 sign-in over three hosts, each pinned by a rule of its own: identity, authorization server, resource
  /// server, with PKCE, a pushed request and DPoP proofs bound to nonces. The client is unmodified.
  ///
  /// Guards: that nothing of the app's own security is touched, and that one swapped key refuses one host only.
  @Suite struct SignInTests {
    static let versions = ["TLSv1_2", "TLSv1_3"]
    static let roles = ["identity", "auth", "resource"]

    /// Servers, proxy and the folder that holds the hosts' keys.
    private struct Stage {
      let folder = try? Workspace("sign-in")
      let servers: Child
      let pinfold: Pinfold

      init(version: String) throws {
        let certificates = try Certificates.shared()
        let identities = ["identity": certificates.ecdsa, "auth": certificates.rsa, "resource": certificates.ed25519]
        let folder = try #require(folder)
        for (role, identity) in identities { try Program.install(identity, as: "\(role).pem", in: folder) }
        let servers = try Program.start("sign_in_servers.py", [folder.folder.path, version])
        self.servers = servers
        let ports = try Wait.until("the servers' ports") { Program.lines(servers).first as? [String: Int] }
        var settings = Settings()
        settings.rootFile = certificates.rootFile
        for (role, identity) in identities {
          settings.hosts["\(role).pinfold.test"] = "{ pins: { primary: \"\(identity.pin)\" } }"
          settings.resolve["\(role).pinfold.test:443"] = UInt16(try #require(ports[role]))
        }
        pinfold = try Pinfold(settings)
      }
    }

    @Test("The sign-in goes through, and every proof arrives as it was sent", arguments: versions)
    func signIn(version: String) throws {
      let stage = try Stage(version: version)
      let client = try Program.start("sign_in_client.py", [], proxy: stage.pinfold.port)
      #expect(try client.wait(seconds: 40) == .exited(0), "\(client.errors)")
      let lines = Program.lines(client)
      #expect(lines.last?["subject"] as? String == "did:web:sam.pinfold.test", "\(client.output)")
      #expect(lines.last?["name"] as? String == "Sam", "\(client.output)")
      // Servers answer each first proof with a nonce, so that pushed request and profile are asked for twice.
      let sent = lines.compactMap { $0["proof"] as? String }
      let arrived = Program.lines(stage.servers).compactMap { $0["proof"] as? String }
      #expect(sent == arrived && sent.count >= 5 && Set(sent).count == sent.count)
      #expect(Set(try stage.pinfold.reasons(lines.count - 1)) == ["pin_match"])
    }

    @Test(
      "A key that is swapped in the middle refuses its host from the next request on, and no other", arguments: roles)
    func swapped(role: String) throws {
      let stage = try Stage(version: "TLSv1_3")
      let folder = try #require(stage.folder)
      let client = try Program.start("sign_in_client.py", [folder.folder.path], proxy: stage.pinfold.port)
      try Wait.untilTrue("the pause") { FileManager.default.fileExists(atPath: folder.path("paused")) }
      let before = Program.lines(client).count
      #expect(Program.lines(client).allSatisfy { ($0["status"] as? Int ?? 0) != 0 })
      // A certificate of the same authority for the same name: what no client can tell but by its pin.
      try Program.install(Certificates.shared().other, as: "\(role).pem", in: folder)
      try folder.write("go", "")
      try client.wait(seconds: 40)
      let after = Program.lines(client).dropFirst(before).filter { $0["host"] is String }
      #expect(!after.isEmpty)
      for line in after {
        let isSwapped = line["host"] as? String == "\(role).pinfold.test"
        #expect((line["status"] as? Int == 0) == isSwapped, "\(line)")
      }
      #expect(after.contains { $0["host"] as? String == "\(role).pinfold.test" })
      let refused = try Wait.until("a refusal's decision line") {
        let refused = stage.pinfold.decisions.filter { $0["verdict"] as? String == "refuse" }
        return refused.isEmpty ? nil : refused
      }
      for line in refused {
        #expect(line["reason"] as? String == "pin_mismatch" && line["host"] as? String == "\(role).pinfold.test:443")
      }
    }
  }
}
