import Foundation
import Glibc
import Testing

extension Operation {
  /// A clock that was set, forwards or back, under a running proxy and between two starts.
  @Suite struct ClockTests {
    private static let day = 86_400

    private static func text(_ seconds: Int) -> String {
      Date.now.addingTimeInterval(Double(seconds)).formatted(.iso8601)
    }

    /// A policy that is over in a day.
    private static func settings(_ port: UInt16, _ clock: ShiftedClock, version: Int = 1) throws -> Settings {
      try .pinned(Certificates.shared().ecdsa.pin, port: port).with {
        $0.version = version
        $0.expiresAt = text(day * version)
        $0.environment = clock.environment
      }
    }

    private static func expiries(_ pinfold: Pinfold) -> Int {
      pinfold.log.count { ($0["message"] as? String)?.hasPrefix("the policy expired") == true }
    }

    private static func floor(_ pinfold: Pinfold) -> String? {
      pinfold.workspace.read("state/policy.state").split(separator: "\n").first { $0.hasPrefix("clock_floor ") }
        .map { String($0.dropFirst(12)) }
    }

    /// Guards: a floor that rises when a policy is accepted, and never while one is in force.
    @Test("What expired while it was in force stays expired, with the clock set back, here and after a restart")
    func expired() throws {
      let server = try Servers.nginx(Certificates.shared().ecdsa, protocols: "TLSv1.2")
      let clock = try ShiftedClock()
      let settings = try Self.settings(server.port, clock)
      let pinfold = try Pinfold(settings)
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
      try clock.shift(by: 2 * Self.day)
      try Wait.untilTrue("the end of the policy") { Self.expiries(pinfold) == 1 }
      try Wait.untilTrue("its end in the state") { Self.floor(pinfold) == settings.expiresAt }

      try clock.shift(by: 0)
      try Wait.untilTrue("a warning") {
        pinfold.log.contains { ($0["warning"] as? String)?.contains("check the clock") == true }
      }
      #expect(try !Client.curl.fetch(proxy: pinfold.port).succeeded)
      #expect(try pinfold.reasons(2).last == "pins_expired")
      // Whoever asks is told the same as the tunnels.
      #expect(try HTTP.get("/readyz", port: pinfold.admin)?.status == 503)
      #expect(try HTTP.get("/status", port: pinfold.admin)?.body.contains("\"expired\" : true") == true)

      pinfold.child.signal(SIGTERM)
      #expect(try pinfold.child.wait() == .exited(0))
      let second = try Pinfold(after: pinfold, environment: clock.environment)
      #expect(try !Client.curl.fetch(proxy: second.port).succeeded)
      #expect(second.log.contains { $0["cause"] as? String == "expired" })
      #expect(second.log.contains { ($0["warning"] as? String)?.contains("check the clock") == true })

      // A newer policy that ends later counts at once.
      try second.reload(Self.settings(server.port, clock, version: 2))
      try Wait.untilTrue("version 2") { try second.metrics().sum("pinfold_policy_version") == 2 }
      #expect(try Client.curl.fetch(proxy: second.port).succeeded)
    }

    /// Guards: an end that only a running process has seen. Here none was ever in force behind it.
    @Test("A policy that was found expired at a start stays expired at the next one") func found() throws {
      let server = try Servers.nginx(Certificates.shared().ecdsa, protocols: "TLSv1.2")
      let clock = try ShiftedClock()
      try clock.shift(by: 2 * Self.day)
      let pinfold = try Pinfold(Self.settings(server.port, clock))
      pinfold.child.signal(SIGTERM)
      #expect(try pinfold.child.wait() == .exited(0))
      try clock.shift(by: 0)
      let second = try Pinfold(after: pinfold, environment: clock.environment)
      #expect(try !Client.curl.fetch(proxy: second.port).succeeded)
      #expect(try HTTP.get("/readyz", port: second.admin)?.status == 503)
    }

    /// Guards: a moment of a wrong time that is believed for ever.
    @Test("A clock that ran ahead for a moment, not past the end of the policy, changes nothing") func glitch() throws {
      let server = try Servers.nginx(Certificates.shared().ecdsa, protocols: "TLSv1.2")
      let clock = try ShiftedClock()
      let pinfold = try Pinfold(Self.settings(server.port, clock))
      let before = Self.floor(pinfold)
      try clock.shift(by: Self.day / 2)
      // The policy's end is looked for every two seconds.
      Thread.sleep(forTimeInterval: 3)
      try clock.shift(by: 0)
      #expect(before != nil && Self.floor(pinfold) == before)
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
    }

    /// Guards: a memory that only a policy has. Here the pins of a service ended within the hour that had passed.
    @Test("Without a policy, too, a time that has passed counts at the next start") func withoutPolicy() throws {
      let identity = try Certificates.shared().ecdsa
      let server = try Servers.nginx(identity, protocols: "TLSv1.2")
      let signer = try RecordSigner()
      let record = try signer.record(identity.pin, ttl: 1800)
      let service = try PinService { _ in .body(record) }
      let settings = try Settings.supplied(service.section(signer), port: server.port).with { $0.bundles = [] }
      let pinfold = try Pinfold(settings)
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
      pinfold.child.signal(SIGTERM)
      #expect(try pinfold.child.wait() == .exited(0))

      let state = "pinfold-state v1\nhighest_version 7\nclock_floor \(Self.text(3600))\n"
      try pinfold.workspace.write("state/policy.state", state)
      let second = try Pinfold(after: pinfold)
      #expect(try !Client.curl.fetch(proxy: second.port).succeeded)
      #expect(try second.reasons().last == "pins_unavailable")
      try Wait.untilTrue("a warning") {
        second.log.contains { ($0["warning"] as? String)?.contains("check the clock") == true }
      }
      #expect(pinfold.workspace.read("state/policy.state") == state)
      let explained = try Pinfold.command(
        "explain", "-c", pinfold.workspace.path("pinfold.json5"), "api.pinfold.test")
      #expect(explained.output.contains("not used: "), "\(explained)")
    }
  }
}
