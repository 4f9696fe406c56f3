import Foundation
import Glibc
import Testing

extension Operation {
  /// What a SIGHUP leaves in the state directory, where the next start reads it.
  @Suite struct ReloadStateTests {
    /// Two bundles, of which the second is the one that breaks.
    private static func settings(_ version: Int = 7, document: String = "") throws -> Settings {
      try .pinned(Certificates.shared().ecdsa.pin, port: 1).with {
        $0.version = version
        $0.document = document
        $0.bundles = ["policy.signed.json", "second.json"]
      }
    }

    private static func start(_ settings: Settings) throws -> Pinfold {
      try Pinfold(settings) { try $0.write("second.json", $0.read("policy.signed.json")) }
    }

    /// Every file in the state directory, with what is in it.
    private static func state(_ pinfold: Pinfold) throws -> [String: Data] {
      let folder = pinfold.workspace.path("state")
      var files: [String: Data] = [:]
      for name in try FileManager.default.subpathsOfDirectory(atPath: folder) {
        files[name] = FileManager.default.contents(atPath: "\(folder)/\(name)")
      }
      return files
    }

    /// Sends SIGHUP and waits until so many reloads have ended with this result.
    private static func reload(_ pinfold: Pinfold, _ message: String, count: Int = 1) throws {
      pinfold.child.signal(SIGHUP)
      try Wait.untilTrue("\(message), \(count)") {
        pinfold.log.count { ($0["message"] as? String)?.hasPrefix(message) == true } == count
      }
    }

    private static func restart(_ pinfold: Pinfold) throws -> Pinfold {
      pinfold.child.signal(SIGTERM)
      #expect(try pinfold.child.wait() == .exited(0))
      return try Pinfold(after: pinfold)
    }

    /// Guards: a version that is remembered before it is clear that the reload succeeds. The policy that stays in force
    /// would be a rollback at the next start.
    @Test("A SIGHUP that fails for one bundle remembers nothing of the other") func version() throws {
      let pinfold = try Self.start(Self.settings())
      let before = try Self.state(pinfold)
      let old = pinfold.workspace.read("policy.signed.json")
      _ = try pinfold.sign(Self.settings(8))
      try pinfold.workspace.write("second.json", "oops")
      try Self.reload(pinfold, "reload failed")
      #expect(try Self.state(pinfold) == before)
      #expect(try pinfold.metrics().sum("pinfold_policy_version") == 7)

      // The change is taken back: what is in force is what a restart begins with.
      try pinfold.workspace.write("policy.signed.json", old)
      try pinfold.workspace.write("second.json", old)
      let second = try Self.restart(pinfold)
      #expect(try second.metrics().sum("pinfold_policy_version") == 7)
      #expect(try HTTP.get("/readyz", port: second.admin)?.status == 200)
    }

