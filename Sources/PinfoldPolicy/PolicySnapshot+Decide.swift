import PinfoldModel

extension PolicySnapshot {
  func decide(_ authority: Authority, at now: Timestamp, user: String?, trace: inout DecisionTrace) -> Decision {
    let rule = table.rule(for: authority)
    var decision = Decision(
      authority: authority, action: .block(.unpinnedBlocked), state: .blocked, tls13: local.tls13,
      sniOptional: authority.host.isAddress, portAllowed: local.ports.contains(authority.port),
      policyVersion: version, rule: rule)
    switch standing {
    case .unavailable:
      trace.note("no policy bundle is acceptable: everything is blocked")
      decision.action = .block(.pinsUnavailable)
    case .notConfigured:
      trace.note("no policy bundle is configured")
      decideWithoutRule(&decision, trace: &trace)
    case .document(let document):
      trace.note("policy version \(document.version), expires \(document.expiresAt.text)")
      if let rule {
        decide(&decision, by: rule, document, at: now, user: user, trace: &trace)
      } else {
        trace.note("no rule names \(authority.text)")
        decideWithoutRule(&decision, trace: &trace)
      }
    }
    return decision
  }

  private func decide(
    _ decision: inout Decision, by rule: RuleReference, _ document: PolicyDocument, at now: Timestamp, user: String?,
    trace: inout DecisionTrace
  ) {
    let settings = rule.settings
    trace.note("rule \(rule.pattern)")
    adopt(settings, port: rule.port, in: &decision)
    decision.expiresAt = settings.expiresAt.map { min($0, document.expiresAt) } ?? document.expiresAt
    if now >= document.expiresAt {
      trace.note("the policy expired: its hosts are blocked")
      return decision.block(.pinsExpired, source: .policy)
    }
    let rollout = Rollout(
      strategy: document.rollout, identity: local.identity, user: user, policyVersion: document.version)
    if let off = switchedOff(rule, settings, document, rollout, trace: &trace) {
      trace.note("switched off: \(off)")
      return decideSwitchedOff(&decision, fallback: document.fallback, trace: &trace)
    }
    if let expiry = settings.expiresAt, now >= expiry {
      trace.note("the rule's pins expired \(expiry.text): blocked")
      return decision.block(.pinsExpired, source: .policy)
    }
    decision.source = .policy
    decision.pins = rule.pins
    if rule.pins.isEmpty, !settings.trustOnFirstUse {
      trace.note("the rule has no pin: blocked")
      return decision.block(.pinsUnavailable, source: .policy)
    }
    decision.action = .inspect
    decision.state = settings.mode == .enforce ? .enforce : .report
    trace.note("inspect with \(rule.pins.count) pins of the policy, \(settings.mode.rawValue)")
  }

  private func adopt(_ settings: RuleSettings, port: UInt16?, in decision: inout Decision) {
    decision.match = settings.match
    decision.mode = settings.mode
    decision.tls13 = settings.tls13 ?? local.tls13
    decision.verifyChain = settings.verifyChain
    decision.sniOptional = decision.sniOptional || settings.sni == .optional
    decision.trustOnFirstUse = settings.trustOnFirstUse
    decision.neverDisable = settings.neverDisable
    if port != nil { decision.portAllowed = true }
  }

  /// Why a rule does not count at the moment; `nil` when it does.
  private func switchedOff(
    _ rule: RuleReference, _ settings: RuleSettings, _ document: PolicyDocument, _ rollout: Rollout,
    trace: inout DecisionTrace
  ) -> String? {
    if !document.enabled { return "the policy's kill switch is on (enabled: false)" }
    if let least = document.minAppVersion {
      if let mine = local.identity.appVersion, mine < least {
        return "app version \(mine.text) is below min_app_version \(least.text)"
      }
      let mine = local.identity.appVersion.map { "version \($0.text) is at least" } ?? "version is not known, beside"
      trace.note("the app's \(mine) min_app_version \(least.text)")
    }
    return switchedOff(byRolloutOf: rule, settings, document, rollout, trace: &trace)
  }

