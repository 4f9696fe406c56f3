package import PinfoldModel

/// Where the pins of a decision come from. The raw value is the word of `explain` and of decision lines.
package enum PinSource: String, CaseIterable, Sendable {
  case policy
  case builtin
  case service
  /// A paired device, or the first key that was seen.
  case device
  case none
}

/// How a host is enforced. The raw value is a metric label.
package enum EnforcementState: String, CaseIterable, Sendable {
  case enforce
  case report
  /// The breaker opened: rotation-shaped mismatches pass for a while.
  case suspended
  /// A rule names the host, but is switched off.
  case disabled
  /// Nothing passes.
  case blocked
}

/// What the policy says of one authority. A small value; it keeps the snapshot's storage alive.
package struct Decision: Sendable {
  /// What has to happen with the tunnel.
  package enum Action: Equatable, Sendable {
    /// Look at the handshake and check it against `pins`.
    case inspect
    /// Look at the handshake; chain and host name have to verify.
    case verifyOnly
    /// Relay unseen.
    case tunnel
    /// Refuse, for this reason.
    case block(Reason)
  }

  /// What was asked for.
  package let authority: Authority
  /// What has to happen, with pins from where, and how it is enforced.
  package var action: Action
  package var source = PinSource.none
  package var state: EnforcementState
  /// The pins, and how they are matched and enforced.
  package var pins = PinSet.empty
  package var match = PinMatching.leaf
  package var mode = EnforcementMode.enforce
  /// How a TLS 1.3 key becomes known.
  package var tls13: TLS13Mode
  package var verifyChain = true
  /// Whether a hello without server name passes. A name that is there has to be the host all the same.
  package var sniOptional: Bool
  package var trustOnFirstUse = false
  /// Whether the next key that is in order becomes the trusted one (`trust_on_first_use`, and none is known).
  package var learnsKey = false
  package var neverDisable = false
  /// When the pins stop to count: the earlier of the rule's and the document's expiry.
  package var expiresAt: Timestamp?
  /// Whether the port is one of `destinations.ports` or opened by a rule of its own; `destination_denied` otherwise.
  package var portAllowed: Bool
  /// Version of the policy document that was asked; 0 without one.
  package let policyVersion: UInt64
  /// The rule that speaks for the host, switched on or not.
  package var rule: RuleReference?
  /// The domain of a pin service that speaks for the host, where `source` is `service`. Without pins supplied such a
  /// decision blocks with `pins_unavailable`.
  package var serviceDomain: RuleReference?

  /// The rule's pattern; `nil` when no rule speaks for the host.
  package var rulePattern: String? { rule?.pattern }
  /// Whether a rule, a builtin pin or a service names the host, even if it is switched off for now. Private
  /// destinations are refused only for the others: switching pins off must not make a device unreachable.
  package var isPinned: Bool { source != .none || rule != nil }

  /// The same decision while the breaker has suspended its rule. Changes nothing unless pins are being enforced.
  package func suspended() -> Decision {
    guard action == .inspect, state == .enforce, !neverDisable else { return self }
    var copy = self
    copy.state = .suspended
    return copy
  }

  /// The same decision with pins that came from elsewhere (a pin service, trust on first use). Without any pin it
  /// blocks with `pins_unavailable`.
  package func supplied(with pins: PinSet, from source: PinSource, expiresAt: Timestamp?) -> Decision {
    var copy = self
    copy.source = source
    copy.pins = pins
    copy.expiresAt = [expiresAt, self.expiresAt].compactMap { $0 }.min()
    if pins.isEmpty {
      copy.action = .block(.pinsUnavailable)
      copy.state = .blocked
    } else {
      copy.action = .inspect
      copy.state = mode == .enforce ? .enforce : .report
    }
    return copy
  }
}
