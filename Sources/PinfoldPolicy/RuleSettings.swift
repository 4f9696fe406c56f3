package import PinfoldModel

/// Which certificates a pin may match.
package enum PinMatching: String, CaseIterable, Hashable, Sendable {
  /// The leaf only.
  case leaf
  /// The leaf, or any certificate of the chain that was built and verified; never of the list as sent.
  case chain
}

/// What a rule does with a mismatch.
package enum EnforcementMode: String, CaseIterable, Hashable, Sendable {
  /// Refuses.
  case enforce
  /// Lets a rotation-shaped mismatch through and says so.
  case report
}

/// How the key behind a TLS 1.3 handshake becomes known.
package enum TLS13Mode: String, CaseIterable, Hashable, Sendable {
  case probe
  case keyLog = "key_log"
  case deny
}

/// What a client hello without server name means.
package enum SNIRule: String, CaseIterable, Hashable, Sendable {
  /// Refused, unless the host is an IP literal.
  case required
  /// Let pass. A name that is present has to be the host all the same.
  case optional
}

/// What happens to a host that nothing pins.
package enum UnpinnedMode: String, CaseIterable, Hashable, Sendable {
  /// Refused.
  case block
  /// Inspected without pins: chain and host name are verified.
  case verify
  /// Relayed unseen.
  case tunnel
}

/// Everything of a rule but its pattern and its pins. Rules with equal settings share one record.
package struct RuleSettings: Hashable, Sendable {
  /// Whether the rule counts, how a mismatch is treated, and what a pin may match.
  package var enabled = true
  package var mode = EnforcementMode.enforce
  package var match = PinMatching.leaf
  /// `nil`: as the configuration's `tls.tls13`.
  package var tls13: TLS13Mode?
  /// Whether chain and host name are verified beside the pins.
  package var verifyChain = true
  /// Whether the breaker must leave the rule alone.
  package var neverDisable = false
  package var trustOnFirstUse = false
  package var sni = SNIRule.required
  /// Percent of instances the rule is for, 0–100.
  package var rolloutPercentage = 100.0
  /// From this moment on the pins count as expired.
  package var expiresAt: Timestamp?

  /// The defaults of a rule that writes only its pins.
  package init() {}
}
