import PinfoldConfig
import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldServer
import PinfoldSupply
import PinfoldTLS

/// What `run` would put in force now, worked out without changing the state directory.
struct LoadedPolicy {
  /// Seconds for each bundle that is fetched.
  private static let fetchSeconds = 10

  let snapshot: PolicySnapshot
  /// The bundle that would be in force.
  let bundle: PolicyBundle?
  /// One line for each bundle that would be refused.
  let refusals: [String]
  /// What does not keep anything from being in force, one line each.
  let warnings: [String]
  /// Whose signatures would count; `nil` when the configuration names no bundle.
  let trust: TrustChain?
  /// The pin services of the configuration.
  let services: PinServices
  /// The time that decisions are made at: the clock's, or a later one that has passed for certain.
  let now: Timestamp
  /// Who this instance is to rollouts by device; `nil` where it is not known.
  let device: DeviceID?
  /// Who it is to rollouts by installation: the id, or why there is none.
  let install: Result<InstallID?, InstallIDError>

  /// Throws `config` for keys that are none, for bundles and authorities that are not there.
  ///
  /// - Parameter fetches: whether bundles with a URL are fetched; what was cached of them counts otherwise.
  init(_ file: ConfigurationFile, fetches: Bool) throws(CommandFailure) {
    let configuration = file.configuration
    let loader = RulesLoader(path: file.path, environment: [:])
    var found = Finding()
    do throws(FileErrors) {
      let authorities = try loader.authorities(configuration)
      services = try PinServices(configuration, file: file.path)
      try loader.requirePlaces(configuration)
      if !configuration.policy.bundles.isEmpty {
        let source = try BundleSource(configuration.policy, file: file.path)
        try source.requireFiles()
        try found.look(source, configuration, authorities, fetches: fetches)
      } else {
        if !configuration.policy.trustedKeys.isEmpty { _ = try TrustedKeys(configuration.policy, file: file.path) }
        found.lookAtClock(configuration)
      }
    } catch {
      throw CommandFailure(.config, error.text)
    }
    let device = DeviceID(configuration)
    let install = Result { () throws(InstallIDError) in
      try InstallID(stateDirectory: configuration.stateDirectory)
    }
    let local = configuration.localPolicy(deviceID: device?.text, installID: (try? install.get())?.text)
    (self.device, self.install) = (device, install)
    snapshot = PolicySnapshot(found.standing, local: local)
    bundle = found.bundle
    refusals = found.refusals
    warnings = found.warnings
    trust = found.trust
    now = found.now
  }

  /// What a look at the bundles came to.
  private struct Finding {
    var standing = PolicySnapshot.Standing.notConfigured
    var bundle: PolicyBundle?
    var refusals: [String] = []
    var warnings: [String] = []
    var trust: TrustChain?
    var now = WallClock.now

    mutating func look(
      _ source: BundleSource, _ configuration: Configuration, _ authorities: TrustStore, fetches: Bool
    ) throws(FileErrors) {
      let directory = configuration.stateDirectory
      // Without its key it is as good as empty, as in the running proxy; CacheWarnings says so.
      let cache = try? SealedCache.existing(stateDirectory: directory, keyFile: configuration.cacheKeyFile)
      var keeper = PolicyKeeper(source: source, stateDirectory: directory, cache: cache)
      let failures = fetches ? fetch(source, &keeper, authorities) : [:]
      let preview = keeper.preview(now: now)
      for refusal in preview.refusals {
        // The step that failed says more than that nothing came.
        if case .notFetched = refusal.cause, let failure = failures[refusal.file] {
          refusals.append(failure.description)
        } else {
          refusals.append(refusal.description)
        }
      }
      let missing = preview.refusals.filter { if case .notFetched = $0.cause { true } else { false } }.map(\.file)
      for (url, failure) in failures.sorted(by: { $0.key < $1.key }) where !missing.contains(url) {
        warnings.append("\(failure); the one fetched before would count")
      }
      warnings += preview.warnings
      now = preview.clock
      bundle = preview.newest
      trust = keeper.trust
      standing = bundle.map { .document($0.document) } ?? .unavailable
    }

    /// The time that has passed for certain counts without any bundle, too.
    mutating func lookAtClock(_ configuration: Configuration) {
      do throws(StateError) {
        let floor = try StateFile(directory: configuration.stateDirectory).read().clockFloor
        if now < floor { warnings.append(PolicyKeeper.warning(ofClock: now, before: floor)) }
        now = max(now, floor)
      } catch {
        warnings.append(error.description)
      }
    }

    private func fetch(
      _ source: BundleSource, _ keeper: inout PolicyKeeper, _ authorities: TrustStore
    ) -> [String: BundleRefusal] {
      var failures: [String: BundleRefusal] = [:]
      guard !source.urls.isEmpty else { return failures }
      func fail(_ url: HTTPURL, _ error: HTTPFetchError) {
        failures[url.text] = BundleRefusal(file: url.text, cause: .fetch(error))
      }
      do {
        let context = try ClientContext(trusting: authorities)
        let fetched = try BundleFetcher.fetchOnce(
          source.urls, security: context, limit: source.maxBytes, seconds: fetchSeconds)
        for (url, answer) in fetched {
          switch answer {
          case .success(.body(let bytes, let etag)): keeper.fetched.receive(bytes, etag: etag, from: url.text)
          case .success(.unchanged): fail(url, .malformed)
          case .failure(let error): fail(url, error)
          }
        }
      } catch {
        for url in source.urls { fail(url, .connect(.descriptorsExhausted)) }
      }
      return failures
    }
  }
}
