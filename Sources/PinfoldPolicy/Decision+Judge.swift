package import PinfoldModel

extension Decision {
  /// The one place where evidence about a peer becomes an allow or a refusal.
  ///
  /// Total: every decision and every evidence has a verdict, and whatever is not named as allowed is refused. What
  /// looks like an attack (chain, host name, unproven key, in this order) is said before a mismatch, so that a
  /// `pin_mismatch` always has the shape of a key rotation. Only that shape is let through by report mode or by a
  /// suspended rule.
  package func judge(_ evidence: Evidence, method: VerificationMethod) -> Verdict {
    let (reason, detail) = reason(for: evidence)
    return Verdict(reason, method: method, detail: detail, leafKey: evidence.publicKey)
  }

  /// The verdict of a tunnel that nobody looks into: `unpinned_tunnel`, or the reason it is blocked for.
  /// Decisions that ask for an inspection are refused here.
  package func judgeUnseen() -> Verdict {
    switch action {
    case .tunnel: Verdict(.unpinnedTunnel)
    case .block(let reason): Verdict(reason.allows ? .internalError : reason)
    case .inspect, .verifyOnly: Verdict(.internalError, detail: "a tunnel that asks for an inspection had none")
    }
  }

  private func reason(for evidence: Evidence) -> (Reason, String) {
    switch action {
    case .block(let reason):
      return (reason.allows ? .internalError : reason, "")
    case .tunnel:
      return (.unpinnedTunnel, "")
    case .verifyOnly:
      return evidence.flaw(chainNeeded: true) ?? (.chainVerified, "")
    case .inspect:
      guard !pins.isEmpty else { return (.pinsUnavailable, "") }
      if let flaw = evidence.flaw(chainNeeded: verifyChain) { return flaw }
      return matches(evidence) ? (.pinMatch, "") : mismatch(evidence)
    }
  }

  private func matches(_ evidence: Evidence) -> Bool {
    var found = pins.contains(publicKey: evidence.publicKey, certificate: evidence.certificate)
    guard match == .chain, verifyChain, case .built(let elements) = evidence.chain else { return found }
    for element in elements where pins.contains(publicKey: element.publicKey, certificate: element.certificate) {
      found = true
    }
    return found
  }

  private func mismatch(_ evidence: Evidence) -> (Reason, String) {
    // Without chain and host name (`verify_chain: false`) nothing tells a rotation from an interception.
    guard evidence.flaw(chainNeeded: true) == nil else { return (.pinMismatch, "") }
    switch state {
    case .report: return (.reportedMismatch, "")
    case .suspended: return neverDisable ? (.pinMismatch, "") : (.suspendedMismatch, "")
    case .enforce, .disabled, .blocked: return (.pinMismatch, "")
    }
  }
}

extension Evidence {
  /// What is wrong with the peer apart from its pins.
  fileprivate func flaw(chainNeeded: Bool) -> (Reason, String)? {
    if chainNeeded {
      switch chain {
      case .unchecked: return (.chainInvalid, "the chain was not verified")
      case .invalid(let detail): return (.chainInvalid, detail)
      case .built(let elements):
        // A chain of somebody else's leaf proves nothing about this one.
        guard let certificate, elements.first == Element(publicKey: publicKey, certificate: certificate) else {
          return (.chainInvalid, "the chain that was built does not begin with the leaf")
        }
      }
      guard nameMatches else { return (.nameMismatch, "") }
    }
    return keyProven ? nil : (.keyNotProven, "")
  }
}
