import Synchronization

/// The one place where the rules in force are kept. Workers read it once per tunnel; reloads replace it.
package final class RulesInForce: Sendable {
  private let rules: Mutex<Rules>

  /// Begins with these rules.
  package init(_ rules: Rules) {
    self.rules = Mutex(rules)
  }

  /// The rules of this moment.
  package var current: Rules { rules.withLock { $0 } }

  func replace(with rules: Rules) {
    self.rules.withLock { $0 = rules }
  }
}
