import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply

extension Inspection {
  /// The verdict on this evidence. Pins of a service that do not match are fetched anew first, once in a while, since a
  /// key that was rotated looks the same; then it is judged by whatever is at hand. Only a match allows.
  @inline(__always)
  func judgeAsOfNow(_ evidence: Evidence, _ method: VerificationMethod) async throws(Refusal) -> Verdict {
    if mayLearnKey, let verdict = await judgeFirstUse(evidence, method) { return verdict }
    let verdict = judgeWithRulesOfNow(evidence, method)
    guard [.pinMismatch, .suspendedMismatch].contains(verdict.reason) else { return verdict }
    let current = worker.rules.current
    let asked = worker.services.decide(decision.authority, user: user, current, isUse: false)
    guard let service = current.pinService(for: asked) else { return verdict }
    await worker.services.supply.refresh(
      afterMismatchOf: decision.authority.host, service, for: client, on: worker.loop, until: deadline)
    return judgeWithRulesOfNow(evidence, method)
  }

  /// Whether a key may be learnt here: by the rules that this tunnel began with, or by newer ones.
  private var mayLearnKey: Bool { decision.trustOnFirstUse || worker.rules.current !== rules }

  /// The verdict on the first key of a device (`trust_on_first_use`), which is trusted from here on if everything else is
  /// in order; `nil` when no key is to be learnt, or another tunnel's was quicker.
  private func judgeFirstUse(_ evidence: Evidence, _ method: VerificationMethod) async -> Verdict? {
    let asked = worker.services.decide(decision.authority, user: user, worker.rules.current, isUse: false)
    guard asked.learnsKey else { return nil }
    let verdict = asked.judgeFirstUse(evidence, method: method)
    guard verdict.allows else { return verdict }
    let lesson = await worker.services.trust.learn(
      .publicKey(evidence.publicKey), of: asked.authority, for: client, on: worker.loop, until: deadline)
    switch lesson {
    case .known: return nil
    case .learnt:
      // The rules may be others by now.
      var learnt = judgeWithRulesOfNow(evidence, method)
      if learnt.reason == .pinMatch { learnt.detail = "first use: this key is trusted from now on" }
      return learnt
    case .refused(let problem):
      return Verdict(.pinsUnavailable, method: method, detail: problem, leafKey: evidence.publicKey)
    case nil where client.hasHungUp:
      return Verdict(
        .handshakeTimeout, method: method, detail: "the client went away before the verdict",
        leafKey: evidence.publicKey)
    case nil:
      return Verdict(
        .pinsUnavailable, method: method, detail: "the trusted keys could not be looked up in time",
        leafKey: evidence.publicKey)
    }
  }

  /// Asks the decision; and asks anew where the rules, pins of a service, or a device's key, may have changed while the
  /// handshake was under way, or a suspension may have ended.
  func judgeWithRulesOfNow(_ evidence: Evidence, _ method: VerificationMethod) -> Verdict {
    let current = worker.rules.current
    let mayHaveChanged =
      current !== rules || [.service, .device].contains(decision.source) || decision.trustOnFirstUse
      || decision.state == .suspended
    guard mayHaveChanged else { return decision.judge(evidence, method: method) }
    let identity = ClientIdentity(user: user, address: client.peerAddress?.address)
    return worker.services.decide(decision.authority, user: user, for: identity, current).judge(
      evidence, method: method)
  }
}
