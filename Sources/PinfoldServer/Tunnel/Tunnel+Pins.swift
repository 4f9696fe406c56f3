import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply
import PinfoldTelemetry
import PinfoldWire

extension Tunnel {
  /// The decision for this tunnel. Where its pins come from a service and none are at hand, it waits until they were
  /// fetched or could not be: the first tunnel to a host waits, all others find them in memory. A client that leaves
  /// meanwhile ends its own tunnel and nobody else's.
  ///
  /// Whoever is not served here, or asks for a port that is not opened, makes nobody fetch anything.
  @inline(__always)
  func decide(
    _ authority: Authority, _ user: String?, _ rules: Rules, _ account: inout TunnelAccount
  ) async throws(TunnelFailure) -> Decision {
    let decision = worker.services.decide(authority, user: user, for: account.identity, rules)
    account.decision = decision
    guard let service = rules.pinService(for: decision) else {
      try admit(decision, rules)
      return decision
    }
    guard decision.action == .block(.pinsUnavailable) else {
      worker.shard.cache(.hit)
      try admit(decision, rules)
      return decision
    }
    try admit(asking: decision, rules)
    if case .stale = worker.services.supply.look(authority.host, service, isUse: false) {
      worker.shard.cache(.stale)
    } else {
      worker.shard.cache(.miss)
    }
    let failure = await worker.services.supply.fetch(
      authority.host, service, for: client, account.identity, on: worker.loop)
    // What was in force when it began may be over.
    let supplied = worker.services.decide(authority, user: user, for: account.identity, rules)
    account.decision = supplied
    if case .block = supplied.action {
      if client.isCancelled { throw .draining }
      account.obstacle =
        client.hasHungUp
        ? "the client went away before its pins were there" : failure.map { "\($0.step): \($0.description)" }
    }
    try admit(supplied, rules)
    return supplied
  }
}
