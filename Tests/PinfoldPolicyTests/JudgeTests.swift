import PinfoldModel
import Testing

@testable import PinfoldPolicy

/// Every decision against every evidence, compared with a second definition that is written as a list of what may pass.
@Suite struct JudgeTests {
  private static let leafKey = Samples.digest(1)
  private static let leafCertificate = Samples.digest(2)
  private static let issuer = Evidence.Element(publicKey: Samples.digest(3), certificate: Samples.digest(4))
  private static let leaf = Evidence.Element(publicKey: leafKey, certificate: leafCertificate)

  enum Pinned: CaseIterable { case none, leafKey, leafCertificate, issuerKey, issuerCertificate, stranger }
  enum Chain: CaseIterable { case unchecked, invalid, built, builtOfAnother, empty }

  struct Case {
    var action: Decision.Action
    var state: EnforcementState
    var match: PinMatching
    var verifyChain: Bool
    var neverDisable: Bool
    var pinned: Pinned
    var chain: Chain
    var nameMatches: Bool
    var keyProven: Bool
    var isRaw: Bool

    var decision: Decision {
      var decision = Decision(
        authority: Authority(host: .name("api.example.com"), port: 443), action: action, state: state, tls13: .probe,
        sniOptional: false, portAllowed: true, policyVersion: 1)
      decision.match = match
      decision.verifyChain = verifyChain
      decision.neverDisable = neverDisable
      decision.pins =
        switch pinned {
        case .none: .empty
        case .leafKey: PinSet([.publicKey(leafKey)])
        case .leafCertificate: PinSet([.certificate(leafCertificate)])
        case .issuerKey: PinSet([.publicKey(issuer.publicKey)])
        case .issuerCertificate: PinSet([.certificate(issuer.certificate)])
        case .stranger: PinSet([.publicKey(Samples.digest(9)), .certificate(Samples.digest(9))])
        }
      return decision
    }

    var evidence: Evidence {
      let elements: Evidence.Chain =
        switch chain {
        case .unchecked: .unchecked
        case .invalid: .invalid("expired")
        case .built: .built([leaf, issuer])
        case .builtOfAnother: .built([issuer, leaf])
        case .empty: .built([])
        }
      return Evidence(
        publicKey: leafKey, certificate: isRaw ? nil : leafCertificate, chain: elements, nameMatches: nameMatches,
        keyProven: keyProven)
    }

    /// The list of what may pass, and the order of what is said otherwise.
    var expected: Reason {
      let chainHolds = chain == .built && !isRaw
      let flaw: Reason? = !chainHolds ? .chainInvalid : !nameMatches ? .nameMismatch : !keyProven ? .keyNotProven : nil
      switch action {
      case .block(let reason): return reason.allows ? .internalError : reason
      case .tunnel: return .unpinnedTunnel
      case .verifyOnly: return flaw ?? .chainVerified
      case .inspect: break
      }
      if pinned == .none { return .pinsUnavailable }
      if verifyChain, let flaw { return flaw }
      if !keyProven { return .keyNotProven }
      let leafMatches = pinned == .leafKey || pinned == .leafCertificate && !isRaw
      let chainMatches = match == .chain && verifyChain && (pinned == .issuerKey || pinned == .issuerCertificate)
      if leafMatches || chainMatches { return .pinMatch }
      if flaw != nil { return .pinMismatch }
      if state == .report { return .reportedMismatch }
      if state == .suspended, !neverDisable { return .suspendedMismatch }
      return .pinMismatch
    }
  }

  static let actions: [Decision.Action] = [
    .inspect, .verifyOnly, .tunnel, .block(.unpinnedBlocked), .block(.pinsExpired), .block(.pinMatch),
  ]

  @Test("Nothing passes that is not on the list", arguments: actions, EnforcementState.allCases)
  func exhaustive(_ action: Decision.Action, _ state: EnforcementState) {
    var count = 0
    for match in PinMatching.allCases {
      for flags in 0..<32 {
        for pinned in Pinned.allCases {
          for chain in Chain.allCases {
            let row = Case(
              action: action, state: state, match: match, verifyChain: flags & 1 != 0, neverDisable: flags & 2 != 0,
              pinned: pinned, chain: chain, nameMatches: flags & 4 != 0, keyProven: flags & 8 != 0,
              isRaw: flags & 16 != 0)
            let verdict = row.decision.judge(row.evidence, method: .probe)
            #expect(verdict.reason == row.expected, "\(row)")
            count += 1
          }
        }
      }
    }
    #expect(count == 1920)
  }

  private func verdict(_ change: (inout Case) -> Void) -> Verdict {
    var row = Case(
      action: .inspect, state: .enforce, match: .leaf, verifyChain: true, neverDisable: false, pinned: .leafKey,
      chain: .built, nameMatches: true, keyProven: true, isRaw: false)
    change(&row)
    return row.decision.judge(row.evidence, method: .inBand)
  }

  @Test func `a verdict says how the key became known, and which it was`() {
    let verdict = verdict { _ in }
    #expect(verdict == Verdict(.pinMatch, method: .inBand, leafKey: Samples.digest(1)))
    #expect(verdict.allows)
  }

  @Test func `a bad chain is said before a mismatch, with what the verifier found`() {
    let verdict = verdict {
      $0.pinned = .stranger
      $0.chain = .invalid
    }
    #expect(verdict.reason == .chainInvalid)
    #expect(verdict.detail == "expired")
  }

  @Test func `a pinned issuer appended to a stranger's chain does not help the stranger`() {
    let appended = verdict {
      $0.match = .chain
      $0.pinned = .issuerKey
      $0.chain = .invalid
    }
    #expect(appended.reason == .chainInvalid)
    let leafOnly = verdict { $0.pinned = .issuerKey }
    #expect(leafOnly.reason == .pinMismatch)
  }

  @Test("Report mode lets only the shape of a rotation through", arguments: [EnforcementState.report, .suspended])
  func rotation(_ state: EnforcementState) {
    func reason(_ change: (inout Case) -> Void) -> Reason {
      verdict {
        $0.state = state
        $0.pinned = .stranger
        change(&$0)
      }.reason
    }
    #expect(reason { _ in } == (state == .report ? .reportedMismatch : .suspendedMismatch))
    #expect(reason { $0.keyProven = false } == .keyNotProven)
    #expect(reason { $0.nameMatches = false } == .nameMismatch)
    #expect(reason { $0.chain = .invalid } == .chainInvalid)
    #expect(reason { $0.chain = .unchecked } == .chainInvalid)
    #expect(
      reason {
        $0.verifyChain = false
        $0.chain = .unchecked
      } == .pinMismatch)
  }

  @Test func `without a look only a tunnel passes`() {
    func reason(_ action: Decision.Action) -> Reason {
      Case(
        action: action, state: .enforce, match: .leaf, verifyChain: true, neverDisable: false, pinned: .leafKey,
        chain: .built, nameMatches: true, keyProven: true, isRaw: false
      ).decision.judgeUnseen().reason
    }
    #expect(reason(.tunnel) == .unpinnedTunnel)
    #expect(reason(.inspect) == .internalError)
    #expect(reason(.verifyOnly) == .internalError)
    #expect(reason(.block(.unpinnedBlocked)) == .unpinnedBlocked)
    #expect(reason(.block(.chainVerified)) == .internalError)
  }
}
