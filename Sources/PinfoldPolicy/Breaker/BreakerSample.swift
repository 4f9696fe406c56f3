package import PinfoldModel

/// One judged tunnel, as the breaker counts it.
package struct BreakerSample: Sendable {
  /// What was asked for, by whom.
  package let authority: Authority
  package let client: ClientIdentity
  /// Whether the pins did not match, in the shape of a key rotation; otherwise they did match.
  package let isFailure: Bool
  /// Version of the policy the verdict was made under.
  package let policyVersion: UInt64
  let subject: BreakerSubject
  /// The rule whose pins were compared; `nil` for pins from elsewhere, which are watched and never suspended.
  let rule: RuleReference?
  /// Why the rule could not be suspended whatever the policy's monitoring says.
  let restraint: BreakerRestraint?

  /// `nil` for what neither counts as a success nor as a failure: anything but a match and a rotation-shaped mismatch.
  ///
  /// A mismatch is rotation-shaped when chain and host name were verified and the key was proven, which is what a
  /// mismatch of `Decision.judge` means where the chain is asked for. Without `verify_chain` nothing tells a rotation
  /// from an interception, so that such rules are not watched at all.
  package init?(_ decision: Decision, _ reason: Reason, client: ClientIdentity) {
    guard decision.action == .inspect, decision.verifyChain else { return nil }
    switch reason {
    case .pinMatch: isFailure = false
    case .pinMismatch, .reportedMismatch, .suspendedMismatch: isFailure = true
    default: return nil
    }
    authority = decision.authority
    policyVersion = decision.policyVersion
    self.client = client
    rule = decision.source == .policy ? decision.rule : nil
    if let rule {
      subject = .rule(rule.number)
      restraint = decision.neverDisable ? .neverDisable : decision.mode == .enforce ? nil : .reportMode
    } else {
      subject = .host(decision.authority.host)
      restraint = .notFromPolicy
    }
  }

  /// The rule's pattern, or the host where no rule of the policy decided.
  var name: String { rule?.pattern ?? authority.host.text }
}

/// What failures are counted for: a rule of the policy in force, or a host that is pinned by somebody else.
enum BreakerSubject: Hashable, Sendable {
  /// The rule's number in the table of the policy in force.
  case rule(Int)
  case host(HostName)
}

/// Why a crossed threshold only raised an alert. The raw value is the word of log and audit.
package enum BreakerRestraint: String, CaseIterable, Sendable {
  /// The policy does not ask for more than alerts.
  case autoDisableOff = "auto_disable_off"
  /// The rule says `never_disable: true`.
  case neverDisable = "never_disable"
  /// The rule lets mismatches through anyway.
  case reportMode = "report_mode"
  /// The pins are the configuration's or a service's.
  case notFromPolicy = "not_from_policy"
  /// `max_disabled_percent` of the rules are suspended already.
  case tooManyDisabled = "max_disabled_percent"
  /// The rule's clients fail only taken together, and there is no client to suspend it for.
  case noSingleClient = "no_single_client"
}
