import Foundation
import Synchronization
import Testing

extension Operation {
  /// Keys that change and services that are down: what a running proxy makes of them over time.
  @Suite struct PinRotationTests {
    /// Fetches again and again until told to stop; the outcomes in order.
    private final class Traffic: Sendable {
      private let isOver = Atomic<Bool>(false)
      private let ended = Mutex<[Command]>([])
      private let thread: Mutex<Thread?>

      init(proxy: UInt16) {
        thread = Mutex(nil)
        Thread.detachNewThread { [self] in
          while !isOver.load(ordering: .relaxed) {
            guard let fetched = try? Client.curl.fetch(proxy: proxy) else { continue }
            ended.withLock { $0.append(fetched) }
          }
        }
      }

      var count: Int { ended.withLock { $0.count } }
      var failed: [Command] { ended.withLock { $0.filter { !$0.succeeded } } }

      /// Waits for so many more requests.
      func goOn(_ more: Int) throws {
        let goal = count + more
        try Wait.untilTrue("\(more) more requests", seconds: 30) { count >= goal }
      }

      func stop() { isOver.store(true, ordering: .relaxed) }
      deinit { stop() }
    }

    private struct Site {
      let old: Servers.Running
      let new: Servers.Running
      let switchboard: Switchboard
      let certificates: Certificates

      init() throws {
        certificates = try Certificates.shared()
        old = try Servers.nginx(certificates.ecdsa)
        new = try Servers.nginx(certificates.other)
        switchboard = try Switchboard(to: old.port)
      }
    }

