import Foundation
import Testing

extension Operation {
  /// What nobody but the signed policy and a client's own failures can bring the breaker to do.
  @Suite struct BreakerAttackTests {
    /// Guards: `auto_disable` is the policy's word alone. He shows a chain that verifies, the right name and proofs of his
    /// key, as a rotation would; he shows it as often as he likes.
    @Test(
      "An interceptor with a valid certificate suspends nothing without auto_disable",
      arguments: ["--tls12", "--sni=\(BreakerStage.host)"])
    func interceptor(option: String) throws {
      let certificates = try Certificates.shared()
      let genuine = try Servers.nginx(certificates.ecdsa)
      let evil = try Servers.nginx(certificates.other)
      let interceptor = try Interceptor(.everyConnection, genuine: genuine.port, evil: evil.port)
      let stage = try BreakerStage(BreakerStage.settings(port: interceptor.port, autoDisable: false, samples: 1))
      #expect(try stage.tunnels(200, option) == ["refused": 200])
      #expect(interceptor.interceptions >= 200)
      #expect(try Set(stage.pinfold.reasons(200)) == ["pin_mismatch"])
      #expect(try stage.trips("suspend") == 0)
      #expect(try stage.trips("alert") == 1)
      let figures = try stage.figures()
      #expect(figures.suspensions.isEmpty && figures.enabled && !figures.autoDisable)
      #expect(figures.alerts.map(\.rule) == [BreakerStage.host, BreakerStage.host])
      #expect(try stage.state() == ["enforce"])
      #expect(try stage.ratio() == 1)
      #expect(stage.kept.isEmpty)
      let line = try #require(stage.lines(BreakerStage.alerted).first)
      #expect(line["why"] as? String == "auto_disable_off" && line["suspended"] as? Bool == false)
    }

    /// What the operator takes upon himself with `auto_disable: true`; docs/threat-model.md says so.
    @Test("With auto_disable the same interceptor is let through once he has been refused often enough")
    func price() throws {
      let certificates = try Certificates.shared()
      let genuine = try Servers.nginx(certificates.ecdsa)
      let evil = try Servers.nginx(certificates.other)
      let interceptor = try Interceptor(.everyConnection, genuine: genuine.port, evil: evil.port)
      let stage = try BreakerStage(BreakerStage.settings(port: interceptor.port))
      #expect(try stage.tunnels(30, "--tls12") == ["refused": 20, "other": 10])
      #expect(try stage.pinfold.reasons(30).suffix(10).allSatisfy { $0 == "suspended_mismatch" })
    }

