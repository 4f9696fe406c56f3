import PinfoldModel
import Testing

@testable import PinfoldPolicy

@Suite struct BreakerTests {
  @Test func `nothing happens below the least number of samples, and the next one suspends`() throws {
    var bench = try BreakerBench()
    #expect(try bench.failures(19).isEmpty)
    #expect(try !bench.isSuspended())
    let events = try bench.failures(1)
    #expect(events.map(\.word) == ["suspend host-0.example"])
    #expect(try bench.isSuspended())
    guard case .suspended(let trip) = events[0] else { return }
    #expect(trip.client == BreakerBench.alice)
    #expect((trip.failures, trip.samples) == (20, 20))
    #expect(trip.until == trip.since + 900_000)
    #expect(trip.authority.text == "host-0.example:443")
  }

  struct Share: CustomTestStringConvertible {
    var testDescription: String
    var matches: Int
    var failures: Int
    var threshold = 5.0
    var trips: Bool
  }

  @Test(
    "The threshold is a share of the samples, reached and not exceeded",
    arguments: [
      Share(testDescription: "19 of 20 match: five percent", matches: 19, failures: 1, trips: true),
      Share(testDescription: "20 of 21 match: less", matches: 20, failures: 1, trips: false),
      Share(testDescription: "all match", matches: 100, failures: 0, trips: false),
      Share(testDescription: "all match, and zero percent", matches: 100, failures: 0, threshold: 0, trips: false),
      Share(testDescription: "one fails, and zero percent", matches: 99, failures: 1, threshold: 0, trips: true),
      Share(
        testDescription: "one matches, and all have to fail", matches: 1, failures: 99, threshold: 100, trips: false),
      Share(testDescription: "all fail, and all have to", matches: 0, failures: 20, threshold: 100, trips: true),
    ])
  func share(_ row: Share) throws {
    var bench = try BreakerBench { $0.failureThreshold = row.threshold }
    try bench.matches(row.matches)
    let events = try bench.failures(row.failures)
    #expect(events.isEmpty != row.trips, "\(events.map(\.word))")
    #expect(try bench.isSuspended() == row.trips)
  }

  @Test func `one sample may be enough`() throws {
    var bench = try BreakerBench { $0.minSamples = 1 }
    #expect(try bench.failures(1).map(\.word) == ["suspend host-0.example"])
  }

  // MARK: What counts

  struct Attack: CustomTestStringConvertible, Sendable {
    var testDescription: String
    var change: @Sendable (inout Evidence) -> Void
  }

  @Test(
    "A thousand failures in the shape of an attack count for nothing",
    arguments: [
      Attack(testDescription: "a chain that does not verify") { $0.chain = .invalid("expired") },
      Attack(testDescription: "a chain nobody looked at") { $0.chain = .unchecked },
      Attack(testDescription: "the chain of another leaf") { $0.chain = .built([]) },
      Attack(testDescription: "another host's name") { $0.nameMatches = false },
      Attack(testDescription: "a key without proof") { $0.keyProven = false },
      Attack(testDescription: "a raw public key") { $0.certificate = nil },
    ])
  func attacks(_ row: Attack) throws {
    var bench = try BreakerBench { $0.minSamples = 1 }
    #expect(try bench.tunnels(1000, BreakerBench.peer(pinned: false, row.change)).isEmpty)
    #expect(try !bench.isSuspended())
    #expect(bench.breaker.alerts(at: bench.moment).isEmpty)
    // And they are no successes either, behind which failures could hide: one of one is a hundred percent.
    #expect(try bench.failures(1).count == 1)
  }

  @Test("Only a match and a mismatch count, of all reasons", arguments: Reason.allCases)
  func reasons(_ reason: Reason) throws {
    let bench = try BreakerBench()
    let sample = BreakerSample(try bench.decision(), reason, client: BreakerBench.alice)
    switch reason {
    case .pinMatch: #expect(sample?.isFailure == false)
    case .pinMismatch, .reportedMismatch, .suspendedMismatch: #expect(sample?.isFailure == true)
    default: #expect(sample == nil)
    }
  }

