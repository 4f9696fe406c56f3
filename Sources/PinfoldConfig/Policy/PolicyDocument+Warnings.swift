package import PinfoldModel
package import PinfoldPolicy

extension PolicyDocument {
  /// What the document loosens, one sentence each: for `check`. Rules that loosen in the same way are counted, and the
  /// first of them is named.
  package var warnings: [String] {
    var result: [String] = []
    if !enabled { result.append("enabled: false switches every rule off") }
    if rolloutPercentage < 100 {
      result.append("rollout_percentage: \(rolloutPercentage) leaves the other instances without pins")
    }
    if monitoring.enabled, monitoring.autoDisable {
      result.append(
        "monitoring.auto_disable: enough mismatches of a client suspend the rule for it, and an interceptor causes them too"
      )
    }
    let kinds: [(String, (RuleSettings) -> Bool)] = [
      ("enabled: false leaves the host without pins", { !$0.enabled }),
      ("rollout_percentage leaves some instances without pins", { $0.rolloutPercentage < 100 }),
      ("mode: \"report\" lets mismatches through", { $0.mode == .report }),
      ("verify_chain: false takes any chain and any name with a pinned key", { !$0.verifyChain }),
      ("trust_on_first_use believes whoever answers first", { $0.trustOnFirstUse }),
      ("sni: \"optional\" lets hellos without server name through", { $0.sni == .optional }),
    ]
    result += kinds.compactMap { text, applies in warning(text) { applies($0.settings) } }
    let single = warning("one pin and no backup: a lost key locks the host out") { Self.distinctPins(of: $0) == 1 }
    if let single {
      result.append(single)
    }
    if rollout.method != .whitelist, !rollout.ids.isEmpty {
      result.append("rollout_strategy.ids counts only with method \"whitelist\"")
    }
    if rollout.method != .geography, !rollout.regions.isEmpty {
      result.append("rollout_strategy.regions counts only with method \"geography\"")
    }
    return result
  }

  private static func distinctPins(of rule: RuleReference) -> Int { Set(rule.pins.entries.map(\.pin)).count }

  /// What the document's times have brought about at `now`, one sentence each: for `sign` and `check`.
  package func warnings(at now: Timestamp) -> [String] {
    let isOver = warning("expires_at has passed: the host is blocked") { rule in
      rule.settings.expiresAt.map { now >= $0 } ?? false
    }
    return isOver.map { [$0] } ?? []
  }

  /// What the document asks for and a configuration does not give it, one sentence each: for `check`.
  package func warnings(under configuration: Configuration) -> [String] {
    guard configuration.tls.keyLog == nil else { return [] }
    let text = "tls13: \"key_log\" refuses every TLS 1.3 handshake where tls.key_log is not set"
    return warning(text) { $0.settings.tls13 == .keyLog }.map { [$0] } ?? []
  }

  /// One sentence about all rules to which it applies; `nil` where there is none.
  private func warning(_ text: String, of applies: (RuleReference) -> Bool) -> String? {
    var count = 0
    var first: RuleReference?
    for rule in table.rules where applies(rule) {
      count += 1
      first = first ?? rule
    }
    guard let first else { return nil }
    return "\(first.pattern)\(count > 1 ? " and \(count - 1) more" : ""): \(text)"
  }
}