    /// Guards: what counts. With one sample of one percent a single failure that counted would suspend at once.
    @Test("A thousand failures in the shape of an attack count for nothing") func attackShaped() throws {
      let certificates = try Certificates.shared()
      let genuine = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let stranger = try Servers.nginx(certificates.stranger)
      let wrongName = try Servers.nginx(certificates.wrongName)
      // A genuine flight for another client random: its signature does not hold for this one.
      let replayed = try FakeUpstream { connection in
        var hello = connection.readRecord()
        guard hello.count > 20, let server = try? Socket.connect(to: genuine.port) else { return }
        hello[15] ^= 1
        server.send(hello)
        server.setTimeout(seconds: 5)
        guard case .bytes(let bytes) = server.receive() else { return }
        connection.socket.send(bytes)
        connection.readToEnd(seconds: 5)
      }
      let malformed = try FakeUpstream { connection in
        connection.readRecord()
        connection.socket.send([22, 3, 3, 0, 4, 2, 0, 0, 0])
        connection.readToEnd(seconds: 5)
      }
      // Static RSA signs nothing: whoever copied the certificate could send this flight.
      let unsigned = try Servers.nginx(
        certificates.rsa, protocols: "TLSv1.2", options: "ssl_ciphers AES128-GCM-SHA256;")
      let upstreams: [(host: String, port: UInt16, options: [String], reason: String)] = [
        ("chain.pinfold.test", stranger.port, ["--tls12"], "chain_invalid"),
        ("chain13.pinfold.test", stranger.port, [], "chain_invalid"),
        ("name.pinfold.test", wrongName.port, ["--tls12"], "name_mismatch"),
        ("proof.pinfold.test", replayed.port, ["--tls12"], "key_not_proven"),
        ("malformed.pinfold.test", malformed.port, ["--tls12"], "malformed_handshake"),
        ("sni.pinfold.test", genuine.port, ["--tls12", "--sni", "www.pinfold.test"], "sni_mismatch"),
        ("unsigned.pinfold.test", unsigned.port, ["--tls12", "--ciphers", "AES128-GCM-SHA256"], "pin_mismatch"),
      ]
      let settings = try Settings.pinned(certificates.other.pin, port: genuine.port).with {
        for upstream in upstreams {
          $0.hosts[upstream.host] = "{ pins: [\"\(certificates.other.pin)\"] }"
          $0.resolve["\(upstream.host):443"] = upstream.port
        }
        $0.hosts["expired.pinfold.test"] =
          "{ pins: [\"\(certificates.other.pin)\"], expires_at: \"2021-01-01T00:00:00Z\" }"
        $0.resolve["expired.pinfold.test:443"] = genuine.port
        $0.policy =
          "monitoring: { auto_disable: true, min_samples: 1, failure_threshold: 1, max_disabled_percent: 100 }"
      }
      let stage = try BreakerStage(settings)
      for upstream in upstreams {
        let served = try stage.tunnels(170, ["--host", upstream.host] + upstream.options)
        #expect(served == ["refused": 170], "\(upstream.host) \(served)")
      }
      let reasons = Dictionary(grouping: try stage.pinfold.reasons(1190)) { $0 }.mapValues(\.count)
      #expect(
        reasons == [
          "chain_invalid": 340, "name_mismatch": 170, "key_not_proven": 170, "malformed_handshake": 170,
          "sni_mismatch": 170, "pin_mismatch": 170,
        ])
      for _ in 0..<50 {
        let reply = try RawClient(to: stage.pinfold.port).connect("expired.pinfold.test:443")
        #expect(!reply.statusLine.contains(" 200"))
      }
      let figures = try stage.figures()
      #expect(figures.alerts.isEmpty && figures.suspensions.isEmpty)
      let metrics = try stage.pinfold.metrics()
      #expect(metrics.sum("pinfold_breaker_trips_total") == 0)
      #expect(!metrics.has("pinfold_failure_ratio"))
      #expect(metrics.sum("pinfold_enforcement", #"state="suspended""#) == 0)
    }