    @Test(
      "A key and the service's record change together: not one request fails", arguments: RecordSigner.Kind.allCases)
    func rotation(_ kind: RecordSigner.Kind) throws {
      let site = try Site()
      let signer = try RecordSigner(kind)
      let before = try signer.record(site.certificates.ecdsa.pin)
      let service = try PinService { _ in .body(before) }
      let pinfold = try Pinfold(
        .supplied(service.section(signer), port: site.switchboard.port).with { $0.audit = #"file: "audit.jsonl""# })
      let traffic = Traffic(proxy: pinfold.port)
      try traffic.goOn(5)
      let after = try signer.record(site.certificates.other.pin)
      service.answer { _ in .body(after) }
      site.switchboard.turn(to: site.new.port)
      try traffic.goOn(10)
      traffic.stop()
      #expect(traffic.failed.isEmpty, "\(traffic.failed)")
      #expect(service.asked.count == 2, "one fetch at first, one because of the mismatch")
      try Wait.untilTrue("the audit of both keys") {
        let audit = try Pinfold.command("audit", "-c", pinfold.workspace.path("pinfold.json5")).output
        let lines = audit.split(separator: "\n").filter { $0.contains("\"event\":\"pins\"") }
        return lines.count == 2 && lines[1].contains(site.certificates.other.pin)
      }
      // The old key is no key any more.
      site.switchboard.turn(to: site.old.port)
      #expect(try !Client.curl.fetch(proxy: pinfold.port).succeeded)
    }

    @Test("A record with a backup pin carries a rotation without a mismatch") func backupPin() throws {
      let site = try Site()
      let signer = try RecordSigner()
      let record = try signer.record(site.certificates.ecdsa.pin, site.certificates.other.pin)
      let service = try PinService { _ in .body(record) }
      let pinfold = try Pinfold(.supplied(service.section(signer), port: site.switchboard.port))
      let traffic = Traffic(proxy: pinfold.port)
      try traffic.goOn(5)
      site.switchboard.turn(to: site.new.port)
      try traffic.goOn(5)
      traffic.stop()
      #expect(traffic.failed.isEmpty, "\(traffic.failed)")
      #expect(service.asked.count == 1)
    }

    /// Guards: without the limit an interceptor turns each refused tunnel into a fetch.
    @Test("Under a flood of mismatches the service is asked once in ten seconds, and nothing passes") func flood()
      async throws
    {
      let site = try Site()
      let signer = try RecordSigner()
      let record = try signer.record(site.certificates.ecdsa.pin)
      let service = try PinService { _ in .body(record) }
      let pinfold = try Pinfold(.supplied(service.section(signer), port: site.switchboard.port))
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
      site.switchboard.turn(to: site.new.port)
      let start = ContinuousClock.now
      var refused = 0
      while ContinuousClock.now - start < .seconds(11) {
        let fetched = try await PinServiceTests.fetch(8, proxy: pinfold.port)
        #expect(fetched.allSatisfy { !$0.output.contains(Servers.greeting) })
        refused += fetched.count
      }
      let refreshes = service.times.dropFirst()
      #expect((1...2).contains(refreshes.count), "\(refreshes.count) for \(refused) refusals")
      for (earlier, later) in zip(refreshes, refreshes.dropFirst()) { #expect(later - earlier > .seconds(9.9)) }
      #expect(Set(try pinfold.reasons(refused + 1).dropFirst()) == ["pin_mismatch"])
    }

    @Test("An older record is not taken back, by refresh or restart") func replay() throws {
      let site = try Site()
      let signer = try RecordSigner()
      let old = try signer.record(site.certificates.ecdsa.pin, created: -100)
      let new = try signer.record(site.certificates.other.pin)
      let service = try PinService { _ in .body(new) }
      let settings = try Settings.supplied(service.section(signer), port: site.switchboard.port)
      site.switchboard.turn(to: site.new.port)
      let first = try Pinfold(settings)
      #expect(try Client.curl.fetch(proxy: first.port).succeeded)
      // The attacker has the old key, and plays the old record for it.
      service.answer { _ in .body(old) }
      site.switchboard.turn(to: site.old.port)
      #expect(try !Client.curl.fetch(proxy: first.port).succeeded)
      #expect(try first.reasons(2)[1] == "pin_mismatch")
      #expect(first.log.contains { $0["step"] as? String == "rollback" })
      try first.end()
      let again = try Pinfold(settings, in: first.workspace)
      #expect(try !Client.curl.fetch(proxy: again.port).succeeded)
      #expect(try again.reasons() == ["pin_mismatch"])
    }

    /// Guards: the narrower record is looked up first, so an old one of the host would win over the wildcard's.
    @Test("A host's record that a wildcard's replaced is not taken back, by refresh or restart") func replaced() throws
    {
      let site = try Site()
      let signer = try RecordSigner()
      let old = try signer.record(site.certificates.ecdsa.pin, created: -100)
      let new = try signer.record(site.certificates.other.pin, domain: "*.pinfold.test")
      let service = try PinService { _ in .body(old) }
      let settings = try Settings.supplied(service.section(signer), port: site.switchboard.port)
      let first = try Pinfold(settings)
      #expect(try Client.curl.fetch(proxy: first.port).succeeded)
      service.answer { _ in .body(new) }
      site.switchboard.turn(to: site.new.port)
      #expect(try Client.curl.fetch(proxy: first.port).succeeded)
      try first.end()
      // The attacker has the old key, and plays the old record for it.
      service.answer { _ in .body(old) }
      site.switchboard.turn(to: site.old.port)
      let again = try Pinfold(settings, in: first.workspace)
      #expect(try !Client.curl.fetch(proxy: again.port).succeeded)
      #expect(try again.reasons() == ["pin_mismatch"])
      #expect(again.log.contains { $0["step"] as? String == "rollback" })
      site.switchboard.turn(to: site.new.port)
      #expect(try Client.curl.fetch(proxy: again.port).succeeded)
    }

    /// Guards: after a restart memory is empty, and the wildcard's record is there as soon as any host asked.
    @Test("An older wildcard's record, brought by a neighbour after a restart, does not speak for a host with its own")
    func olderWildcard() throws {
      let site = try Site()
      let signer = try RecordSigner()
      let old = try signer.record(site.certificates.ecdsa.pin, domain: "*.pinfold.test", created: -100)
      let new = try signer.record(site.certificates.other.pin)
      let service = try PinService { _ in .body(new) }
      let settings = try Settings.supplied(service.section(signer), port: site.switchboard.port).with {
        $0.resolve["www.pinfold.test:443"] = site.old.port
      }
      site.switchboard.turn(to: site.new.port)
      let first = try Pinfold(settings)
      #expect(try Client.curl.fetch(proxy: first.port).succeeded)
      try first.end()
      service.answer { _ in .body(old) }
      let again = try Pinfold(settings, in: first.workspace)
      #expect(try Client.curl.fetch("https://www.pinfold.test/", proxy: again.port).succeeded)
      site.switchboard.turn(to: site.old.port)
      #expect(try !Client.curl.fetch(proxy: again.port).succeeded)
      #expect(try again.reasons(2) == ["pin_match", "pin_mismatch"])
    }

    /// Guards: a wildcard's record is looked up as soon as the host's own is over.
    @Test("An older wildcard's record does not speak for a host whose own is over, nor is it explained so")
    func ownIsOver() throws {
      let site = try Site()
      let signer = try RecordSigner()
      let wide = try signer.record(site.certificates.ecdsa.pin, domain: "*.pinfold.test", created: -100)
      let own = try signer.record(site.certificates.ecdsa.pin, ttl: 3)
      let service = try PinService { $0.hasPrefix("api.") ? .body(own) : .body(wide) }
      let settings = try Settings.supplied(service.section(signer), port: site.old.port).with {
        $0.resolve["www.pinfold.test:443"] = site.old.port
      }
      let pinfold = try Pinfold(settings)
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
      #expect(try Client.curl.fetch("https://www.pinfold.test/", proxy: pinfold.port).succeeded)
      service.stop()
      try Wait.untilTrue("the pins to end") { try !Client.curl.fetch(proxy: pinfold.port).succeeded }
      #expect(try Client.curl.fetch("https://www.pinfold.test/", proxy: pinfold.port).succeeded)
      let explained = try Pinfold.command("explain", "-c", pinfold.workspace.path("pinfold.json5"), "api.pinfold.test")
      #expect(explained.output.contains("*.pinfold.test not used: a newer one was accepted"), "\(explained)")
    }

    /// Guards: a record names more hosts than its service speaks for.
    @Test("One service's record for a wildcard takes neither pins nor memory from another service") func neighbours()
      throws
    {
      let site = try Site()
      let (signer, other) = (try RecordSigner(), try RecordSigner())
      let wide = "*.pinfold.test"
      let new = try signer.record(site.certificates.other.pin, domain: wide)
      let old = try signer.record(site.certificates.ecdsa.pin, domain: wide, created: -100)
      let foreign = try other.record(site.certificates.ecdsa.pin, domain: wide, created: -50)
      let service = try PinService { _ in .body(new) }
      let neighbour = try PinService { _ in .body(foreign) }
      let settings = try Settings.supplied(
        service.section(signer), neighbour.section(other, domains: "www.pinfold.test"), port: site.switchboard.port
      ).with { $0.resolve["www.pinfold.test:443"] = site.old.port }
      site.switchboard.turn(to: site.new.port)
      let pinfold = try Pinfold(settings)
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
      service.answer { _ in .status(503) }
      #expect(try Client.curl.fetch("https://www.pinfold.test/", proxy: pinfold.port).succeeded)
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded, "its pins have an hour left")
      service.answer { _ in .body(old) }
      site.switchboard.turn(to: site.old.port)
      #expect(try !Client.curl.fetch(proxy: pinfold.port).succeeded)
      #expect(try pinfold.reasons(4) == ["pin_match", "pin_match", "pin_match", "pin_mismatch"])
      #expect(pinfold.log.contains { $0["step"] as? String == "rollback" })
    }

    @Test("While a service is down nothing fails until the end of the pins, a restart included") func outage() throws {
      let site = try Site()
      let signer = try RecordSigner()
      let record = try signer.record(site.certificates.ecdsa.pin, ttl: 14)
      let made = ContinuousClock.now
      let service = try PinService { _ in .body(record) }
      let settings = try Settings.supplied(service.section(signer), port: site.switchboard.port)
      let first = try Pinfold(settings)
      #expect(try Client.curl.fetch(proxy: first.port).succeeded)
      service.stop()
      #expect(try Client.curl.fetch(proxy: first.port).succeeded)
      try first.end()
      let pinfold = try Pinfold(settings, in: first.workspace)
      var count = 0
      while ContinuousClock.now - made < .seconds(11) {
        let fetched = try Client.curl.fetch(proxy: pinfold.port)
        #expect(fetched.succeeded, "\(fetched)")
        count += 1
      }
      #expect(count > 5)
      #expect(pinfold.decisions.allSatisfy { $0["reason"] as? String == "pin_match" })
      try Wait.untilTrue("the pins to end") { ContinuousClock.now - made > .seconds(14.5) }
      #expect(try !Client.curl.fetch(proxy: pinfold.port).succeeded)
      let last = try #require(try pinfold.reasons(count + 1).last)
      #expect(last == "pins_unavailable")
      #expect((pinfold.decisions.last?["detail"] as? String)?.hasPrefix("connect: ") == true)
      #expect(try HTTP.get("/readyz", port: pinfold.admin)?.status == 200)
    }

    @Test("What the cache kept is verified again: without the key that signed it, it serves nobody")
    func untrustedAfterRestart() throws {
      let site = try Site()
      let (signer, other) = (try RecordSigner(), try RecordSigner())
      let record = try signer.record(site.certificates.ecdsa.pin)
      let service = try PinService { _ in .body(record) }
      let settings = try Settings.supplied(service.section(signer), port: site.switchboard.port)
      let first = try Pinfold(settings)
      #expect(try Client.curl.fetch(proxy: first.port).succeeded)
      try first.end()
      service.stop()
      let pinfold = try Pinfold(settings.with { $0.services = [service.section(other)] }, in: first.workspace)
      #expect(try !Client.curl.fetch(proxy: pinfold.port).succeeded)
      #expect(try pinfold.reasons() == ["pins_unavailable"])
      let files = try FileManager.default.contentsOfDirectory(atPath: first.workspace.path("state/cache"))
      #expect(files.count == 1 && files[0].hasPrefix("pins-"))
    }

    @Test("Records are refreshed ahead of their end while tunnels use them, and not when nobody does") func ahead()
      throws
    {
      let site = try Site()
      let signer = try RecordSigner()
      let service = try PinService { _ in
        (try? signer.record(site.certificates.ecdsa.pin, ttl: 12)).map { .body($0) } ?? .status(500)
      }
      let pinfold = try Pinfold(.supplied(service.section(signer), port: site.switchboard.port))
      let traffic = Traffic(proxy: pinfold.port)
      try Wait.untilTrue("two refreshes", seconds: 60) { service.asked.count >= 3 }
      traffic.stop()
      #expect(traffic.failed.isEmpty, "\(traffic.failed)")
      // No tunnel but the first found no pins.
      let metrics = try pinfold.metrics()
      #expect(metrics.sum("pinfold_cache_total", #"result="miss""#) == 1)
      #expect(metrics.sum("pinfold_cache_total", #"result="stale""#) == 0)
      let gaps = zip(service.times, service.times.dropFirst()).map { $1 - $0 }
      #expect(gaps.allSatisfy { $0 > .seconds(7) && $0 < .seconds(12) }, "\(gaps)")
      Thread.sleep(forTimeInterval: 13)
      let count = service.asked.count
      Thread.sleep(forTimeInterval: 13)
      #expect(service.asked.count == count, "nobody needs them")
    }

    @Test("A reload takes changed services over, and keeps the pins that still verify") func reload() throws {
      let site = try Site()
      let (signer, other) = (try RecordSigner(), try RecordSigner())
      let record = try signer.record(site.certificates.ecdsa.pin)
      let service = try PinService { _ in .body(record) }
      let settings = try Settings.supplied(service.section(signer), port: site.switchboard.port)
      let pinfold = try Pinfold(settings)
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
      service.stop()
      func reload(_ section: String, _ number: Int) throws {
        try pinfold.reload(settings.with { $0.services = [section] })
        try Wait.untilTrue("reload \(number)") {
          pinfold.log.count { $0["message"] as? String == "reloaded" } == number
        }
      }
      // One key more, another lifetime: what is at hand verifies under it.
      try reload(service.section(other, signer, more: "max_ttl_seconds: 7200"), 1)
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
      // Another key alone: it does not.
      try reload(service.section(other), 2)
      #expect(try !Client.curl.fetch(proxy: pinfold.port).succeeded)
      #expect(try pinfold.reasons(3) == ["pin_match", "pin_match", "pins_unavailable"])
    }

    @Test("`explain`, `check` and /status know services") func commands() throws {
      let site = try Site()
      let signer = try RecordSigner()
      let record = try signer.record(site.certificates.ecdsa.pin)
      let service = try PinService { host in host.hasPrefix("api.") ? .body(record) : .status(404) }
      let pinfold = try Pinfold(.supplied(service.section(signer), port: site.switchboard.port))
      let file = pinfold.workspace.path("pinfold.json5")
      let before = try Pinfold.command("explain", "-c", file, "api.pinfold.test")
      #expect(before.succeeded && before.output.contains("no record at hand"), "\(before)")
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
      #expect(try !Client.curl.fetch("https://www.pinfold.test/", proxy: pinfold.port).succeeded)
      let explained = try Wait.until("the cache to be written") {
        let explained = try Pinfold.command("explain", "-c", file, "api.pinfold.test")
        return explained.output.contains("cached record") ? explained : nil
      }
      for line in [
        "source: service", "pins: \(site.certificates.ecdsa.pin)", "mode: enforce",
        "steps: a pin service speaks for *.pinfold.test", "steps: service http://127.0.0.1:\(service.port)",
      ] {
        #expect(explained.output.contains(line), "\(line)\n\(explained)")
      }
      let check = try Pinfold.command("check", "-c", file)
      #expect(check.succeeded)
      #expect(check.output.contains("pin_service: http://127.0.0.1:\(service.port) for *.pinfold.test"), "\(check)")
      #expect(
        check.output.contains("warning: pin_services[0].urls: http://127.0.0.1:\(service.port)/v1/pins is fetched"))
      let status = try #require(try HTTP.get("/status", port: pinfold.admin)).body
      #expect(status.contains("\"last_result\" : \"status\"") && status.contains("status: status 404"), "\(status)")
      #expect(status.contains("\"pin_records\" : 1"))
    }
  }
}
