package import PinfoldConfig
package import PinfoldModel
package import PinfoldPolicy
import PinfoldSupply

/// What a running Pinfold has written down of suspensions, for `explain`: read from the sealed cache, which only who may
/// read its key can do. Nothing is made or changed.
package struct KeptSuspensions: Sendable {
  private struct Kept: Sendable {
    var client: ClientIdentity
    var until: Timestamp
  }

  private let kept: [Kept]

  /// The suspensions of the rule that a decision stands on. None where the cache or its key cannot be read.
  package init(_ configuration: Configuration, of decision: Decision, at now: Timestamp) {
    kept = Self.record(configuration, version: decision.policyVersion).compactMap { entry in
      let until = Timestamp(seconds: entry.until / 1000)
      guard decision.source == .policy, entry.rule == decision.rulePattern, until > now, let trip = entry.trip,
        let client = trip.client
      else { return nil }
      return Kept(client: client, until: until)
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