  @Test func `missing pins and unpinned hosts count for nothing`() throws {
    let bench = try BreakerBench()
    let unpinned = try bench.decision("unknown.example")
    #expect(BreakerSample(unpinned, .pinMismatch, client: BreakerBench.alice) == nil)
    let empty = try bench.decision().supplied(with: .empty, from: .service, expiresAt: nil)
    #expect(
      BreakerSample(empty, empty.judge(BreakerBench.peer(pinned: false), method: .probe).reason, client: .local) == nil)
  }

  @Test func `without a verified chain a mismatch has no shape, and the rule is not watched`() throws {
    var bench = try BreakerBench(rule: { $0.verifyChain = false }) { $0.minSamples = 1 }
    #expect(try bench.failures(100).isEmpty)
    #expect(try !bench.isSuspended())
  }

  // MARK: What may be suspended

  struct Restraint: CustomTestStringConvertible, Sendable {
    var testDescription: String
    var word: String
    var host = "host-0.example"
    var rule: @Sendable (inout RuleSettings) -> Void = { _ in }
    var monitoring: @Sendable (inout Monitoring) -> Void = { _ in }
  }

  @Test(
    "What may not be suspended is alerted, once",
    arguments: [
      Restraint(
        testDescription: "without auto_disable", word: "alert host-0.example auto_disable_off",
        monitoring: { $0.autoDisable = false }),
      Restraint(
        testDescription: "with never_disable", word: "alert host-0.example never_disable",
        rule: { $0.neverDisable = true }),
      Restraint(
        testDescription: "in report mode", word: "alert host-0.example report_mode", rule: { $0.mode = .report }),
      Restraint(
        testDescription: "pins of the configuration", word: "alert builtin.example not_from_policy",
        host: "builtin.example"),
    ])
  func restraints(_ row: Restraint) throws {
    var bench = try BreakerBench(rule: row.rule, row.monitoring)
    #expect(try bench.failures(500, to: row.host).map(\.word) == [row.word])
    #expect(try !bench.isSuspended(row.host))
    #expect(!bench.breaker.hasSuspensions)
    let alerts = bench.breaker.alerts(at: bench.moment)
    #expect(alerts.map(\.client) == [BreakerBench.alice, nil], "the client's, and the rule's over all clients")
    #expect(alerts.allSatisfy { $0.until == nil })
  }

  @Test func `with monitoring off nothing is counted`() throws {
    var bench = try BreakerBench { $0.enabled = false }
    #expect(try bench.failures(1000).isEmpty)
    #expect(bench.breaker.failureRatio(of: .name("host-0.example"), at: bench.moment) == nil)
  }

  @Test(
    "Of all rules only the allowed share is suspended, in whole rules and at least one",
    arguments: [(3, 10.0, 1), (19, 10, 2), (29, 10, 3), (3, 0, 1), (3, 100, 4), (10, 50, 5)])
  func share(_ rules: Int, _ percent: Double, _ limit: Int) throws {
    // One rule more, which is the wildcard.
    var bench = try BreakerBench(rules: rules) {
      $0.maxDisabledPercent = percent
      $0.minSamples = 1
    }
    #expect(bench.breaker.terms.suspendedRuleLimit == limit)
    for number in 0..<rules { try bench.failures(2, to: "host-\(number).example") }
    let suspended = try (0..<rules).filter { try bench.isSuspended("host-\($0).example") }
    #expect(suspended == Array(0..<min(limit, rules)))
    // Another client's suspension of the same rule is not another rule.
    #expect(try bench.failures(1, to: "host-0.example", by: BreakerBench.bob).map(\.word) == ["suspend host-0.example"])
  }

  @Test func `a rule that found no room is suspended once there is some`() throws {
    var bench = try BreakerBench {
      $0.minSamples = 1
      $0.cooldownSeconds = 10
    }
    try bench.failures(1, to: "host-0.example")
    #expect(try bench.failures(1, to: "host-1.example").map(\.word) == ["alert host-1.example max_disabled_percent"])
    bench.moment += 10_000
    #expect(bench.breaker.expire(at: bench.moment).map(\.word) == ["rearm host-0.example elapsed"])
    #expect(try bench.failures(1, to: "host-1.example").map(\.word) == ["suspend host-1.example"])
  }

  @Test func `a pattern's hosts are suspended together`() throws {
    var bench = try BreakerBench { $0.minSamples = 1 }
    try bench.failures(1, to: "a.wild.example")
    #expect(try bench.isSuspended("b.wild.example"))
    #expect(try !bench.isSuspended("host-0.example"))
  }
}