    /// Guards: the same for keys, where the process and the next start would believe different ones.
    @Test("A SIGHUP that fails rotates no keys") func rotation() throws {
      let pinfold = try Self.start(Self.settings().with { $0.audit = #"file: "audit.jsonl""# })
      let before = try Self.state(pinfold)
      let next = try Pinfold.command("keygen", "-o", pinfold.workspace.path("next")).output
        .trimmingCharacters(in: .whitespacesAndNewlines)
      let document = "trusted_keys: { keys: [\"\(next)\"], required_signatures: 1 },"
      _ = try pinfold.sign(Self.settings(8, document: document), keys: ["key", "next"])
      try pinfold.workspace.write("second.json", "oops")
      try Self.reload(pinfold, "reload failed")
      #expect(try Self.state(pinfold) == before)
      #expect(!pinfold.log.contains { $0["message"] as? String == "policy keys rotated" })

      // The operator goes on with the keys of before, here and after a restart.
      _ = try pinfold.sign(Self.settings(9))
      try pinfold.workspace.write("second.json", pinfold.workspace.read("policy.signed.json"))
      try Self.reload(pinfold, "reloaded")
      #expect(try pinfold.metrics().sum("pinfold_policy_version") == 9)
      let second = try Self.restart(pinfold)
      #expect(try second.metrics().sum("pinfold_policy_version") == 9)
      let names = try FileManager.default.contentsOfDirectory(atPath: pinfold.workspace.folder.path)
      let audit = names.filter { $0.hasPrefix("audit-") }.map { pinfold.workspace.read($0) }.joined()
      #expect(audit.contains("\"reload\"") && !audit.contains("keys_rotated"), "\(audit)")
    }

    /// The first bundle and the second, and a server that has the first one too, asked so often.
    private static func beside(_ server: BundleServer, refresh: Int) throws -> (Settings, Pinfold) {
      let settings = try settings().with {
        $0.bundles.append(server.url())
        $0.policyKeys = "refresh_seconds: \(refresh)"
      }
      let pinfold = try Pinfold(settings) {
        try $0.write("second.json", $0.read("policy.signed.json"))
        try server.publish($0.path("policy.signed.json"))
        try server.start()
      }
      try Wait.untilTrue("the server's answer") { try successes(pinfold) == 2 }
      return (settings, pinfold)
    }

    /// Looks at the bundles that went well: the start is one, a good answer of a server another.
    private static func successes(_ pinfold: Pinfold) throws -> Double {
      try pinfold.metrics().sum("pinfold_policy_reloads_total", #"result="success""#)
    }

    private static func status(_ pinfold: Pinfold) throws -> String {
      try #require(try HTTP.get("/status", port: pinfold.admin)).body
    }

    /// Guards: the answer of a server, just after the SIGHUP, which has files read again.
    @Test("A server's answer does not undo the refusal of a SIGHUP", arguments: ["bundle", "configuration"])
    func answer(mistake: String) throws {
      let server = try BundleServer(Certificates.shared().ecdsa)
      let (settings, pinfold) = try Self.beside(server, refresh: 86_400)
      let before = try Self.state(pinfold)
      let configuration = pinfold.workspace.read("pinfold.json5")
      _ = try pinfold.sign(Self.settings(8))
      if mistake == "bundle" {
        try pinfold.workspace.write("second.json", "oops")
      } else {
        try pinfold.workspace.write("second.json", pinfold.workspace.read("policy.signed.json"))
        try pinfold.workspace.write("pinfold.json5", "{ nonsense: 1 }")
      }
      try Self.reload(pinfold, "reload failed")
      try Wait.untilTrue("the server's answer") { try Self.successes(pinfold) == 3 }
      #expect(try Self.state(pinfold) == before)
      #expect(try pinfold.metrics().sum("pinfold_policy_version") == 7)
      #expect(try Self.status(pinfold).contains(#""result" : "failure""#))

      // What the server itself brings still counts.
      let file = pinfold.workspace.read("policy.signed.json")
      try server.publish(pinfold.sign(Self.settings(9)))
      try pinfold.workspace.write("policy.signed.json", file)
      try Self.reload(pinfold, "reload failed", count: 2)
      try Wait.untilTrue("version 9") { try pinfold.metrics().sum("pinfold_policy_version") == 9 }
      #expect(try Self.status(pinfold).contains(#""result" : "failure""#))

      // And the operator's files, as soon as a SIGHUP succeeds.
      try pinfold.workspace.write("pinfold.json5", configuration)
      _ = try pinfold.sign(settings.with { $0.version = 10 })
      try pinfold.workspace.write("second.json", pinfold.workspace.read("policy.signed.json"))
      try Self.reload(pinfold, "reloaded")
      #expect(try pinfold.metrics().sum("pinfold_policy_version") == 10)
      #expect(try Self.status(pinfold).contains(#""result" : "success""#))
    }

    /// Guards: the same without any SIGHUP, where the next one would find a version that it refuses in force.
    @Test("A refresh takes all files or none") func refresh() throws {
      let server = try BundleServer(Certificates.shared().ecdsa)
      let (_, pinfold) = try Self.beside(server, refresh: 1)
      let before = try Self.state(pinfold)
      try pinfold.workspace.write("second.json", "oops")
      _ = try pinfold.sign(Self.settings(8))
      let good = try Self.successes(pinfold)
      try Wait.untilTrue("two refreshes") { try Self.successes(pinfold) >= good + 2 }
      #expect(try Self.state(pinfold) == before)
      #expect(try pinfold.metrics().sum("pinfold_policy_version") == 7)
      try pinfold.workspace.write("second.json", pinfold.workspace.read("policy.signed.json"))
      try Wait.untilTrue("version 8") { try pinfold.metrics().sum("pinfold_policy_version") == 8 }
    }

    /// Guards: a state that is scattered over two directories, of which each knows a part.
    @Test("Another state_dir counts from the next start on, and is untouched until then") func stateDirectory() throws {
      let settings = try Settings.pinned(Certificates.shared().ecdsa.pin, port: 1).with { $0.version = 7 }
      let pinfold = try Pinfold(settings)
      let moved = settings.with {
        $0.version = 8
        $0.stateDirectory = "elsewhere"
        // Its pseudonyms have a key, which lies in the state directory too.
        $0.audit = #"file: "audit.jsonl""#
      }
      for count in 1...2 {
        try pinfold.reload(moved)
        try Wait.untilTrue("reload \(count)") {
          pinfold.log.count { $0["message"] as? String == "reloaded" } == count
        }
        #expect(pinfold.log.last { $0["message"] as? String == "reloaded" }?["needs_restart"] as? String == "state_dir")
      }
      #expect(pinfold.workspace.read("state/policy.state").contains("\nhighest_version 8\n"))
      #expect(try Self.state(pinfold)["audit.key"] != nil)
      #expect(!FileManager.default.fileExists(atPath: pinfold.workspace.path("elsewhere")))

      let second = try Self.restart(pinfold)
      #expect(try second.metrics().sum("pinfold_policy_version") == 8)
      #expect(pinfold.workspace.read("elsewhere/policy.state").contains("\nhighest_version 8\n"))
    }
  }
}
