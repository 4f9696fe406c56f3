package import PinfoldModel

extension PolicyKeeper {
  /// What to say of a clock that shows a time before one that has passed for certain.
  package static func warning(ofClock now: Timestamp, before floor: Timestamp) -> String {
    "the clock shows \(now.text), but \(floor.text) has passed already: check the clock"
  }

  /// What a load came to.
  package struct Report: Sendable {
    /// The outcome for the policy in force.
    package enum Outcome: String, Sendable {
      /// Another policy is in force now.
      case changed
      /// The newest bundle is the one in force.
      case unchanged
      /// No bundle was acceptable: the policy before, if there was one, stays in force.
      case kept
      /// No bundle is there yet, and some are still to be fetched.
      case waiting
    }

    /// The outcome.
    package var outcome: Outcome
    /// Every bundle that was refused, in the order of the configuration.
    package var refusals: [BundleRefusal] = []
    /// What went wrong without refusing anything, one line each.
    package var warnings: [String] = []
    /// The versions that rotated the keys just now.
    package var rotations: [UInt64] = []

    /// What was refused and is on this machine, the state file included: the operator's to mend.
    package var refusalsOfFiles: [BundleRefusal] { refusals.filter { !BundleSource.isRemote($0.file) } }

    /// Whether nothing was refused: the `result` of `pinfold_policy_reloads_total`.
    package var isSuccess: Bool { outcome != .kept && refusals.isEmpty }
  }
}
