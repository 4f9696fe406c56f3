import Foundation
import Testing

extension Operation {
  /// The command line: what each command prints and how it exits. 0 good, 1 refused or failed, 64 usage, 78 config.
  @Suite struct CommandTests {
    private func keygen(_ workspace: Workspace, _ name: String = "key") throws -> String {
      let made = try Pinfold.command("keygen", "-o", workspace.path(name))
      #expect(made.succeeded, "\(made)")
      return made.output.trimmingCharacters(in: .newlines)
    }

    private func sign(_ workspace: Workspace, _ policy: String, _ keys: String...) throws -> Command {
      let path = try workspace.write("policy.json5", policy)
      let arguments = keys.flatMap { ["-k", workspace.path($0)] } + [path, "-o", workspace.path("signed.json")]
      return try Command([Pinfold.binary, "sign"] + arguments)
    }

    private var settings: Settings {
      get throws { try Settings.pinned(Certificates.shared().ecdsa.pin, port: 1) }
    }

    @Test("keygen prints the 32 public bytes on one line and keeps the secret to its owner") func keygen() throws {
      let workspace = try Workspace("keygen")
      let made = try Pinfold.command("keygen", "-o", workspace.path("key"))
      #expect(made.output.hasSuffix("\n") && made.output.split(separator: "\n").count == 1, "\(made)")
      #expect(Data(base64Encoded: made.output.trimmingCharacters(in: .newlines))?.count == 32)
      let attributes = try FileManager.default.attributesOfItem(atPath: workspace.path("key"))
      #expect(attributes[.posixPermissions] as? Int == 0o600)
      let before = workspace.read("key")
      #expect(
        try !Pinfold.command("keygen", "-o", workspace.path("key")).succeeded, "an existing key is not written over")
      #expect(workspace.read("key") == before)
    }

    @Test("What sign makes, verify takes; another key's or a changed bundle it does not") func signAndVerify() throws {
      let workspace = try Workspace("sign")
      let key = try keygen(workspace)
      let stranger = try keygen(workspace, "stranger")
      #expect(try sign(workspace, settings.policyText, "key").succeeded)
      let signed = workspace.read("signed.json")
      #expect(signed.contains("application/vnd.pinfold.policy+json"))
      #expect(try Pinfold.command("verify", "-p", key, workspace.path("signed.json")).succeeded)
      #expect(try Pinfold.command("verify", "-p", stranger, workspace.path("signed.json")).ending == .exited(1))
      let place = try #require(signed.range(of: #""payload":"#)).upperBound
      let from = signed.index(place, offsetBy: 20)
      var changed = signed
      changed.replaceSubrange(from...from, with: signed[from] == "A" ? "B" : "A")
      try workspace.write("changed.json", changed)
      #expect(try Pinfold.command("verify", "-p", key, workspace.path("changed.json")).ending == .exited(1))
    }

