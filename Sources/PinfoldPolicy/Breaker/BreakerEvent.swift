package import PinfoldModel

/// What the breaker says when something has changed.
package enum BreakerEvent: Sendable, Equatable {
  /// The threshold was crossed; mismatches go on being refused.
  case alerted(BreakerTrip, BreakerRestraint)
  /// The threshold was crossed, and this client's mismatches pass until the trip's end.
  case suspended(BreakerTrip)
  /// A suspension is over.
  case rearmed(BreakerTrip, RearmCause)
}

/// Why a suspension ended. The raw value is the word of log and audit.
package enum RearmCause: String, CaseIterable, Sendable {
  /// `cooldown_seconds` are over.
  case elapsed
  /// Another policy, or one without `auto_disable`, came into force.
  case policy
  /// An operator asked for it.
  case command
  /// Too many others came after it.
  case displaced
}

/// One crossing of a rule's threshold.
package struct BreakerTrip: Sendable, Equatable {
  /// The rule's pattern, or the host where no rule of the policy decided.
  package let rule: String
  /// The authority of the tunnel that crossed it.
  package let authority: Authority
  /// Whose tunnels failed; `nil` for all clients together.
  package let client: ClientIdentity?
  /// What the window held at that moment.
  package let failures: Int
  package let samples: Int
  /// The moment of the crossing, and the suspension's end where there is one: milliseconds of the breaker's clock.
  package let since: Int64
  package let until: Int64?

  /// A crossing, seen now or kept from an earlier run.
  package init(
    rule: String, authority: Authority, client: ClientIdentity?, failures: Int, samples: Int, since: Int64,
    until: Int64?
  ) {
    self.rule = rule
    self.authority = authority
    self.client = client
    self.failures = failures
    self.samples = samples
    self.since = since
    self.until = until
  }

  /// Failures among the samples, 0–1.
  package var ratio: Double { samples <= 0 ? 0 : Double(failures) / Double(samples) }
}
