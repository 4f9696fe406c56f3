package import PinfoldModel
package import PinfoldPolicy

/// Keeps the policy in force: takes newer bundles, remembers what it took, and holds on to what it has when what comes
/// is bad. A value with one owner, the reload thread; it does file work and must not be called by a worker.
package struct PolicyKeeper: Sendable {
  private let source: BundleSource
  private let stateFile: StateFile
  private let cache: SealedCache?
  private var state: AcceptedState?
  /// Whether the file has all of `state`; what could not be written is tried again.
  private var isStateKept = true
  private var chain: TrustChain?
  /// The last rotation that the cache has.
  private var keptRotation: Digest256?
  /// What the files held when they were taken last.
  private var files = BundleFiles()
  /// What the URLs of the configuration brought so far.
  package var fetched = FetchedBundles()
  /// The bundle in force. It stays so past its expiry: its hosts are blocked then, not unknown.
  package private(set) var inForce: PolicyBundle?

  /// A keeper with nothing in force; `load` takes the first bundle. Without a `cache`, what was fetched and rotations of
  /// keys are lost at a restart.
  package init(source: BundleSource, stateDirectory: String, cache: SealedCache? = nil) {
    self.source = source
    self.cache = cache
    stateFile = StateFile(directory: stateDirectory)
  }

  /// A keeper that goes on where `previous` was, under a reloaded configuration: what is in force stays so until a
  /// bundle of the new configuration is accepted. Other configured keys begin a new chain of rotations.
  package init(source: BundleSource, stateDirectory: String, previous: PolicyKeeper) {
    self.init(source: source, stateDirectory: stateDirectory, cache: previous.cache)
    inForce = previous.inForce
    state = previous.state
    isStateKept = previous.isStateKept
    files = previous.files
    fetched = FetchedBundles(previous.fetched, keeping: source.urls.map(\.text))
    guard source.trust.digest == previous.source.trust.digest else { return }
    chain = previous.chain
    keptRotation = previous.keptRotation
  }

  /// What the snapshot of the workers should stand on.
  package var standing: PolicySnapshot.Standing { inForce.map { .document($0.document) } ?? .unavailable }

  /// The latest time that has passed for certain. Decide with the later of this and the clock, so that a clock set
  /// back revives nothing.
  package var clockFloor: Timestamp { state?.clockFloor ?? Timestamp(seconds: 0) }

  /// Whose signatures count, as of the last look.
  package var trust: TrustChain { chain ?? TrustChain(source.trust) }

  // MARK: Looking

  /// What there is to decide about, before anything is remembered.
  fileprivate struct Look {
    let files: BundleFiles
    var examination: BundleSource.Examination
    var known: AcceptedState
    var warnings: [String]
  }

  /// What a look at all bundles came to. Until `take` has it, nothing of it counts, in memory or on disk.
  package struct Finding: Sendable {
    /// What was refused, if nothing is taken.
    package let report: Report
    /// `nil` where nothing could be looked at.
    fileprivate let look: Look?
    fileprivate let now: Timestamp
  }

  /// Looks at all bundles, for `take`.
  package mutating func examine(now: Timestamp) -> Finding { examine(source.readFiles(), now: now) }

  /// Looks at what was fetched, beside the files as they are now. Where one of them is refused they are left, all of
  /// them, as they were when they were taken last; with `areFilesLeft` in any case.
  package mutating func examineFetched(now: Timestamp, areFilesLeft: Bool) -> Finding {
    if !areFilesLeft {
      let finding = examine(now: now)
      if finding.report.refusalsOfFiles.isEmpty { return finding }
    }
    return examine(files, now: now)
  }

  private mutating func examine(_ files: BundleFiles, now: Timestamp) -> Finding {
    do throws(BundleRefusal) {
      let look = try look(files, now: now)
      let report = Report(outcome: .kept, refusals: look.examination.refusals, warnings: look.warnings)
      return Finding(report: report, look: look, now: now)
    } catch {
      return Finding(report: Report(outcome: .kept, refusals: [error]), look: nil, now: now)
    }
  }

  /// Looks at all bundles without taking or remembering anything but what it read: for `check` and `explain`.
  package mutating func preview(
    now: Timestamp
  ) -> (newest: PolicyBundle?, refusals: [BundleRefusal], warnings: [String], clock: Timestamp) {
    do throws(BundleRefusal) {
      var look = try look(source.readFiles(), now: now)
      chain = look.examination.chain
      let clock = max(now, look.known.clockFloor)
      look.examination.refusals += look.examination.missing.map { BundleRefusal(file: $0, cause: .notFetched) }
      return (look.examination.newest, look.examination.refusals, look.warnings, clock)
    } catch {
      return (nil, [error], [], now)
    }
  }

  private mutating func look(_ files: BundleFiles, now: Timestamp) throws(BundleRefusal) -> Look {
    var warnings: [String] = []
    let known: AcceptedState
    do throws(StateError) { known = try knownState() } catch {
      throw BundleRefusal(file: stateFile.path, cause: .stateUnreadable(error))
    }
    if now < known.clockFloor {
      warnings.append(Self.warning(ofClock: now, before: known.clockFloor))
    }
    let (chain, trouble) = replayedChain()
    if trouble == nil { self.chain = chain }
    restoreBundles(&warnings)
    let examination = source.examine(
      files, at: max(now, known.clockFloor), highest: known.highestVersion, chain: chain, fetched: fetched,
      inForce: inForce)
    // Keys that were replaced must not count again because a file was lost.
    if let rotation = known.rotation, rotation.configured == source.trust.digest,
      !examination.chain.contains(rotation.last)
    {
      let what = trouble?.description ?? "the bundle that did it is gone from the sealed cache"
      throw BundleRefusal(file: stateFile.path, cause: .rotationLost(what))
    }
    if let trouble { warnings.append(trouble.description) }
    return Look(files: files, examination: examination, known: known, warnings: warnings)
  }

  /// The state in memory counts when it is newer than the file: an unwritable directory must not weaken a running
  /// process.
  private func knownState() throws(StateError) -> AcceptedState {
    guard let state else { return try stateFile.read() }
    return state
  }

  private mutating func replayedChain() -> (chain: TrustChain, trouble: CacheError?) {
    if let chain { return (chain, nil) }
    do throws(CacheError) {
      guard let record = try cache?.read(.rotation, TrustChain.recordName) else {
        return (TrustChain(source.trust), nil)
      }
      let replayed = TrustChain(source.trust, record: record)
      keptRotation = replayed.links.last?.digest
      return (replayed, nil)
    } catch {
      return (TrustChain(source.trust), error)
    }
  }

  /// Bundles of URLs that were not fetched yet, as far as they were cached.
  private mutating func restoreBundles(_ warnings: inout [String]) {
    guard let cache else { return }
    for url in source.urls.map(\.text) where fetched.bytes(of: url) == nil {
      do throws(CacheError) {
        if let bytes = try cache.read(.bundle, url) { fetched.restore(bytes, of: url) }
      } catch {
        warnings.append(error.description)
      }
    }
  }

  // MARK: Taking

  /// Reads all bundles and takes the newest acceptable one, if it is newer than the one in force.
  package mutating func load(now: Timestamp) -> Report { take(examine(now: now)) }

  /// Takes the newest bundle of a look at this keeper's bundles, and remembers it with the keys that count now.
  package mutating func take(_ finding: Finding) -> Report {
    var report = finding.report
    guard let look = finding.look else { return report }
    files = look.files
    report.rotations = look.examination.chain.links.dropFirst(chain?.links.count ?? 0).map(\.version)
    report.warnings += keep(look.examination.chain)
    report.warnings += keepBundles(look.examination.acceptable)
    for refusal in report.refusals { fetched.forgetTag(of: refusal.file) }
    let newest = look.examination.newest
    if let newest {
      report.outcome = newest.document.version != inForce?.document.version ? .changed : .unchanged
      if report.outcome == .changed { inForce = newest }
    } else if report.refusals.isEmpty, !look.examination.missing.isEmpty {
      report.outcome = .waiting
    }
    report.warnings += remember(look, at: report.outcome == .changed ? finding.now : nil)
    return report
  }

  /// Raises the clock floor without reading bundles: for times that passed while serving. It rises up to the end of the
  /// policy in force. Returns warnings.
  package mutating func noteTime(_ now: Timestamp) -> [String] {
    guard let document = inForce?.document, var next = state else { return [] }
    next.note(now, notBeyond: document.expiresAt)
    return keep(next, after: state)
  }

  /// Keeps the rotations, before the state says that there are some.
  private mutating func keep(_ next: TrustChain) -> [String] {
    chain = next
    guard let last = next.links.last?.digest, last != keptRotation else { return [] }
    guard let cache else { return ["there is no sealed cache to keep the rotated keys in: they are lost at a restart"] }
    do throws(CacheError) {
      try cache.write(.rotation, TrustChain.recordName, next.record)
      keptRotation = last
      return []
    } catch {
      return [error.description]
    }
  }

  private mutating func keepBundles(_ urls: [String]) -> [String] {
    var warnings: [String] = []
    for url in urls {
      guard let cache, let bytes = fetched.uncached(url) else { continue }
      do throws(CacheError) {
        try cache.write(.bundle, url, bytes)
      } catch {
        warnings.append(error.description)
      }
      // Tried once for each body: a full disk is not to be told with every refresh.
      fetched.noteCached(url)
    }
    return warnings
  }

  /// Remembers what came of a look. The time of a look that brought nothing new is not believed at once: that is left to
  /// `noteTime`, whose caller knows how long the clock has shown it.
  private mutating func remember(_ look: Look, at now: Timestamp?) -> [String] {
    var next = look.known
    let document = look.examination.newest?.document
    if let document {
      next.note(version: document.version, issuedAt: document.issuedAt)
      if let now { next.note(now, notBeyond: document.expiresAt) }
    }
    if let ended = look.examination.ended { next.note(ended, notBeyond: ended) }
    if let last = trust.links.last {
      next.highestVersion = max(next.highestVersion, last.version)
      next.rotation = AcceptedState.Rotation(configured: source.trust.digest, last: last.digest)
    } else if document != nil {
      // Accepted under other configured keys: what was rotated before has no meaning any more.
      next.rotation = nil
    }
    return keep(next, after: look.known)
  }

  private mutating func keep(_ next: AcceptedState, after known: AcceptedState?) -> [String] {
    state = next
    guard next != known || !isStateKept else { return [] }
    do throws(StateError) {
      try stateFile.write(next)
      isStateKept = true
      return []
    } catch {
      isStateKept = false
      return [error.description]
    }
  }
}
