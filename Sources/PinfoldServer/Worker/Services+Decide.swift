import PinfoldModel
import PinfoldPolicy
import PinfoldSupply

extension Services {
  /// What is to happen with a tunnel to this authority, asked now: the rules first, then whatever amends their decision.
  ///
  /// Answers at once, from memory. Asked again behind the handshake when something may have changed meanwhile.
  /// `user`: the proxy's user, where one is asked for. A suspension is the client's alone; without a client the answer is
  /// that for anybody. `isUse`: for a tunnel, and not only to show what would be decided.
  func decide(
    _ authority: Authority, user: String?, for client: ClientIdentity? = nil, _ rules: Rules, isUse: Bool = true
  ) -> Decision {
    let decision = trusting(supplied(rules.decide(authority, user: user), rules, isUse: isUse))
    return client.map { breaker.amend(decision, for: $0) } ?? decision
  }

  /// A device's key in memory counts; one that is kept and cannot be read is that device's refusal.
  private func trusting(_ decision: Decision) -> Decision {
    if let key = trust.key(of: decision.authority) { return decision.trusting(key) }
    return trust.isDamaged(decision.authority) ? decision.withUnreadableKey() : decision.trusting(nil)
  }

  /// A host that is left to a pin service gets the pins at hand; without any it stays blocked.
  private func supplied(_ decision: Decision, _ rules: Rules, isUse: Bool) -> Decision {
    guard let service = rules.pinService(for: decision),
      case .fresh(let held) = supply.look(decision.authority.host, service, isUse: isUse)
    else { return decision }
    return decision.supplied(with: held.pins, from: .service, expiresAt: held.record.freshUntil)
  }
}

extension Rules {
  /// The service whose pins a decision stands on, or would if there were some.
  func pinService(for decision: Decision) -> PinService? {
    guard decision.source == .service else { return nil }
    return decision.serviceDomain.flatMap(pinServices.service)
  }
}
