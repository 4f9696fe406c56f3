package import PinfoldModel

/// The policy in force: the signed document and what the configuration adds. Immutable; it is swapped whole.
package final class PolicySnapshot: Sendable {
  /// The signed document.
  package enum Standing: Sendable {
    /// A document that was accepted.
    case document(PolicyDocument)
    /// The configuration names no bundle: the configuration alone decides.
    case notConfigured
    /// Bundles are configured and none was acceptable: everything is blocked.
    case unavailable
  }

  /// The document, or why there is none; and what the configuration adds.
  package let standing: Standing
  package let local: LocalPolicy

  /// Puts the two together.
  package init(_ standing: Standing, local: LocalPolicy) {
    self.standing = standing
    self.local = local
    document = if case .document(let document) = standing { document } else { nil }
    version = document?.version ?? 0
    table = document?.table ?? .empty
  }

  /// The document in force, if there is one.
  package let document: PolicyDocument?
  /// Version of the document in force; 0 without one.
  package let version: UInt64
  /// Its rules, without the detour over the document, which is large to copy.
  let table: RuleTable

  /// What the policy says of this authority now. `user` is the proxy user, if there is one.
  package func decide(_ authority: Authority, at now: Timestamp, user: String? = nil) -> Decision {
    var trace = DecisionTrace(isOn: false)
    return decide(authority, at: now, user: user, trace: &trace)
  }

  /// The same decision with the steps that led to it, in order, for people. What amends a decision may still open its
  /// port: nothing is said of that here.
  package func explain(
    _ authority: Authority, at now: Timestamp, user: String? = nil
  ) -> (decision: Decision, steps: [String]) {
    var trace = DecisionTrace(isOn: true)
    let decision = decide(authority, at: now, user: user, trace: &trace)
    return (decision, trace.steps)
  }
}

/// Collects the steps of a decision when somebody asked for them.
struct DecisionTrace {
  let isOn: Bool
  private(set) var steps: [String] = []

  init(isOn: Bool) { self.isOn = isOn }

  mutating func note(_ step: @autoclosure () -> String) {
    if isOn { steps.append(step()) }
  }
}
