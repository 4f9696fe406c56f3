/// The outcome of one inspection: allowed or refused, with exactly one reason.
///
/// A verdict is a value, never an error. It allows only when its reason does, so no construction can turn a
/// failure into an allow.
package struct Verdict: Equatable, Sendable {
  /// The one reason.
  package var reason: Reason
  /// How the key became known.
  package var method: VerificationMethod
  /// What was seen, for the log only: constant text or text built from already escaped values.
  package var detail: String
  /// The key of the leaf that was judged, when one was seen.
  package var leafKey: Digest256?
  /// Whether the peer has yet to show that it owns the key, by the end of its handshake: with static RSA it signs nothing.
  package var awaitsProof = false

  /// Makes a verdict that allows exactly when its reason does.
  package init(_ reason: Reason, method: VerificationMethod = .none, detail: String = "", leafKey: Digest256? = nil) {
    self.reason = reason
    self.method = method
    self.detail = detail
    self.leafKey = leafKey
  }

  /// Whether the tunnel goes on.
  package var allows: Bool { reason.allows }
}
