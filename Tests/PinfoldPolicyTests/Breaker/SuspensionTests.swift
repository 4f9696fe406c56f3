import PinfoldModel
import Testing

@testable import PinfoldPolicy

@Suite struct SuspensionTests {
  // MARK: Whose it is

  @Test func `one client's failures suspend nothing for another`() throws {
    var bench = try BreakerBench()
    try bench.failures(10_000, by: BreakerBench.bob)
    #expect(try bench.isSuspended(for: BreakerBench.bob))
    for client in [BreakerBench.alice, .local, .user("127.0.0.2"), .address(.v4(0x7f00_0003))] {
      #expect(try !bench.isSuspended(for: client), "\(client)")
      let mismatch = try bench.decision(for: client).judge(BreakerBench.peer(pinned: false), method: .probe)
      #expect(mismatch.reason == .pinMismatch)
    }
  }

  @Test func `one client's matches do not hide another's failures, nor from the watch over all`() throws {
    var bench = try BreakerBench()
    try bench.matches(10_000, by: BreakerBench.bob)
    #expect(try bench.failures(20).map(\.word) == ["suspend host-0.example"])
    #expect(try #require(bench.breaker.failureRatio(of: .name("host-0.example"), at: bench.moment)) < 0.01)
  }

  @Test func `clients that fail a little each raise one alert together and suspend nothing`() throws {
    var bench = try BreakerBench()
    var events: [BreakerEvent] = []
    for number in 0..<50 { events += try bench.failures(2, by: .user("user-\(number)")) }
    #expect(events.map(\.word) == ["alert host-0.example no_single_client"])
    #expect(!bench.breaker.hasSuspensions)
    #expect(bench.breaker.alerts(at: bench.moment).map(\.client) == [nil])
    #expect(bench.breaker.failureRatio(of: .name("host-0.example"), at: bench.moment) == 1)
  }

  @Test("A mapped address is the address it stands for") func mapped() {
    let mapped = IPAddress("::ffff:127.0.0.2")
    #expect(ClientIdentity(user: nil, address: mapped) == BreakerBench.bob)
    #expect(ClientIdentity(user: "a", address: mapped) == .user("a"))
    #expect(ClientIdentity(user: nil, address: nil) == .local)
  }

  // MARK: What it lets through

  @Test func `only a mismatch with chain, name and proof passes`() throws {
    var bench = try BreakerBench()
    try bench.failures(20)
    let decision = try bench.decision()
    func reason(_ change: (inout Evidence) -> Void = { _ in }) -> Reason {
      decision.judge(BreakerBench.peer(pinned: false, change), method: .probe).reason
    }
    #expect(reason() == .suspendedMismatch)
    #expect(reason { $0.chain = .invalid("") } == .chainInvalid)
    #expect(reason { $0.nameMatches = false } == .nameMismatch)
    #expect(reason { $0.keyProven = false } == .keyNotProven)
    #expect(decision.judge(BreakerBench.peer(pinned: true), method: .probe).reason == .pinMatch)
  }

  // MARK: Its end

  @Test func `it ends by itself, and takes as many failures as before to come again`() throws {
    var bench = try BreakerBench { $0.cooldownSeconds = 60 }
    try bench.failures(20)
    // Mismatches that pass meanwhile do not make it longer.
    #expect(try bench.failures(500).isEmpty)
    bench.moment = 1_000_020 + 60_000 - 1
    #expect(try bench.isSuspended())
    bench.moment += 1
    #expect(try !bench.isSuspended())
    #expect(try bench.failures(19).map(\.word) == ["rearm host-0.example elapsed"])
    #expect(try !bench.isSuspended())
    #expect(try bench.failures(1).map(\.word) == ["suspend host-0.example"])
  }

  @Test func `its end is said without any tunnel, once`() throws {
    var bench = try BreakerBench { $0.cooldownSeconds = 1 }
    try bench.failures(20)
    #expect(bench.breaker.expire(at: bench.moment + 999).isEmpty)
    #expect(bench.breaker.openSuspensions(at: bench.moment + 1000).isEmpty)
    #expect(bench.breaker.expire(at: bench.moment + 1000).map(\.word) == ["rearm host-0.example elapsed"])
    #expect(bench.breaker.expire(at: bench.moment + 2000).isEmpty)
    #expect(!bench.breaker.hasSuspensions)
  }

  @Test func `a command ends every client's, and begins to count anew`() throws {
    var bench = try BreakerBench { $0.maxDisabledPercent = 100 }
    try bench.failures(20)
    try bench.failures(20, by: BreakerBench.bob)
    try bench.failures(20, to: "host-1.example")
    let events = bench.breaker.rearm(try bench.rule())
    #expect(events.map(\.word) == Array(repeating: "rearm host-0.example command", count: 2))
    #expect(try !bench.isSuspended() && !bench.isSuspended(for: BreakerBench.bob))
    #expect(try bench.isSuspended("host-1.example"))
    #expect(try bench.failures(19).isEmpty)
    #expect(bench.breaker.rearm(try bench.rule()).isEmpty)
  }

