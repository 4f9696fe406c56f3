import Testing

extension Handshakes {
  /// Modes of a rule and of hosts without one: what they let through and what not even they do.
  @Suite struct ModeTests {
    private struct Outcome {
      let fetched: Command
      let reason: String
      let metrics: Metrics
    }

    private func fetch(
      _ identity: Certificates.Identity, _ settings: Settings, url: String = "https://api.pinfold.test/",
      options: [String] = []
    ) throws -> Outcome {
      let pinfold = try Pinfold(settings)
      let fetched = try Client.curl.fetch(url, proxy: pinfold.port, options: options)
      return Outcome(fetched: fetched, reason: try pinfold.reasons()[0], metrics: try pinfold.metrics())
    }

    @Test("Report mode lets a mismatch through and counts it as a failure", arguments: ["TLSv1.2", "TLSv1.3"])
    func report(protocols: String) throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: protocols)
      let outcome = try fetch(
        certificates.ecdsa, .pinned(certificates.other.pin, port: server.port, rule: #"mode: "report""#))
      #expect(outcome.fetched.succeeded, "\(outcome.fetched)")
      #expect(outcome.reason == "reported_mismatch")
      #expect(
        outcome.metrics.sum("pinfold_verifications_total", #"result="failure""#, #"reason="reported_mismatch""#) == 1)
      #expect(outcome.metrics.sum("pinfold_tunnels_total", #"result="allowed""#, #"reason="reported_mismatch""#) == 1)
      #expect(
        outcome.metrics.sum("pinfold_enforcement", #"host="api.pinfold.test""#, #"state="report""#) == 1)
    }

    @Test("Unpinned hosts with \"verify\" need a good chain for their name", arguments: ["TLSv1.2", "TLSv1.3"])
    func verify(protocols: String) throws {
      let certificates = try Certificates.shared()
      let rows = [
        (certificates.ecdsa, "chain_verified"), (certificates.stranger, "chain_invalid"),
        (certificates.wrongName, "name_mismatch"),
      ]
      for (identity, reason) in rows {
        let server = try Servers.nginx(identity, protocols: protocols)
        let settings = try Settings.pinned(certificates.other.pin, port: 1).with {
          $0.unpinned = "verify"
          $0.resolve["free.pinfold.test:443"] = server.port
          $0.allow = ["127.0.0.0/8"]
        }
        let outcome = try fetch(identity, settings, url: "https://free.pinfold.test/", options: ["-k"])
        #expect(outcome.reason == reason)
        #expect(outcome.fetched.succeeded == (reason == "chain_verified"), "\(outcome.fetched)")
        #expect(
          outcome.metrics.sum("pinfold_verifications_total", #"host="other""#, #"reason="\#(reason)""#) == 1,
          "an unpinned host is `other`")
      }
    }

    @Test("A self-signed device passes by key or by certificate hash where the chain is not verified")
    func device() throws {
      let certificates = try Certificates.shared()
      let device = certificates.selfSigned
      let server = try Servers.nginx(device)
      for (pin, reason) in [
        (device.pin, "pin_match"), (device.certificatePin, "pin_match"), (certificates.ecdsa.pin, "pin_mismatch"),
      ] {
        var settings = Settings()
        settings.hosts["127.0.0.1:\(server.port)"] = "{ pins: [\"\(pin)\"], verify_chain: false }"
        let outcome = try fetch(device, settings, url: "https://127.0.0.1:\(server.port)/", options: ["-k"])
        #expect(outcome.reason == reason)
        #expect(outcome.fetched.succeeded == (reason == "pin_match"), "\(outcome.fetched)")
      }
    }

    @Test(
      "The most exact pattern decides",
      arguments: [
        ("api.pinfold.test", true), ("www.pinfold.test", false), ("a.b.pinfold.test", true),
      ])
    func patterns(host: String, expected: Bool) throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let right = "{ pins: [\"\(certificates.ecdsa.pin)\"], verify_chain: false }"
      let wrong = "{ pins: [\"\(certificates.other.pin)\"], verify_chain: false }"
      let settings = try Settings.pinned(certificates.ecdsa.pin, port: server.port).with {
        $0.hosts = ["api.pinfold.test": right, "*.pinfold.test": wrong, "**.pinfold.test": right]
        $0.resolve["\(host):443"] = server.port
      }
      let outcome = try fetch(certificates.ecdsa, settings, url: "https://\(host)/", options: ["-k"])
      #expect(outcome.fetched.succeeded == expected, "\(outcome.fetched)")
      #expect(outcome.reason == (expected ? "pin_match" : "pin_mismatch"))
    }

    @Test("One of several pins is enough, under any of their names") func severalPins() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      var settings = try Settings.pinned(certificates.other.pin, port: server.port)
      settings.hosts["api.pinfold.test"] =
        "{ pins: { primary: \"\(certificates.other.pin)\", backup: \"\(certificates.ecdsa.pin)\" } }"
      let outcome = try fetch(certificates.ecdsa, settings)
      #expect(outcome.fetched.succeeded && outcome.reason == "pin_match", "\(outcome.fetched)")
    }
  }
}