    /// Guards: windows and suspensions are each client's own. The server is honest and has two certificates; the client
    /// offers a hello that gets it the one that is not pinned, which looks like a rotation to the last byte.
    @Test("One client cannot trip another's host") func otherClients() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, certificates.rsa)
      let stage = try BreakerStage(BreakerStage.settings(port: server.port))
      #expect(try stage.tunnels(100, from: "127.0.0.2", "--rsa") == ["refused": 20, "rsa": 80])
      let suspension = try #require(try stage.figures().suspensions.first)
      #expect(suspension.rule == BreakerStage.host && suspension.client?.count == 16)
      #expect(try stage.state() == ["suspended"])
      // Nothing of that is the other clients': their mismatches are refused as before, and their matches pass.
      #expect(try stage.tunnels(19, from: "127.0.0.1", "--rsa") == ["refused": 19])
      #expect(try stage.tunnels(19, from: "127.0.0.3", "--rsa") == ["refused": 19])
      #expect(try stage.tunnels(5, from: "127.0.0.1") == ["ecdsa": 5])
      #expect(try stage.figures().suspensions.map(\.client) == [suspension.client])
      #expect(try stage.trips("suspend") == 1)
      // Whoever looks at the status cannot tell whose it is; whoever has the log can.
      let line = try #require(stage.lines(BreakerStage.suspended).first)
      #expect(line["client"] as? String == "127.0.0.2" && line["client_id"] as? String == suspension.client)
      #expect(try #require(try HTTP.get("/status", port: stage.pinfold.admin)).body.contains("127.0.0.2") == false)
    }

    /// Guards: who is known by a name is counted by that name, not by the address all share.
    @Test("One user cannot trip another's host, from the same address") func otherUsers() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, certificates.rsa)
      let settings = try BreakerStage.settings(port: server.port, samples: 5).with {
        $0.credentials = "users"
        $0.audit = #"file: "audit.jsonl", client: "address""#
      }
      let stage = try BreakerStage(settings, users: ["alice", "mallory"])
      #expect(try stage.tunnels(8, "--rsa", "--user", "mallory:secret") == ["refused": 5, "rsa": 3])
      #expect(try stage.tunnels(4, "--rsa", "--user", "alice:secret") == ["refused": 4])
      #expect(try stage.tunnels(1, from: "127.0.0.2", "--rsa", "--user", "mallory:secret") == ["rsa": 1])
      let line = try #require(stage.lines(BreakerStage.suspended).first)
      let suspension = try #require(try stage.figures().suspensions.first)
      #expect(suspension.client?.count == 16)
      for key in ["client", "client_id"] { #expect(line[key] as? String == suspension.client) }
      // The name is nowhere to be read, also where addresses are.
      try Wait.untilTrue("the audit's record") { try stage.audit().contains(#""event":"breaker""#) }
      #expect(try stage.audit().contains(#""client":"127.0.0.1""#))
      #expect(try stage.audit().contains(#""client":"\#(suspension.client ?? "")""#))
      for text in [try stage.audit(), stage.pinfold.child.errors, stage.pinfold.child.output] {
        #expect(!text.contains("mallory"))
      }
      // A restart keeps whose it was.
      try Wait.untilTrue("the record") { !stage.kept.isEmpty }
      stage.pinfold.child.signal(9)
      try stage.pinfold.child.wait()
      var after = stage
      after.pinfold = try Pinfold(after: stage.pinfold)
      #expect(try after.tunnels(1, "--rsa", "--user", "mallory:secret") == ["rsa": 1])
      #expect(try after.tunnels(1, "--rsa", "--user", "alice:secret") == ["refused": 1])
      let file = after.pinfold.workspace.path("pinfold.json5")
      for (user, mode) in [("mallory", "suspended"), ("alice", "enforce")] {
        let explained = try Pinfold.command("explain", "-c", file, "--user", user, BreakerStage.host)
        #expect(explained.output.contains("mode: \(mode)"), "\(explained)")
      }
    }

    /// Guards: `max_disabled_percent` and `never_disable` of the signed policy.
    @Test("No more rules are suspended than the policy bears, and never one that says so") func bounds() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.other, protocols: "TLSv1.2")
      var settings = try BreakerStage.settings(port: server.port, samples: 2)
      let pin = "pins: [\"\(certificates.ecdsa.pin)\"]"
      for (host, rule) in [
        ("never", "{ \(pin), never_disable: true }"), ("two", "{ \(pin) }"), ("three", "{ \(pin) }"),
      ] {
        settings.hosts["\(host).pinfold.test"] = rule
        settings.resolve["\(host).pinfold.test:443"] = server.port
      }
      let stage = try BreakerStage(settings)
      #expect(try stage.tunnels(6, "--host", "never.pinfold.test") == ["refused": 6])
      #expect(try stage.tunnels(6) == ["refused": 2, "other": 4])
      #expect(try stage.tunnels(6, "--host", "two.pinfold.test") == ["refused": 6])
      #expect(try stage.tunnels(6, "--host", "three.pinfold.test") == ["refused": 6])
      #expect(try stage.figures().suspensions.map(\.rule) == [BreakerStage.host])
      #expect(try stage.trips("alert", host: "never.pinfold.test") == 1)
      #expect(try stage.trips("alert", host: "two.pinfold.test") == 1)
      let why = stage.lines(BreakerStage.alerted).compactMap { $0["why"] as? String }
      #expect(why == ["never_disable", "max_disabled_percent", "max_disabled_percent"])
    }
  }
}
