import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply

extension Inspection {
  /// The verdict on what was found.
  @inline(__always)
  mutating func judge(_ finding: Finding) async throws(Refusal) -> Verdict {
    var verdict = try await judgeAsOfNow(finding.evidence, finding.method, awaitsProof: finding.awaitsProof)
    verdict.awaitsProof = finding.awaitsProof
    if finding.method == .probe, leavesEarly || verdict.detail.isEmpty { verdict.detail = whatWasDrawn }
    return verdict
  }

  /// What an operator should know of the pairs that were dialled; empty where the first was answered.
  private var whatWasDrawn: String {
    if leavesEarly { return "the upstream serves one connection at a time" }
    return draws > 1 ? "\(draws) pairs were dialled: the upstream kept one of two connections waiting" : ""
  }

  /// The verdict on this evidence. Pins of a service that do not match are fetched anew first, once in a while, since a
  /// key that was rotated looks the same; then it is judged by whatever is at hand. Only a match allows.
  @inline(__always)
  private mutating func judgeAsOfNow(
    _ evidence: Evidence, _ method: VerificationMethod, awaitsProof: Bool
  ) async throws(Refusal) -> Verdict {
    if mayLearnKey, let verdict = try await judgeFirstUse(evidence, method, awaitsProof: awaitsProof) { return verdict }
    let verdict = try judgeWithRulesOfNow(evidence, method)
    guard [.pinMismatch, .suspendedMismatch].contains(verdict.reason) else { return verdict }
    let current = worker.rules.current
    let asked = worker.services.decide(decision.authority, user: user, current, isUse: false)
    guard let service = current.pinService(for: asked) else { return verdict }
    await worker.services.supply.refresh(
      afterMismatchOf: decision.authority.host, service, for: client, on: worker.loop, until: deadline)
    return try judgeWithRulesOfNow(evidence, method)
  }

  /// Whether a key may be learnt here: by the rules that this tunnel began with, or by newer ones.
  private var mayLearnKey: Bool { decision.trustOnFirstUse || worker.rules.current !== rules }

  /// The verdict on the first key of a device (`trust_on_first_use`), which is trusted from here on if everything else is
  /// in order; `nil` when no key is to be learnt, or another tunnel's was quicker.
  private mutating func judgeFirstUse(
    _ evidence: Evidence, _ method: VerificationMethod, awaitsProof: Bool
  ) async throws(Refusal) -> Verdict? {
    let asked = worker.services.decide(decision.authority, user: user, worker.rules.current, isUse: false)
    guard asked.learnsKey else { return nil }
    // Before anything is learnt: a key may only come from where the rule of now lets it come from.
    try adopt(asked, method)
    let verdict = asked.judgeFirstUse(evidence, method: method)
    guard verdict.allows else { return verdict }
    // Whoever has a copy of a certificate can begin such a handshake, and would be believed for good though it never ends.
    guard !awaitsProof else {
      return Verdict(
        .keyNotProven, method: method, detail: "a first key has to sign the handshake", leafKey: evidence.publicKey)
    }
    let lesson = await worker.services.trust.learn(
      .publicKey(evidence.publicKey), of: asked.authority, for: client, on: worker.loop, until: deadline)
    switch lesson {
    case .known: return nil
    case .learnt:
      // The rules may be others by now.
      var learnt = try judgeWithRulesOfNow(evidence, method)
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

  /// Asks the decision of now, which is the tunnel's from here on.
  private mutating func judgeWithRulesOfNow(
    _ evidence: Evidence, _ method: VerificationMethod
  ) throws(Refusal) -> Verdict {
    try adopt(decisionOfNow(), method)
    return decision.judge(evidence, method: method)
  }

  /// Makes this the tunnel's decision. Throws where its rule is newer than the handshake and does not let TLS 1.3 be
  /// judged in this way.
  private mutating func adopt(_ new: Decision, _ method: VerificationMethod) throws(Refusal) {
    let mode = decision.tls13
    decision = new
    guard isTLS13, new.tls13 != mode else { return }
    switch new.tls13 {
    case .deny: throw .tls13Denied
    case .keyLog where method == .resumption: throw .resumptionUnverified
    case .keyLog where method != .keyLog: throw .keyLogSilent
    case .keyLog, .probe: return
    }
  }

  /// The decision on this tunnel; made anew where the rules, pins of a service, or a device's key, may have changed while
  /// the handshake was under way, or where a suspension, the rule or the policy may have ended.
  func decisionOfNow() -> Decision {
    let current = worker.rules.current
    let mayHaveChanged =
      current !== rules || [.service, .device].contains(decision.source) || decision.trustOnFirstUse
      || decision.state == .suspended || isOver(at: current.now)
    guard mayHaveChanged else { return decision }
    let identity = ClientIdentity(user: user, address: client.peerAddress?.address)
    return worker.services.decide(decision.authority, user: user, for: identity, current)
  }

  /// Whether the decision's pins have ended by now, or the policy, which a rule that is switched off hangs on too.
  private func isOver(at now: Timestamp) -> Bool {
    func isPast(_ end: Timestamp?) -> Bool { end.map { now >= $0 } ?? false }
    return isPast(decision.expiresAt) || isPast(rules.policy.document?.expiresAt)
  }
}
