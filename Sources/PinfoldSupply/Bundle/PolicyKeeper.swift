package import PinfoldModel
package import PinfoldPolicy

/// Keeps the policy in force: takes newer bundles, remembers what it took, and holds on to what it has when what comes
/// is bad. A value with one owner, the control loop; it does file work and must not be called by a worker.
package struct PolicyKeeper: Sendable {
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
    }

    /// The outcome.
    package var outcome: Outcome
    /// Every bundle that was refused, in the order of the configuration.
    package var refusals: [BundleRefusal]
    /// What went wrong without refusing anything, one line each.
    package var warnings: [String]

    /// Whether nothing was refused: the `result` of `pinfold_policy_reloads_total`.
    package var isSuccess: Bool { outcome != .kept && refusals.isEmpty }
  }

  private let source: BundleSource
  private let stateFile: StateFile
  private var state: AcceptedState?
  /// The bundle in force. It stays so past its expiry: its hosts are blocked then, not unknown.
  package private(set) var inForce: PolicyBundle?

  /// A keeper with nothing in force; `load` takes the first bundle.
  package init(source: BundleSource, stateDirectory: String) {
    self.source = source
    stateFile = StateFile(directory: stateDirectory)
  }

  /// A keeper that goes on where `previous` was, under a reloaded configuration: what is in force stays so until a
  /// bundle of the new configuration is accepted.
  package init(source: BundleSource, stateDirectory: String, previous: PolicyKeeper) {
    self.init(source: source, stateDirectory: stateDirectory)
    inForce = previous.inForce
    state = previous.state
  }

  /// What the snapshot of the workers should stand on.
  package var standing: PolicySnapshot.Standing { inForce.map { .document($0.document) } ?? .unavailable }

  /// The latest time that has passed for certain. Decide with the later of this and the clock, so that a clock set
  /// back revives nothing.
  package var clockFloor: Timestamp { state?.clockFloor ?? Timestamp(seconds: 0) }

  /// Reads all bundles and takes the newest acceptable one, if it is newer than the one in force.
  package mutating func load(now: Timestamp) -> Report {
    var warnings: [String] = []
    let known: AcceptedState
    do throws(StateError) { known = try knownState() } catch {
      return Report(
        outcome: .kept, refusals: [BundleRefusal(file: stateFile.path, cause: .stateUnreadable(error))], warnings: [])
    }
    if now < known.clockFloor {
      warnings.append("the clock shows \(now.text), but \(known.clockFloor.text) has passed already: check the clock")
    }
    var (newest, refusals) = source.newest(at: max(now, known.clockFloor), highest: known.highestVersion)
    if let current = inForce, let candidate = newest, candidate.document.version == current.document.version,
      candidate.payloadDigest != current.payloadDigest
    {
      refusals.append(BundleRefusal(file: candidate.file, cause: .versionReused(candidate.document.version)))
      newest = nil
    }
    guard let newest else { return Report(outcome: .kept, refusals: refusals, warnings: warnings) }
    let isNews = newest.document.version != inForce?.document.version
    if isNews { inForce = newest }
    warnings += remember(newest.document, known, now: now)
    return Report(outcome: isNews ? .changed : .unchanged, refusals: refusals, warnings: warnings)
  }

  /// Raises the clock floor without reading bundles: call it now and then while serving. Returns warnings.
  package mutating func noteTime(_ now: Timestamp) -> [String] {
    guard let inForce, let state else { return [] }
    return remember(inForce.document, state, now: now)
  }

  /// The state in memory counts when it is newer than the file: an unwritable directory must not weaken a running
  /// process.
  private func knownState() throws(StateError) -> AcceptedState {
    guard let state else { return try stateFile.read() }
    return state
  }

  private mutating func remember(_ document: PolicyDocument, _ known: AcceptedState, now: Timestamp) -> [String] {
    var next = known
    next.note(version: document.version, issuedAt: document.issuedAt, expiresAt: document.expiresAt, now: now)
    state = next
    do throws(StateError) {
      try stateFile.write(next)
      return []
    } catch {
      return [error.description]
    }
  }
}
