import Foundation
import Testing

extension Operation {
  /// What a policy says of instances and hosts, on a running proxy; and that `explain` shows what the proxy does, and why.
  @Suite struct PolicyTests {
    private func settings(_ row: PolicyRow, _ certificates: Certificates, port: UInt16) throws -> Settings {
      try Settings.pinned(certificates.other.pin, port: port).with {
        $0.hosts = ["api.pinfold.test": row.rule(certificates)]
        $0.policy = row.policy
        $0.instance = row.instance
        $0.builtinPins = row.builtin(certificates)
        $0.version = row.version
      }
    }

    @Test("The policy decides as it says", arguments: PolicyRow.gates + PolicyRow.rollouts + PolicyRow.pins)
    func decides(_ row: PolicyRow) throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let pinfold = try Pinfold(settings(row, certificates, port: server.port))
      let fetched = try Client.curl.fetch(proxy: pinfold.port)
      #expect(try pinfold.reasons() == [row.reason])
      #expect(fetched.succeeded == ["pin_match", "chain_verified"].contains(row.reason), "\(fetched)")
      let explained = try Pinfold.command(
        "explain", "-c", pinfold.workspace.path("pinfold.json5"), "api.pinfold.test")
      #expect(explained.output.contains("\nmode: \(row.mode)\n"), "\(explained)")
      #expect(explained.output.contains(row.step), "\(explained)")
      #expect(explained.succeeded == (row.mode != "blocked"))
      let enforcement = try pinfold.metrics().sum(
        "pinfold_enforcement", #"host="api.pinfold.test""#, #"state="\#(row.mode)""#)
      #expect(enforcement == (row.mode == "blocked" ? 0 : 1))
    }

    /// Guards: being switched off is not being let alone.
    @Test("A rule that is switched off still has its chain verified") func switchedOff() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.stranger, protocols: "TLSv1.2")
      let settings = try Settings.pinned(certificates.stranger.pin, port: server.port).with {
        $0.policy = "enabled: false"
      }
      let pinfold = try Pinfold(settings)
      #expect(try !Client.curl.fetch(proxy: pinfold.port, options: ["-k"]).succeeded)
      #expect(try pinfold.reasons() == ["chain_invalid"])
    }

    @Test("A rule's pins end while the proxy runs, to the second") func expiry() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let clock = try ShiftedClock()
      let end = Date.now.addingTimeInterval(3600)
      let text = ISO8601DateFormatter().string(from: end)
      let pinfold = try Pinfold(
        Settings.pinned(certificates.ecdsa.pin, port: server.port, rule: "expires_at: \"\(text)\"").with {
          $0.environment = clock.environment
        })
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
      #expect(
        try pinfold.metrics().sum("pinfold_pins_expiry_timestamp_seconds", #"host="api.pinfold.test""#)
          == end.timeIntervalSince1970.rounded(.down))
      try clock.shift(by: 3600)
      let reply = try RawClient(to: pinfold.port).connect("api.pinfold.test:443")
      #expect(reply.statusLine.contains(" 403"), "\(reply)")
      #expect(try pinfold.reasons(2) == ["pin_match", "pins_expired"])
    }

    @Test("The kill switch works on a running proxy, and can be taken back") func killSwitch() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let on = try Settings.pinned(certificates.other.pin, port: server.port)
      let pinfold = try Pinfold(on)
      for (version, policy, passes) in [(1, "", false), (2, "enabled: false", true), (3, "", false)] {
        if version > 1 {
          try pinfold.reload(
            on.with {
              $0.version = version
              $0.policy = policy
            })
        }
        try Wait.untilTrue("version \(version)") {
          try pinfold.metrics().sum("pinfold_policy_version") == Double(version)
        }
        #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded == passes, "version \(version)")
      }
    }

    /// Guards: a user's side is the user's, on the instance that others share.
    @Test("A rollout by user is for those users, whoever else is there") func users() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let settings = try Settings.pinned(certificates.other.pin, port: server.port).with {
        $0.credentials = "users"
        $0.policy = #"rollout_strategy: { method: "whitelist", seed: "user_id", ids: ["alice"] }"#
      }
      let stage = try BreakerStage(settings, users: ["alice", "bob"])
      #expect(try stage.tunnels(1, "--user", "alice:secret") == ["refused": 1])
      #expect(try stage.tunnels(1, "--user", "bob:secret") == ["ecdsa": 1])
      #expect(try stage.pinfold.reasons(2) == ["pin_mismatch", "chain_verified"])
      for (user, mode) in [("alice", "enforce"), ("bob", "disabled")] {
        let explained = try Pinfold.command(
          "explain", "-c", stage.pinfold.workspace.path("pinfold.json5"), "--user", user, "api.pinfold.test")
        #expect(explained.output.contains("\nmode: \(mode)\n"), "\(explained)")
      }
    }

    /// Guards: an instance must not change sides by a restart.
    @Test("The installation's id is made once, for its owner, and survives a restart") func installID() throws {
      let settings = try Settings.pinned(Certificates.shared().ecdsa.pin, port: 1)
      let pinfold = try Pinfold(settings)
      let id = pinfold.workspace.read("state/install.id")
      #expect(id.count == 33)
      let attributes = try FileManager.default.attributesOfItem(atPath: pinfold.workspace.path("state/install.id"))
      #expect(attributes[.posixPermissions] as? Int == 0o600)
      let check = try Pinfold.command("check", "-c", pinfold.workspace.path("pinfold.json5"))
      #expect(check.output.contains("install_id: \(id)"), "\(check)")
      pinfold.child.signal(15)
      try pinfold.child.wait()
      _ = try Pinfold(after: pinfold)
      #expect(pinfold.workspace.read("state/install.id") == id)
    }

    @Test("Where it cannot be kept it is not known, and the proxy serves") func noInstallID() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let settings = try Settings.pinned(certificates.ecdsa.pin, port: server.port).with {
        $0.policy = #"rollout_percentage: 0, rollout_strategy: { seed: "install_id" }"#
      }
      let pinfold = try Pinfold(settings) {
        // A directory where the file should be: not even root can write it.
        try FileManager.default.createDirectory(
          atPath: $0.path("state/install.id"), withIntermediateDirectories: true)
      }
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
      #expect(try pinfold.reasons() == ["pin_match"], "not known is inside")
      #expect(pinfold.log.contains { ($0["warning"] as? String)?.contains("install_id is not known") == true })
    }
  }
}