  @Test func `another policy ends all of them, and the same one none`() throws {
    var bench = try BreakerBench()
    try bench.failures(20)
    let terms = bench.breaker.terms
    #expect(bench.breaker.adopt(terms).isEmpty)
    #expect(try bench.isSuspended())
    for change in [
      { $0.policyVersion = 8 }, { $0.monitoring.autoDisable = false }, { $0.monitoring.enabled = false },
    ] as [(inout BreakerTerms) -> Void] {
      var other = terms
      change(&other)
      var copy = bench
      #expect(copy.breaker.adopt(other).map(\.word) == ["rearm host-0.example policy"])
      #expect(try !copy.isSuspended())
      #expect(copy.breaker.alerts(at: copy.moment).isEmpty)
    }
  }

  @Test func `a tunnel that was judged under another policy counts for nothing`() throws {
    let old = try BreakerBench(version: 6)
    var bench = try BreakerBench { $0.minSamples = 1 }
    let sample = try #require(BreakerSample(try old.decision(), .pinMismatch, client: BreakerBench.alice))
    #expect(bench.breaker.record(sample, at: bench.moment).isEmpty)
    try bench.failures(1)
    let decision = try old.decision()
    #expect(bench.breaker.amend(decision, for: BreakerBench.alice, at: bench.moment).state == .enforce)
  }

  // MARK: Restarts

  struct Kept: CustomTestStringConvertible, Sendable {
    var testDescription: String
    var holds = false
    var ends: Int64 = 500_000
    var rule: @Sendable (inout RuleSettings) -> Void = { _ in }
    var monitoring: @Sendable (inout Monitoring) -> Void = { _ in }
  }

  @Test(
    "What is kept over a restart holds only where the policy of today would have it",
    arguments: [
      Kept(testDescription: "the same policy", holds: true),
      Kept(testDescription: "it is over meanwhile", ends: 0),
      Kept(testDescription: "it lasts longer than any could", ends: 900_001),
      Kept(testDescription: "without auto_disable", monitoring: { $0.autoDisable = false }),
      Kept(testDescription: "with monitoring off", monitoring: { $0.enabled = false }),
      Kept(testDescription: "with never_disable", rule: { $0.neverDisable = true }),
      Kept(testDescription: "in report mode", rule: { $0.mode = .report }),
      Kept(testDescription: "without a verified chain", rule: { $0.verifyChain = false }),
      Kept(testDescription: "with the rule switched off", rule: { $0.enabled = false }),
    ])
  func restored(_ row: Kept) throws {
    var bench = try BreakerBench(rule: row.rule, row.monitoring)
    let rule = try bench.rule()
    let trip = BreakerTrip(
      rule: "host-0.example", authority: try Samples.authority("host-0.example:443"), client: BreakerBench.alice,
      failures: 20, samples: 20, since: bench.moment - 400_000, until: bench.moment + row.ends)
    #expect(bench.breaker.restore(trip, of: rule, at: bench.moment) == row.holds)
    #expect(try bench.isSuspended() == row.holds)
    #expect(bench.breaker.openSuspensions(at: bench.moment).count == (row.holds ? 1 : 0))
    bench.moment += 500_000
    #expect(try !bench.isSuspended())
  }

  @Test func `what is kept is bounded like what is new`() throws {
    var bench = try BreakerBench()
    func trip(_ host: String) throws -> BreakerTrip {
      BreakerTrip(
        rule: host, authority: try Samples.authority(host + ":443"), client: BreakerBench.alice, failures: 1,
        samples: 1, since: 0, until: bench.moment + 1000)
    }
    for (host, holds) in [("host-0.example", true), ("host-1.example", false), ("host-0.example", true)] {
      #expect(try bench.breaker.restore(trip(host), of: bench.rule(host), at: bench.moment) == holds)
    }
  }

  // MARK: Bounds

  @Test func `the number of windows and suspensions is bounded, and the first to end gives way`() throws {
    var bench = try BreakerBench { $0.minSamples = 1 }
    try bench.failures(1, by: .user("first"))
    var events: [BreakerEvent] = []
    for number in 0..<6000 { events += try bench.failures(1, by: .user("user-\(number)")) }
    #expect(bench.breaker.suspensions.count == Breaker.suspensionLimit)
    #expect(bench.breaker.clients.count <= Breaker.windowLimit)
    #expect(events.first { if case .rearmed(_, .displaced) = $0 { true } else { false } } != nil)
    #expect(try !bench.isSuspended(for: .user("first")))
    #expect(try bench.isSuspended(for: .user("user-5999")))
  }

  @Test func `a host's ratio is that of the window, and none while samples are few`() throws {
    var bench = try BreakerBench()
    try bench.matches(15)
    try bench.failures(4, by: BreakerBench.bob)
    func ratio() -> Double? { bench.breaker.failureRatio(of: .name("host-0.example"), at: bench.moment) }
    #expect(ratio() == nil)
    try bench.failures(1, by: BreakerBench.bob)
    #expect(ratio() == 0.25)
    bench.moment += 300_000
    #expect(ratio() == nil)
  }

  @Test func `an alert ends with the failures that raised it, and the next one is said again`() throws {
    var bench = try BreakerBench { $0.autoDisable = false }
    #expect(try bench.failures(20).count == 1)
    #expect(try bench.matches(1000).isEmpty)
    #expect(bench.breaker.alerts(at: bench.moment).isEmpty)
    #expect(try bench.failures(100).count == 1)
    #expect(bench.breaker.alerts(at: bench.moment).count == 2)
    #expect(bench.breaker.alerts(at: bench.moment + 300_000).isEmpty, "the window is empty by then")
  }
}
