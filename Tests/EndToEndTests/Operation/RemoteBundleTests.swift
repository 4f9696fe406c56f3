import Foundation
import Glibc
import Testing

extension Operation {
  /// Bundles that come from a URL. Each server is a real one, with certificates that only the test's root vouches for.
  @Suite struct RemoteBundleTests {
    private let certificates: Certificates
    private let server: BundleServer

    init() throws {
      certificates = try Certificates.shared()
      server = try BundleServer(certificates.ecdsa)
    }

    /// A proxy whose policy comes from the server alone, asked for every second.
    private func settings(pin: String? = nil, port: UInt16 = 1) throws -> Settings {
      try .pinned(pin ?? certificates.ecdsa.pin, port: port).with {
        $0.bundles = [server.url()]
        $0.policyKeys = "refresh_seconds: 1"
      }
    }

    private func publish(_ pinfold: Pinfold, _ settings: Settings) throws {
      try server.publish(pinfold.sign(settings))
    }

    private func waitForVersion(_ version: Int, _ pinfold: Pinfold, seconds: Double = 10) throws {
      try Wait.untilTrue("version \(version)", seconds: seconds) {
        try pinfold.metrics().sum("pinfold_policy_version") == Double(version)
      }
    }

    private func failures(_ pinfold: Pinfold) throws -> Double {
      try pinfold.metrics().sum("pinfold_policy_reloads_total", #"result="failure""#)
    }

    private func causes(_ pinfold: Pinfold) -> [String] {
      pinfold.log.filter { $0["message"] as? String == "policy bundle refused" }.compactMap { $0["cause"] as? String }
    }

    /// Guards: that a missing policy blocks, and that nobody has to start Pinfold again once the server is there.
    @Test("Started with the server away it serves and blocks, and is ready soon after the server is there")
    func serverAwayAtStart() throws {
      let upstream = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let settings = try settings(port: upstream.port)
      let pinfold = try Pinfold(settings)
      #expect(try HTTP.get("/readyz", port: pinfold.admin)?.status == 503)
      #expect(try !Client.curl.fetch(proxy: pinfold.port).succeeded)
      try Wait.untilTrue("two failed tries") { try failures(pinfold) >= 2 }
      #expect(causes(pinfold).allSatisfy { $0 == "fetch_connect" })
      try publish(pinfold, settings)
      try server.start()
      try Wait.untilTrue("being ready") { try HTTP.get("/readyz", port: pinfold.admin)?.status == 200 }
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
    }

    /// Guards: the conditional request, without which every proxy fetches every policy again and again.
    @Test(
      "What has not changed is asked for by its ETag, strong or weak, and what has arrives within one refresh",
      arguments: ["", "weak"])
    func conditional(mode: String) throws {
      try server.misbehave(mode)
      let upstream = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let wrong = try settings(pin: certificates.other.pin, port: upstream.port)
      let pinfold = try Pinfold(wrong)
      try publish(pinfold, wrong)
      try server.start()
      try waitForVersion(1, pinfold)
      #expect(try !Client.curl.fetch(proxy: pinfold.port).succeeded)
      try Wait.untilTrue("three 304s") { server.requests.count { $0.status == 304 } >= 3 }
      #expect(server.requests.count { $0.status == 200 } == 1)
      let successes = try pinfold.metrics().sum("pinfold_policy_reloads_total", #"result="success""#)
      #expect(successes >= 3)
      let right = try settings(port: upstream.port).with { $0.version = 2 }
      try publish(pinfold, right)
      try waitForVersion(2, pinfold, seconds: 3)
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
      try Wait.untilTrue("a line about the change") {
        pinfold.log.contains { $0["message"] as? String == "policy changed" && $0["policy"] as? Int == 2 }
      }
    }

    /// What a server does and the word by which it is refused.
    struct Row: CustomTestStringConvertible, Sendable {
      let testDescription: String
      let mode: String
      let cause: String
    }

    static let rows = [
      Row(testDescription: "a body that is cut off", mode: "cut", cause: "fetch_reply"),
      Row(testDescription: "a length beyond the limit", mode: "large", cause: "too_large"),
      Row(testDescription: "a body without end", mode: "endless", cause: "too_large"),
      Row(testDescription: "another document", mode: "garbage", cause: "envelope"),
      Row(testDescription: "an envelope of something with a long name", mode: "foreign", cause: "envelope"),
      Row(testDescription: "a redirect", mode: "redirect", cause: "fetch_reply"),
      Row(testDescription: "somebody else's certificate", mode: "stranger", cause: "fetch_tls"),
      Row(testDescription: "another host's certificate", mode: "wrong name", cause: "fetch_tls"),
      Row(testDescription: "no server at all", mode: "away", cause: "fetch_connect"),
    ]

    @Test("What cannot be used is counted and changes nothing", arguments: rows)
    func refused(row: Row) throws {
      let settings = try settings().with { $0.policyKeys = "refresh_seconds: 1, max_bundle_bytes: 100000" }
      let pinfold = try Pinfold(settings)
      try publish(pinfold, settings)
      try server.start()
      try waitForVersion(1, pinfold)
      let before = (try failures(pinfold), causes(pinfold).count)
      try publish(pinfold, settings.with { $0.version = 2 })
      switch row.mode {
      case "stranger": try server.start(as: certificates.stranger)
      case "wrong name": try server.start(as: certificates.wrongName)
      case "away": server.stop()
      default: try server.misbehave(row.mode)
      }
      try Wait.untilTrue("a failure") { try failures(pinfold) > before.0 && causes(pinfold).count > before.1 }
      // The first one may be of the moment between two servers.
      try Wait.untilTrue("the cause \(row.cause)") { causes(pinfold).dropFirst(before.1).contains(row.cause) }
      #expect(try HTTP.get("/readyz", port: pinfold.admin)?.status == 200)
      // The health check of a container reads it: what somebody sent must not make it too long.
      #expect(try #require(try HTTP.get("/status", port: pinfold.admin)?.body).utf8.count < 16_384)
      if row.mode != "away" {
        try server.misbehave("")
        try server.start()
        try waitForVersion(2, pinfold)
      }
    }

    @Test("A restart with the server away begins with what was fetched before") func restartFromCache() throws {
      let upstream = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let settings = try settings(port: upstream.port).with { $0.version = 5 }
      let first = try Pinfold(settings)
      try publish(first, settings)
      try server.start()
      try waitForVersion(5, first)
      server.stop()
      try first.end()
      let second = try Pinfold(after: first)
      #expect(try HTTP.get("/readyz", port: second.admin)?.status == 200)
      #expect(try second.metrics().sum("pinfold_policy_version") == 5)
      #expect(try Client.curl.fetch(proxy: second.port).succeeded)
      // What was accepted is remembered too.
      try publish(second, settings.with { $0.version = 4 })
      try server.start()
      try Wait.untilTrue("a refused rollback") { causes(second).contains("rollback") }
      #expect(try second.metrics().sum("pinfold_policy_version") == 5)
    }

    @Test("SIGHUP asks at once, and a server that is away keeps no new configuration out") func hangUp() throws {
      let settings = try settings().with { $0.policyKeys = "refresh_seconds: 86400" }
      let pinfold = try Pinfold(settings)
      try publish(pinfold, settings)
      try server.start()
      pinfold.child.signal(SIGHUP)
      try waitForVersion(1, pinfold)
      try publish(pinfold, settings.with { $0.version = 2 })
      pinfold.child.signal(SIGHUP)
      try waitForVersion(2, pinfold)
      server.stop()
      try pinfold.reload(settings.with { $0.unpinned = "tunnel" })
      try Wait.untilTrue("the new configuration") {
        try HTTP.get("/status", port: pinfold.admin)?.body.contains(#""unpinned" : "tunnel""#) ?? false
      }
      #expect(try pinfold.metrics().sum("pinfold_policy_version") == 2)
    }

    /// Guards against a freeze: whoever holds the server back can keep an old policy in force until its end, not longer.
    @Test("An old policy that is served for ever ends at its expiry, and everybody can see it") func freeze() throws {
      // Started before the policy's life begins: a slow machine takes its time for that.
      let pinfold = try Pinfold(settings())
      let end = Int(Date().timeIntervalSince1970) + 6
      let settings = try settings().with {
        $0.expiresAt = Date(timeIntervalSince1970: TimeInterval(end)).formatted(.iso8601)
      }
      try publish(pinfold, settings)
      try server.start()
      try waitForVersion(1, pinfold, seconds: 5)
      #expect(try HTTP.get("/readyz", port: pinfold.admin)?.status == 200)
      #expect(try pinfold.metrics().sum("pinfold_policy_expiry_timestamp_seconds") == Double(end))
      try Wait.untilTrue("the end") { try HTTP.get("/readyz", port: pinfold.admin)?.status == 503 }
      #expect(Date().timeIntervalSince1970 >= TimeInterval(end))
      #expect(try !RawClient(to: pinfold.port).connect("api.pinfold.test:443").statusLine.contains(" 200"))
      #expect(try pinfold.reasons().last == "pins_expired")
      try Wait.untilTrue("a failed refresh") { try failures(pinfold) >= 1 && causes(pinfold).contains("expired") }
    }

    /// Guards: an operator who asks before a roll-out must see what the proxies will see.
    @Test("check fetches, says why when it cannot, and goes by what was fetched before; explain fetches nothing")
    func check() throws {
      let settings = try settings()
      let pinfold = try Pinfold(settings)
      let file = pinfold.workspace.path("pinfold.json5")
      let away = try Pinfold.command("check", "-c", file)
      #expect(away.ending == .exited(1))
      #expect(away.errors.contains("refused: \(server.url()): cannot connect: connection refused"), "\(away)")
      let blocked = try Pinfold.command("explain", "-c", file, "api.pinfold.test")
      #expect(blocked.ending == .exited(1) && blocked.errors.contains("\(server.url()): not fetched yet"))

      try publish(pinfold, settings)
      try server.start()
      try waitForVersion(1, pinfold)
      try publish(pinfold, settings.with { $0.version = 2 })
      let good = try Pinfold.command("check", "-c", file)
      #expect(good.succeeded && good.output.contains("policy: \(server.url())\n"), "\(good)")
      try waitForVersion(2, pinfold)
      server.stop()
      let before = try Pinfold.command("check", "-c", file)
      #expect(before.succeeded && before.output.contains("version: 2\n"), "\(before)")
      #expect(before.output.contains("connection refused; the one fetched before would count"), "\(before)")
      let explained = try Pinfold.command("explain", "-c", file, "api.pinfold.test")
      #expect(explained.succeeded && explained.output.contains("source: policy\n"), "\(explained)")
    }

    /// Guards: connections, resolvers and sessions that are not given back would end a proxy that runs for months.
    @Test("Refreshes leave no descriptor behind, however they end") func descriptors() throws {
      let settings = try settings().with { $0.policyKeys = "refresh_seconds: 1, max_bundle_bytes: 100000" }
      let pinfold = try Pinfold(settings)
      try publish(pinfold, settings)
      try server.start()
      try waitForVersion(1, pinfold)
      func count() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/\(pinfold.child.pid)/fd").count
      }
      try Wait.untilTrue("a first 304") { server.requests.contains { $0.status == 304 } }
      let before = try count()
      for mode in ["cut", "large", "endless", "redirect", "garbage", "away", ""] {
        let failed = try failures(pinfold)
        if mode == "away" { server.stop() } else { try server.misbehave(mode) }
        guard !mode.isEmpty else {
          try server.start()
          break
        }
        pinfold.child.signal(SIGHUP)
        try Wait.untilTrue("a failure by \(mode)") { try failures(pinfold) > failed }
      }
      let good = server.requests.count
      try Wait.untilTrue("a refresh that went well") { server.requests.count > good + 1 }
      try Wait.untilTrue("as many descriptors as before") { try count() <= before }
    }

    @Test("nginx's own ETags and 304s do as well") func nginx() throws {
      let workspace = try Workspace("access")
      let nginx = try Servers.nginx(
        certificates.ecdsa, options: "access_log \(workspace.path("log")) combined;")
      let settings = try Settings.pinned(certificates.ecdsa.pin, port: 1).with {
        $0.bundles = ["https://127.0.0.1:\(nginx.port)/policy.signed.json"]
        $0.policyKeys = "refresh_seconds: 1"
      }
      let pinfold = try Pinfold(settings)
      let signed = try String(contentsOfFile: pinfold.workspace.path("policy.signed.json"), encoding: .utf8)
      try signed.write(toFile: nginx.path("policy.signed.json"), atomically: true, encoding: .utf8)
      try waitForVersion(1, pinfold)
      try Wait.untilTrue("two 304s") {
        workspace.read("log").split(separator: "\n").count { $0.contains("\" 304 0 ") } >= 2
      }
    }

    @Test("Of a file and a URL the newer policy counts") func fileAndURL() throws {
      let settings = try settings().with { $0.bundles = ["policy.signed.json", server.url()] }
      let pinfold = try Pinfold(settings)
      #expect(try pinfold.metrics().sum("pinfold_policy_version") == 1)
      let first = pinfold.workspace.read("policy.signed.json")
      try publish(pinfold, settings.with { $0.version = 2 })
      try pinfold.workspace.write("policy.signed.json", first)
      try server.start()
      try waitForVersion(2, pinfold)
      #expect(try failures(pinfold) <= 3)
      // The file's version 1 is older now, which is no failure while the URL's counts.
      let before = try failures(pinfold)
      let requests = server.requests.count
      try Wait.untilTrue("two more refreshes") { server.requests.count >= requests + 2 }
      #expect(try failures(pinfold) == before)
    }
  }
}
