import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldTelemetry
import Synchronization
import Testing

@testable import PinfoldServer

/// The breaker as workers use it: from several threads at once, and at no cost where nothing is to be done.
@Suite struct BreakerWatchTests {
  private let metrics = Metrics()
  private let watch: BreakerWatch
  private let rule: RuleReference

  private static func policy(version: UInt64 = 1, _ change: (inout Monitoring) -> Void = { _ in }) throws
    -> PolicySnapshot
  {
    var builder = RuleTableBuilder()
    let digest = try #require(Digest256(Array(repeating: 1, count: 32)))
    try builder.add(try HostPattern("api.example.com"), pins: [(.publicKey(digest), .listed)])
    var document = PolicyDocument(
      version: version, issuedAt: Timestamp(seconds: 0), expiresAt: Timestamp(seconds: .max), table: builder.table())
    document.monitoring.autoDisable = true
    change(&document.monitoring)
    return PolicySnapshot(.document(document), local: LocalPolicy())
  }

  private static let authority = Authority(host: .name("api.example.com"), port: 443)

  private static func decision(_ policy: PolicySnapshot) -> Decision {
    policy.decide(authority, at: Timestamp(seconds: 1))
  }

  init() throws {
    let log = try Logger(level: .error, format: .json)
    watch = BreakerWatch(metrics: metrics, log: log, audit: try AuditTrail(nil, log: log))
    rule = try #require(try Self.policy().document?.table.rule(for: Self.authority))
  }

  private func trips(_ action: String) -> String? {
    let text = String(decoding: metrics.render(Scrape(version: "1")), as: UTF8.self)
    return text.split(separator: "\n").first { $0.hasPrefix("pinfold_breaker_trips_total{") && $0.contains(action) }
      .flatMap { $0.split(separator: " ").last.map(String.init) }
  }

  @Test("Clients that fail on many threads at once are suspended once each, and nobody else is") func threads()
    async throws
  {
    let policy = try Self.policy()
    watch.adopt(policy)
    let decision = Self.decision(policy)
    await withTaskGroup { group in
      for number in 0..<16 {
        group.addTask { [watch] in
          let client = ClientIdentity.user("user-\(number / 2)")
          for _ in 0..<500 { watch.count(watch.amend(decision, for: client), .pinMismatch, client: client) }
        }
      }
    }
    let figures = try #require(watch.figures(policy))
    #expect(figures.suspensions.count == 8)
    #expect(Set(figures.suspensions.compactMap(\.client)).count == 8)
    #expect(trips("suspend") == "8")
    for number in 0..<8 { #expect(watch.amend(decision, for: .user("user-\(number)")).state == .suspended) }
    #expect(watch.amend(decision, for: .user("user-8")).state == .enforce)
    #expect(watch.isSuspendedForAnyone(decision))
    #expect(watch.failureRatio(of: .name("api.example.com")) == 1)
    #expect(watch.rearm(rule) { _ in } == 8)
    #expect(!watch.isSuspendedForAnyone(decision))
  }

  @Test func `with monitoring off nothing is counted and nothing shown`() throws {
    let policy = try Self.policy { $0.enabled = false }
    watch.adopt(policy)
    for _ in 0..<100 { watch.count(Self.decision(policy), .pinMismatch, client: .local) }
    let figures = try #require(watch.figures(policy))
    #expect(!figures.enabled && figures.suspensions.isEmpty && figures.alerts.isEmpty)
    #expect(watch.failureRatio(of: .name("api.example.com")) == nil)
    #expect(trips("alert") == nil && trips("suspend") == nil)
  }

  @Test func `another policy arms everything before any tunnel sees it`() throws {
    let first = try Self.policy()
    watch.adopt(first)
    for _ in 0..<20 { watch.count(Self.decision(first), .pinMismatch, client: .local) }
    #expect(watch.amend(Self.decision(first), for: .local).state == .suspended)
    let second = try Self.policy(version: 2)
    watch.adopt(second)
    // A tunnel that was decided by the rules before asks again.
    for policy in [first, second] { #expect(watch.amend(Self.decision(policy), for: .local).state == .enforce) }
  }

  @Test func `tunnels without a decision count for nothing, and without a policy there are no figures`() throws {
    watch.adopt(PolicySnapshot(.notConfigured, local: LocalPolicy()))
    for _ in 0..<100 { watch.count(nil, .internalError, client: .local) }
    #expect(watch.figures(PolicySnapshot(.notConfigured, local: LocalPolicy())) == nil)
    let count = watch.rearm(rule) { #expect($0, "there is nothing to write down") }
    #expect(count == 0)
    watch.expire()
  }
}
