package import PinfoldConfig
import PinfoldModel
package import PinfoldPolicy
import PinfoldSupply
import PinfoldTelemetry

/// What a running Pinfold has written down of suspensions, for `explain`, as far as a start would take it up: read from
/// the sealed cache, which only who may read its key can do. Nothing is made or changed.
package struct KeptSuspensions: Sendable {
  private struct Kept: Sendable {
    var client: ClientIdentity
    var until: Timestamp
  }

  private let kept: [Kept]

  /// The suspensions of the rule that a decision of this policy stands on. None where the cache or its key cannot be read.
  package init(_ configuration: Configuration, _ policy: PolicySnapshot, of decision: Decision) {
    var breaker = Breaker()
    _ = breaker.adopt(BreakerTerms(policy))
    let trips = Self.record(configuration, version: policy.version).compactMap(\.trip)
    kept = breaker.restore(trips, under: policy, at: BreakerClock.moment).compactMap { trip in
      guard decision.source == .policy, trip.rule == decision.rulePattern, let client = trip.client,
        let until = trip.until
      else { return nil }
      return Kept(client: client, until: Timestamp(seconds: BreakerClock.time(of: until).milliseconds / 1000))
    }
  }

  private static func record(_ configuration: Configuration, version: UInt64) -> [SuspensionRecord.Suspension] {
    let directory = configuration.stateDirectory
    guard let cache = try? SealedCache(existingIn: directory, keyFile: configuration.cacheKeyFile),
      let record = try? SuspensionKeeper.read(cache), record.version == version
    else { return [] }
    return record.suspensions
  }

  /// Whether they concern this user or, without one, a client of this machine.
  package func concern(_ user: String?) -> Bool { kept.contains { $0.client.isMeant(by: user) } }

  /// Lines for an explanation.
  package func steps(for user: String?) -> [String] {
    let own = kept.filter { $0.client.isMeant(by: user) }.map(\.until).max()
    let others = kept.filter { !$0.client.isMeant(by: user) }
    var steps: [String] = []
    if let own { steps.append("suspended for \(user ?? "clients of this machine") until \(own.text)") }
    if let last = others.map(\.until).max() {
      steps.append("suspended for \(others.count) other clients, at most until \(last.text)")
    }
    return steps
  }
}

extension ClientIdentity {
  fileprivate func isMeant(by user: String?) -> Bool {
    switch self {
    case .user(let name): name == user
    case .address(let address): user == nil && AddressClass(address) == .loopback
    case .local: user == nil
    }
  }
}
