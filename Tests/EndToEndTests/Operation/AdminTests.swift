import Foundation
import Testing

extension Operation {
  /// What operators look at.
  @Suite struct AdminTests {
    /// After one tunnel of each kind, so that as many series as possible are there.
    private func busy() throws -> Pinfold {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa)
      let settings = try Settings.pinned(certificates.ecdsa.pin, port: server.port).with {
        $0.hosts["wrong.pinfold.test"] = "{ pins: [\"\(certificates.other.pin)\"] }"
        $0.resolve["wrong.pinfold.test:443"] = server.port
      }
      let pinfold = try Pinfold(settings)
      #expect(try Client.curl.fetch(proxy: pinfold.port, options: ["--tls-max", "1.2"]).succeeded)
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
      #expect(try !Client.curl.fetch("https://wrong.pinfold.test/", proxy: pinfold.port).succeeded)
      #expect(try !Client.curl.fetch("https://unpinned.test/", proxy: pinfold.port).succeeded)
      _ = try pinfold.reasons(4)
      return pinfold
    }

    @Test("The metrics are those of the contract, and promtool finds nothing to say") func metrics() throws {
      let pinfold = try busy()
      let metrics = try pinfold.metrics()
      let check = try Command(["promtool", "check", "metrics"], input: metrics.text)
      #expect(check.succeeded && check.errors.isEmpty && check.output.isEmpty, "\(check)")
      for name in [
        "pinfold_verifications_total", "pinfold_verification_seconds_bucket", "pinfold_tunnels_total",
        "pinfold_tunnels_active", "pinfold_relayed_bytes_total", "pinfold_enforcement", "pinfold_policy_version",
        "pinfold_policy_expiry_timestamp_seconds", "pinfold_probe_total", "pinfold_build_info",
        "process_resident_memory_bytes", "process_open_fds", "process_cpu_seconds_total", "process_start_time_seconds",
      ] {
        #expect(metrics.has(name), "\(name)")
      }
      #expect(metrics.sum("pinfold_tunnels_total", #"result="allowed""#, #"reason="pin_match""#) == 2)
      #expect(metrics.sum("pinfold_tunnels_total", #"result="refused""#, #"reason="pin_mismatch""#) == 1)
      #expect(metrics.sum("pinfold_tunnels_total", #"result="refused""#, #"reason="unpinned_blocked""#) == 1)
      #expect(metrics.sum("pinfold_enforcement", #"host="api.pinfold.test""#, #"state="enforce""#) == 1)
      #expect(metrics.sum("pinfold_verification_seconds_count") == 3)
    }

    @Test("The admin port answers its paths and no others") func paths() throws {
      let pinfold = try busy()
      for (path, status) in [
        ("/healthz", 200), ("/readyz", 200), ("/status", 200), ("/metrics", 200), ("/nothing", 404),
      ] {
        #expect(try HTTP.get(path, port: pinfold.admin)?.status == status, "\(path)")
      }
      let answer = try #require(try HTTP.get("/status", port: pinfold.admin))
      let status = try JSONSerialization.jsonObject(with: Data(answer.body.utf8))
      #expect(status is [String: Any])
      #expect(try #require(try HTTP.get("/metrics", port: pinfold.admin)).head.contains("text/plain"))
    }

    /// Guards: one canonical line per tunnel, and no line without its words.
    @Test("Every tunnel has exactly one decision line, with all its fields") func decisionLines() throws {
      let pinfold = try busy()
      let decisions = pinfold.decisions
      #expect(decisions.count == 4)
      for decision in decisions {
        for key in ["id", "client", "host", "method", "verdict", "reason", "policy"] {
          #expect(decision[key] != nil, "\(key) is missing in \(decision)")
        }
        for key in ["ms", "bytes_up", "bytes_down"] { #expect(decision[key] is NSNumber, "\(key) in \(decision)") }
        let isAllowed = decision["reason"] as? String == "pin_match"
        #expect(decision["verdict"] as? String == (isAllowed ? "allow" : "refuse"))
        #expect((decision["bytes_down"] as? Int ?? 0 > 1000) == isAllowed)
      }
      #expect(Set(decisions.compactMap { $0["id"] as? String }).count == 4)
      let told = decisions.map { decision in
        ["host", "rule", "method", "reason"].map { decision[$0] as? String ?? "" }.joined(separator: " ")
      }
      #expect(
        told.sorted() == [
          "api.pinfold.test:443 api.pinfold.test in_band pin_match",
          "api.pinfold.test:443 api.pinfold.test probe pin_match", "unpinned.test:443  none unpinned_blocked",
          "wrong.pinfold.test:443 wrong.pinfold.test probe pin_mismatch",
        ])
    }

    /// Guards: an app that takes its time must not look like a slow proxy.
    @Test("A verdict's time begins when the ClientHello is whole") func verdictTime() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let pinfold = try Pinfold(.pinned(certificates.other.pin, port: server.port))
      let client = try RawClient(to: pinfold.port)
      _ = try client.connect("api.pinfold.test:443")
      let hello = ClientHello().bytes
      client.send(Array(hello[..<9]))
      Thread.sleep(forTimeInterval: 2)
      client.send(Array(hello[9...]))
      _ = client.drain()
      #expect(try pinfold.reasons() == ["pin_mismatch"])
      let line = try #require(pinfold.decisions.first)
      let (whole, verdict) = try (#require(line["ms"] as? Double), #require(line["verdict_ms"] as? Double))
      #expect(verdict > 0 && whole - verdict >= 2000, "\(line)")
      let metrics = try pinfold.metrics()
      #expect(metrics.sum("pinfold_verification_seconds_count", #"method="in_band""#) == 1)
      #expect(abs(metrics.sum("pinfold_verification_seconds_sum", #"method="in_band""#) * 1000 - verdict) < 0.001)
      // Whoever sends no hello has no such time.
      let silent = try RawClient(to: pinfold.port)
      _ = try silent.connect("api.pinfold.test:443")
      silent.socket.endSending()
      _ = silent.drain()
      #expect(try pinfold.reasons(2).last == "not_tls")
      #expect(pinfold.decisions.last?["verdict_ms"] == nil)
      #expect(try pinfold.metrics().sum("pinfold_verification_seconds_count") == 1)
    }

    @Test("`status` asks the admin port, exit 0 when ready and 1 when not") func statusCommand() throws {
      let pinfold = try Pinfold(.pinned(Certificates.shared().ecdsa.pin, port: 1))
      let status = try Pinfold.command("status", "--admin", "127.0.0.1:\(pinfold.admin)")
      #expect(status.succeeded, "\(status)")
      #expect(try Pinfold.command("status", "--admin", "127.0.0.1:\(FreePort.next())").ending == .exited(1))
    }
  }
}
