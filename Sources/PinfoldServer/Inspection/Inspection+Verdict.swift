import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply

extension Inspection {
  /// The verdict on this evidence. Pins of a service that do not match are fetched anew first, once in a while, since a
  /// key that was rotated looks the same; then it is judged by whatever is at hand. Only a match allows.
  func judgeAsOfNow(_ evidence: Evidence, _ method: VerificationMethod) async throws(Refusal) -> Verdict {
    let verdict = judgeWithRulesOfNow(evidence, method)
    guard [.pinMismatch, .suspendedMismatch].contains(verdict.reason) else { return verdict }
    let current = worker.rules.current
    let asked = worker.services.decide(decision.authority, user: user, current, isUse: false)
    guard let service = current.pinService(for: asked) else { return verdict }
    await worker.services.supply.refresh(
      afterMismatchOf: decision.authority.host, service, on: worker.loop, until: deadline)
    return judgeWithRulesOfNow(evidence, method)
  }

  /// Asks the decision; and asks anew where the rules, or pins of a service, may have changed while the handshake was
  /// under way, or a suspension may have ended.
  func judgeWithRulesOfNow(_ evidence: Evidence, _ method: VerificationMethod) -> Verdict {
    let current = worker.rules.current
    guard current !== rules || decision.source == .service || decision.state == .suspended else {
      return decision.judge(evidence, method: method)
    }
    let identity = ClientIdentity(user: user, address: client.peerAddress?.address)
    return worker.services.decide(decision.authority, user: user, for: identity, current).judge(
      evidence, method: method)
  }
}
