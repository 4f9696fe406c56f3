package import PinfoldModel

/// A policy document after reading: who it is for, how long it holds, and its rules. Immutable.
package struct PolicyDocument: Sendable {
  /// Grows with each issue of the policy.
  package var version: UInt64
  package var issuedAt: Timestamp
  package var expiresAt: Timestamp
  /// The kill switch: `false` switches every rule off.
  package var enabled = true
  /// Percent of instances the rules are for, 0–100.
  package var rolloutPercentage = 100.0
  /// Instances below this version leave the rules off.
  package var minAppVersion: AppVersion?
  package var rollout = RolloutStrategy()
  package var fallback = Fallback()
  package var monitoring = Monitoring()
  /// Whose signatures count from this document on; `nil` leaves that as it is.
  package var trustedKeys: SignerSet?
  package var table: RuleTable

  /// A document whose optional members have their defaults.
  package init(version: UInt64, issuedAt: Timestamp, expiresAt: Timestamp, table: RuleTable) {
    self.version = version
    self.issuedAt = issuedAt
    self.expiresAt = expiresAt
    self.table = table
  }

  /// How far `issued_at` may lie ahead of our clock, in seconds.
  package static let issueSkew: Int64 = 300

  /// Whether the document may come into force now: issued (with `issueSkew` of tolerance) and not expired.
  package func validity(at now: Timestamp) -> Validity {
    if now >= expiresAt { return .expired }
    let (latest, overflow) = now.seconds.addingReportingOverflow(Self.issueSkew)
    return !overflow && issuedAt.seconds > latest ? .notYetIssued : .valid
  }

  /// Whether a document may come into force.
  package enum Validity: Sendable {
    case valid
    case notYetIssued
    case expired
  }
}

/// `trusted_keys`: keys that are to sign every later policy, and how many of them have to.
package struct SignerSet: Hashable, Sendable {
  /// Public keys as written, 1–64: reading them is the crypto layer's.
  package var keys: [String]
  /// At least 1, at most the number of keys.
  package var requiredSignatures: Int

  /// As the document says.
  package init(keys: [String], requiredSignatures: Int) {
    self.keys = keys
    self.requiredSignatures = requiredSignatures
  }
}

/// Whether and when configured builtin pins stand in for a rule that is switched off.
package struct Fallback: Hashable, Sendable {
  /// `fallback.use_builtin_pins`
  package var useBuiltinPins = true
  /// The hosts they may be used for; `nil` for every host that has some.
  package var hosts: Set<HostName>?

  /// The defaults.
  package init() {}
}

/// What the breaker watches for. Percentages are 0–100, times in seconds.
package struct Monitoring: Hashable, Sendable {
  /// The members of `monitoring`.
  package var enabled = true
  package var failureThreshold = 5.0
  /// Whether a crossed threshold suspends the rule; otherwise it only alerts.
  package var autoDisable = false
  package var minSamples = 20
  package var windowSeconds = 300
  package var cooldownSeconds = 900
  package var maxDisabledPercent = 10.0

  /// The defaults.
  package init() {}
}

/// How `rollout_percentage` picks instances.
package struct RolloutStrategy: Hashable, Sendable {
  /// What decides which side an instance falls on.
  package enum Method: String, CaseIterable, Sendable {
    case percentage
    case whitelist
    case geography
  }

  /// Whose identity decides the side an instance falls on.
  package enum Seed: String, CaseIterable, Sendable {
    case deviceID = "device_id"
    case userID = "user_id"
    case installID = "install_id"
  }

  /// How instances are picked, and by whose identity.
  package var method = Method.percentage
  package var seed = Seed.deviceID
  /// Whether an instance that was once inside stays inside.
  package var sticky = true
  /// Identities that are inside, with `whitelist`.
  package var ids: Set<String> = []
  /// Regions that are inside, with `geography`.
  package var regions: Set<String> = []

  /// The defaults.
  package init() {}
}
