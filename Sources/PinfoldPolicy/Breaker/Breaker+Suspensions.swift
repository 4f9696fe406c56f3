/// What the policy in force lets the breaker do.
package struct BreakerTerms: Sendable, Equatable {
  /// Version of the policy; 0 without one.
  package var policyVersion: UInt64 = 0
  /// The policy's `monitoring`.
  package var monitoring = Monitoring()
  /// Rules of the policy.
  package var ruleCount = 0

  /// Terms without a policy: alerts only, by the defaults.
  package init() {}

  /// The terms of a policy.
  package init(_ policy: PolicySnapshot) {
    policyVersion = policy.version
    guard let document = policy.document else { return }
    monitoring = document.monitoring
    ruleCount = document.table.count
  }

  /// How many rules may be suspended at a time: whole ones, at least one.
  package var suspendedRuleLimit: Int {
    max(1, Int(exactly: (monitoring.maxDisabledPercent * Double(ruleCount) / 100).rounded(.down)) ?? 1)
  }

  /// The cool-down in milliseconds.
  var cooldown: Int64 { Int64(clamping: monitoring.cooldownSeconds) &* 1000 }
}

extension Breaker {
  /// Goes by other terms from now on. With the same ones nothing changes; otherwise everything counted is forgotten,
  /// since it was counted against other pins, and every suspension ends.
  package mutating func adopt(_ terms: BreakerTerms) -> [BreakerEvent] {
    guard terms != self.terms else { return [] }
    let events = suspensions.values.map { BreakerEvent.rearmed($0, .policy) }
    self = Breaker()
    self.terms = terms
    return events
  }

  /// Ends the suspensions whose time is over.
  package mutating func expire(at moment: Int64) -> [BreakerEvent] {
    suspensions.keys.flatMap { key in end(key, ifOverAt: moment) }
  }

  /// Ends every client's suspension of a rule and begins to count it anew.
  package mutating func rearm(_ rule: RuleReference) -> [BreakerEvent] {
    let subject = BreakerSubject.rule(rule.number)
    let ended = suspensions.filter { $0.key.subject == subject }
    for key in ended.keys { suspensions[key] = nil }
    clients.removeAll { $0.subject == subject }
    rules.remove(subject)
    return ended.values.map { .rearmed($0, .command) }
  }

  /// Takes up suspensions of an earlier run, as far as this policy, whose terms it goes by, would have them. Returns those
  /// it took.
  package mutating func restore(
    _ trips: [BreakerTrip], under policy: PolicySnapshot, at moment: Int64
  ) -> [BreakerTrip] {
    trips.filter { trip in
      guard let rule = policy.table.rule(for: trip.authority), rule.pattern == trip.rule else { return false }
      return restore(trip, of: rule, at: moment)
    }
  }

  /// Takes up a suspension of an earlier run. False, and nothing changed, unless the terms and the rule would have it
  /// suspended today, and it does not last longer than a fresh one.
  package mutating func restore(_ trip: BreakerTrip, of rule: RuleReference, at moment: Int64) -> Bool {
    let settings = rule.settings
    guard let client = trip.client, let until = trip.until, until > moment, until <= moment &+ terms.cooldown,
      terms.monitoring.enabled, terms.monitoring.autoDisable, settings.enabled, settings.mode == .enforce,
      !settings.neverDisable, settings.verifyChain, suspensions.count < Self.suspensionLimit,
      hasRoom(for: .rule(rule.number))
    else { return false }
    suspensions[Key(subject: .rule(rule.number), client: client)] = trip
    return true
  }

  /// Why a crossing must not suspend; `nil` when it may.
  func restraint(on sample: BreakerSample) -> BreakerRestraint? {
    if let restraint = sample.restraint { return restraint }
    guard terms.monitoring.autoDisable else { return .autoDisableOff }
    return hasRoom(for: sample.subject) ? nil : .tooManyDisabled
  }

  private func hasRoom(for subject: BreakerSubject) -> Bool {
    let suspended = Set(suspensions.keys.map(\.subject))
    return suspended.contains(subject) || suspended.count < terms.suspendedRuleLimit
  }

  /// Armed again, with an empty window: what was let through must not suspend it once more by itself.
  mutating func end(_ key: Key, ifOverAt moment: Int64) -> [BreakerEvent] {
    guard let trip = suspensions[key], !trip.isOpen(at: moment) else { return [] }
    suspensions[key] = nil
    clients.remove(key)
    return [.rearmed(trip, .elapsed)]
  }

  /// Makes room for one more suspension: the one that ends first gives way.
  mutating func displace() -> [BreakerEvent] {
    guard suspensions.count >= Self.suspensionLimit,
      let first = suspensions.min(by: { ($0.value.until ?? 0, $0.value.since) < ($1.value.until ?? 0, $1.value.since) })
    else { return [] }
    suspensions[first.key] = nil
    clients.remove(first.key)
    return [.rearmed(first.value, .displaced)]
  }

  // MARK: Showing

  /// The crossings whose window still reaches the threshold and that suspend nothing, oldest first.
  package func alerts(at moment: Int64) -> [BreakerTrip] {
    let percent = terms.monitoring.failureThreshold
    let own = clients.entries.filter { suspensions[$0.key] == nil }.map(\.value)
    let alerts = (own + rules.entries.map(\.value)).compactMap { entry -> BreakerTrip? in
      guard let alert = entry.alert, entry.window.advanced(to: moment).reaches(percent: percent) else { return nil }
      return alert
    }
    return alerts.sorted { $0.since < $1.since }
  }

  /// The suspensions that last, oldest first.
  package func openSuspensions(at moment: Int64) -> [BreakerTrip] {
    suspensions.values.filter { $0.isOpen(at: moment) }.sorted { $0.since < $1.since }
  }

  /// Whether a rule is suspended for any client.
  package func isSuspended(_ rule: RuleReference, at moment: Int64) -> Bool {
    suspensions.contains { $0.key.subject == .rule(rule.number) && $0.value.isOpen(at: moment) }
  }
}
