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
    for (text, applies) in kinds {
      var count = 0
      var first: RuleReference?
      for rule in table.rules where applies(rule.settings) {
        count += 1
        first = first ?? rule
      }
      guard let first else { continue }
      result.append("\(first.pattern)\(count > 1 ? " and \(count - 1) more" : ""): \(text)")
    }
    var single = 0
    var firstSingle: RuleReference?
    for rule in table.rules where rule.pins.count == 1 {
      single += 1
      firstSingle = firstSingle ?? rule
    }
    if let firstSingle {
      let more = single > 1 ? " and \(single - 1) more" : ""
      result.append("\(firstSingle.pattern)\(more): one pin and no backup: a lost key locks the host out")
    }
    return result
  }
}
