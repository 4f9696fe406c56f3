import PinfoldModel
import Testing

@testable import PinfoldPolicy

/// A breaker under a policy of some rules, with decisions as the policy makes them.
struct BreakerBench {
  let snapshot: PolicySnapshot
  var breaker = Breaker()
  /// Milliseconds.
  var moment: Int64 = 1_000_000

  static let alice = ClientIdentity.user("alice")
  static let bob = ClientIdentity.address(.v4(0x7f00_0002))

  /// Rules for `host-0.example`, `host-1.example` and so on, and `*.wild.example`.
  init(
    rules: Int = 3, version: UInt64 = 7, rule: (inout RuleSettings) -> Void = { _ in },
    _ change: (inout Monitoring) -> Void
  ) throws {
    let names = (0..<rules).map { "host-\($0).example" } + ["*.wild.example"]
    let table = try Samples.table(names.map { ($0, [.publicKey(Samples.digest(1))]) }, rule)
    var monitoring = Monitoring()
    monitoring.autoDisable = true
    change(&monitoring)
    let document = Samples.document(table) {
      $0.version = version
      $0.monitoring = monitoring
    }
    var local = LocalPolicy()
    local.builtin = try Samples.table([("builtin.example", [.publicKey(Samples.digest(1))])])
    snapshot = PolicySnapshot(.document(document), local: local)
    #expect(breaker.adopt(BreakerTerms(snapshot)).isEmpty)
  }

  /// The same with what a policy says of `monitoring` that asks for `auto_disable` and nothing else.
  init(version: UInt64 = 7, rule: (inout RuleSettings) -> Void = { _ in }) throws {
    try self.init(version: version, rule: rule, { _ in })
  }

  func decision(_ host: String = "host-0.example", for client: ClientIdentity = Self.alice) throws -> Decision {
    let decision = snapshot.decide(try Samples.authority(host + ":443"), at: Samples.now)
    return breaker.amend(decision, for: client, at: moment)
  }

  func isSuspended(_ host: String = "host-0.example", for client: ClientIdentity = Self.alice) throws -> Bool {
    try decision(host, for: client).state == .suspended
  }

  func rule(_ host: String = "host-0.example") throws -> RuleReference {
    try #require(snapshot.document?.table.rule(for: try Samples.authority(host + ":443")))
  }

  /// A peer with good chain, name and proof, whose key is pinned or not.
  static func peer(pinned: Bool, _ change: (inout Evidence) -> Void = { _ in }) -> Evidence {
    let key = Samples.digest(pinned ? 1 : 2)
    let leaf = Evidence.Element(publicKey: key, certificate: Samples.digest(3))
    var evidence = Evidence(
      publicKey: key, certificate: leaf.certificate, chain: .built([leaf]), nameMatches: true, keyProven: true)
    change(&evidence)
    return evidence
  }

  /// Judges `count` tunnels as a worker would, each a millisecond after the one before, and counts them.
  @discardableResult
  mutating func tunnels(
    _ count: Int, to host: String = "host-0.example", by client: ClientIdentity = Self.alice, _ evidence: Evidence
  ) throws -> [BreakerEvent] {
    var events: [BreakerEvent] = []
    for _ in 0..<count {
      let decision = try decision(host, for: client)
      let verdict = decision.judge(evidence, method: .inBand)
      moment += 1
      guard let sample = BreakerSample(decision, verdict.reason, client: client) else { continue }
      events += breaker.record(sample, at: moment)
    }
    return events
  }

  @discardableResult
  mutating func failures(
    _ count: Int, to host: String = "host-0.example", by client: ClientIdentity = Self.alice
  ) throws -> [BreakerEvent] { try tunnels(count, to: host, by: client, Self.peer(pinned: false)) }

  @discardableResult
  mutating func matches(
    _ count: Int, to host: String = "host-0.example", by client: ClientIdentity = Self.alice
  ) throws -> [BreakerEvent] { try tunnels(count, to: host, by: client, Self.peer(pinned: true)) }
}

extension BreakerEvent {
  /// For rows: what happened, without when.
  var word: String {
    switch self {
    case .alerted(let trip, let restraint): "alert \(trip.rule) \(restraint.rawValue)"
    case .suspended(let trip): "suspend \(trip.rule)"
    case .rearmed(let trip, let cause): "rearm \(trip.rule) \(cause.rawValue)"
    }
  }
}
