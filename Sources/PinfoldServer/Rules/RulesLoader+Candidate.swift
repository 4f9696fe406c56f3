import PinfoldSupply

extension RulesLoader {
  /// What was read anew and is not in force. Until it is taken, nothing of it is remembered: whoever leaves it, because
  /// of a bundle that is refused, finds the state directory as it was.
  struct Candidate {
    /// Under the policy of before.
    private let loaded: Loaded
    private let finding: PolicyKeeper.Finding?

    init(_ loaded: Loaded, _ finding: PolicyKeeper.Finding? = nil) {
      self.loaded = loaded
      self.finding = finding
    }

    /// How the bundles would fare if it was left; `nil` when the configuration names none.
    var report: PolicyKeeper.Report? { finding?.report }

    /// The same with its newest bundle, which is remembered from here on.
    func take() -> Loaded {
      guard let finding, var keeper = loaded.keeper else { return loaded }
      let report = keeper.take(finding)
      return loaded.with(keeper, report)
    }
  }
}