    @Test("The signature is over DSSE's bytes: openssl verifies it too") func signatureIsDSSE() throws {
      let workspace = try Workspace("dsse")
      let key = try keygen(workspace)
      #expect(try sign(workspace, settings.policyText, "key").succeeded)
      let object = try JSONSerialization.jsonObject(with: Data(workspace.read("signed.json").utf8))
      let envelope = try #require(object as? [String: Any])
      let payloadText = try #require(envelope["payload"] as? String)
      let payload = try #require(Data(base64Encoded: payloadText))
      let signatures = try #require(envelope["signatures"] as? [[String: String]])
      let signature = try #require(signatures.first?["sig"].flatMap { Data(base64Encoded: $0) })
      let type = "application/vnd.pinfold.policy+json"
      let message = Data("DSSEv1 \(type.utf8.count) \(type) \(payload.count) ".utf8) + payload
      let publicKey = try #require(Data(base64Encoded: key))
      let prefix: [UInt8] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00]
      try (Data(prefix) + publicKey).write(to: workspace.folder.appending(path: "public.der"))
      try message.write(to: workspace.folder.appending(path: "message"))
      try signature.write(to: workspace.folder.appending(path: "signature"))
      let check = try Command([
        "openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-keyform", "DER", "-inkey", workspace.path("public.der"),
        "-in", workspace.path("message"), "-sigfile", workspace.path("signature"),
      ])
      #expect(check.succeeded, "\(check)")
      try publicKey.write(to: workspace.folder.appending(path: "raw"))
      let hash = try Command.output(["openssl", "dgst", "-sha256", "-r", workspace.path("raw")])
      #expect(signatures.first?["keyid"] == String(hash.prefix(16)))
    }

    @Test(
      "sign refuses what a proxy would refuse",
      arguments: [
        "{", "{ version: 1 }", #"{ version: 1, ssl_pinning_config: { hosts: { "a*.test": { pins: [] } } } }"#,
        #"{ version: 1, issued_at: "2026-01-01T00:00:00Z", expires_at: "2027-01-01T00:00:00Z", ssl_pinning_config: { hosts: { "a.test": { pins: ["sha256/short"] } } } }"#,
      ])
    func signRefuses(policy: String) throws {
      let workspace = try Workspace("bad")
      _ = try keygen(workspace)
      let refused = try sign(workspace, policy, "key")
      #expect(!refused.succeeded && !refused.errors.isEmpty, "\(refused)")
      #expect(workspace.read("signed.json").isEmpty)
    }

    @Test("check and explain read what run would read") func checkAndExplain() throws {
      var settings = try settings
      settings.hosts["*.pinfold.test"] = "{ pins: [\"\(try Certificates.shared().rsa.pin)\"] }"
      let workspace = try Workspace("check")
      let key = try keygen(workspace)
      #expect(try sign(workspace, settings.policyText, "key").succeeded)
      let text = settings.configurationText(proxy: 1, admin: 2, trustedKey: key)
        .replacing("policy.signed.json", with: "signed.json")
      let file = try workspace.write("pinfold.json5", text)
      let check = try Pinfold.command("check", "-c", file)
      #expect(check.succeeded, "\(check)")
      let explained = try Pinfold.command("explain", "-c", file, "www.pinfold.test")
      #expect(explained.succeeded && explained.output.contains("rule: *.pinfold.test"), "\(explained)")
      #expect(explained.output.contains("mode: enforce") && explained.output.contains("host: www.pinfold.test"))
      let blocked = try Pinfold.command("explain", "-c", file, "www.elsewhere.test:443")
      #expect(blocked.ending == .exited(1) && blocked.output.contains("mode: blocked"), "\(blocked)")

      let broken = try workspace.write("broken.json5", text.replacing("state_dir", with: "state_dri"))
      for command in ["check", "run"] {
        let refused = try Pinfold.command(command, "-c", broken)
        #expect(refused.ending == .exited(78), "\(refused)")
        #expect(refused.errors.contains("state_dri") && refused.errors.contains("state_dir"), "\(refused)")
      }
      try FileManager.default.removeItem(atPath: workspace.path("signed.json"))
      #expect(try Pinfold.command("run", "-c", file).ending == .exited(78), "a bundle that does not exist")
    }

    @Test("pin prints the pins that openssl works out, leaf first") func pin() throws {
      let certificates = try Certificates.shared()
      let fromFile = try Pinfold.command("pin", "--cert", certificates.ecdsa.chainFile)
      #expect(fromFile.output.split(separator: " ").first == Substring(certificates.ecdsa.pin), "\(fromFile)")
      let server = try Servers.nginx(certificates.ecdsa)
      let fromServer = try Pinfold.command("pin", "127.0.0.1:\(server.port)")
      #expect(fromServer.output.split(separator: " ").first == Substring(certificates.ecdsa.pin), "\(fromServer)")
      #expect(fromServer.output.contains(certificates.intermediatePin))
    }

    @Test(
      "Usage errors exit 64 and say what was wrong",
      arguments: ["nonsense", "run --nonsense", "sign", "verify -p", "explain", "version extra"])
    func usage(line: String) throws {
      let command = try Command([Pinfold.binary] + line.split(separator: " ").map(String.init))
      #expect(command.ending == .exited(64) && !command.errors.isEmpty && command.output.isEmpty, "\(command)")
    }

    @Test(
      "Help is there for the whole and for every command",
      arguments: ["", "run", "check", "explain", "pin", "keygen", "sign", "verify", "demo", "version", "status"])
    func help(name: String) throws {
      let command = try Command([Pinfold.binary] + [name, "--help"].filter { !$0.isEmpty })
      #expect(command.succeeded && command.output.contains("pinfold \(name)") && command.errors.isEmpty, "\(command)")
    }

    @Test("version names the release") func version() throws {
      let command = try Pinfold.command("version")
      #expect(command.succeeded && command.output.contains(/\d+\.\d+\.\d+/), "\(command)")
    }
  }
}