  private func switchedOff(
    byRolloutOf rule: RuleReference, _ settings: RuleSettings, _ document: PolicyDocument, _ rollout: Rollout,
    trace: inout DecisionTrace
  ) -> String? {
    let share = document.rolloutPercentage
    guard rollout.includes(percentage: share, .policy) else {
      return "outside the \(rollout.text(percentage: share, .policy))"
    }
    let byPercentage = document.rollout.method == .percentage
    if !byPercentage || share < 100 { trace.note("inside the \(rollout.text(percentage: share, .policy))") }
    if !settings.enabled { return "the rule is not enabled" }
    // A whitelist and regions are the whole rollout: they have no percentages.
    let own = settings.rolloutPercentage
    guard byPercentage, own < 100 else { return nil }
    let draw = Rollout.Draw.rule(rule.pattern)
    guard rollout.includes(percentage: own, draw) else {
      return "outside the rule's \(rollout.text(percentage: own, draw))"
    }
    trace.note("inside the rule's \(rollout.text(percentage: own, draw))")
    return nil
  }

  /// A rule names the host but is switched off: builtin pins first, then chain and host name.
  private func decideSwitchedOff(_ decision: inout Decision, fallback: Fallback, trace: inout DecisionTrace) {
    if useBuiltin(&decision, fallback: fallback, trace: &trace) { return }
    trace.note("chain and host name are verified, without pins")
    decision.action = .verifyOnly
    decision.state = .disabled
    decision.verifyChain = true
    decision.trustOnFirstUse = false
    decision.expiresAt = nil
  }

  /// No rule names the host: builtin pins, whatever the policy says of its own rules, then a service's.
  private func decideWithoutRule(_ decision: inout Decision, trace: inout DecisionTrace) {
    if useBuiltin(&decision, fallback: Fallback(), trace: &trace) { return }
    if useService(&decision, trace: &trace) { return }
    trace.note("unpinned hosts: \(local.unpinned.rawValue)")
    switch local.unpinned {
    case .block: decision.block(.unpinnedBlocked, source: .none)
    case .verify:
      decision.action = .verifyOnly
      decision.state = .disabled
    case .tunnel:
      decision.action = .tunnel
      decision.state = .disabled
    }
  }

  /// Takes the configuration's own pins for the host, with a rule's defaults. `false` when there are none to take.
  private func useBuiltin(_ decision: inout Decision, fallback: Fallback, trace: inout DecisionTrace) -> Bool {
    guard fallback.useBuiltinPins, let builtin = local.builtin.rule(for: decision.authority), !builtin.pins.isEmpty
    else { return false }
    if let hosts = fallback.hosts, !hosts.contains(HostPattern.unmapped(decision.authority.host)) { return false }
    let settings = RuleSettings()
    adopt(settings, port: builtin.port, in: &decision)
    decision.source = .builtin
    decision.pins = builtin.pins
    decision.action = .inspect
    decision.state = .enforce
    decision.expiresAt = nil
    trace.note("inspect with \(builtin.pins.count) builtin pins of the configuration, enforce")
    return true
  }

  /// Leaves the host to a pin service, with a rule's defaults: blocked until whoever asked supplies pins. `false` when no
  /// service speaks for it.
  private func useService(_ decision: inout Decision, trace: inout DecisionTrace) -> Bool {
    guard let domain = local.serviceDomains.rule(for: decision.authority) else { return false }
    adopt(RuleSettings(), port: domain.port, in: &decision)
    decision.serviceDomain = domain
    decision.expiresAt = nil
    decision.block(.pinsUnavailable, source: .service)
    trace.note("a pin service speaks for \(domain.pattern)")
    return true
  }
}

extension Decision {
  fileprivate mutating func block(_ reason: Reason, source: PinSource) {
    action = .block(reason)
    state = .blocked
    self.source = source
  }
}
