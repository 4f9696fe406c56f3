import FoundationEssentials
package import PinfoldConfig
import PinfoldModel
import PinfoldPolicy
package import PinfoldSupply
import PinfoldTLS

/// Reads the rules from where the operator wrote them: configuration file, environment, bundles, trusted authorities.
package struct RulesLoader: Sendable {
  /// What was read, with what the next reading has to know of it.
  package struct Loaded: Sendable {
    /// The rules, ready to be put into force.
    package private(set) var rules: Rules
    /// `nil` when the configuration names no bundle.
    package private(set) var keeper: PolicyKeeper?
    /// How the bundles fared; `nil` when the configuration names none.
    package private(set) var report: PolicyKeeper.Report?
    /// The installation's id, found at start; `nil` where it is not known.
    let installID: String?
    /// What went wrong without keeping anything from working, one line each.
    package let warnings: [String]
    /// What is to be fetched again and again; `nil` when the configuration names no URL.
    let plan: RefreshPlan?
    /// What survives a restart; `nil` when it cannot be opened, for the reason in `cacheWarnings`.
    let cache: SealedCache?
    /// What there is where it cannot be opened.
    let lockedCache: LockedCache?
    /// What was wrong with the cache when it was opened, one line each.
    let cacheWarnings: [String]
    /// Why it is not known which time has passed for certain; a keeper's report says it otherwise.
    var clockWarnings: [String] = []
    /// What the file calls `state_dir` by now. The directory of the start counts until a restart, and is what the
    /// configuration of the rules has.
    let nextStateDirectory: String

    /// The same under a bundle that came meanwhile.
    func with(_ keeper: PolicyKeeper, _ report: PolicyKeeper.Report) -> Loaded {
      var next = self
      next.keeper = keeper
      next.report = report
      rules.clockFloor.rise(to: keeper.clockFloor)
      guard report.outcome == .changed else { return next }
      next.rules = Rules(rules, policy: PolicySnapshot(keeper.standing, local: rules.policy.local))
      return next
    }

    /// Remembers that this time has passed for certain. Returns warnings.
    mutating func noteTime(_ time: Timestamp) -> [String] {
      if let warnings = keeper?.noteTime(time), let floor = keeper?.clockFloor {
        rules.clockFloor.rise(to: floor)
        return warnings
      }
      rules.clockFloor.rise(to: time)
      do throws(StateError) {
        try StateFile(directory: rules.configuration.stateDirectory).raise(clockFloor: time)
        return []
      } catch {
        return [error.description]
      }
    }
  }

  /// The configuration file.
  package let path: String
  private let environment: [String: String]

  /// Reads from the file at `path`; `environment` overrides some of its keys.
  package init(path: String, environment: [String: String]) {
    self.path = path
    self.environment = environment
  }

  /// The configuration as it is written by now. Nothing that it names is looked at.
  package func configuration() throws(FileErrors) -> Configuration {
    try Configuration.load(path: path, environment: environment)
  }

  /// Reads everything else for the first time, and writes to the state directory. Bundles that are refused are no error:
  /// the report has them, and everything is blocked. Throws for mistakes of the configuration, bundle files that do not
  /// exist among them.
  package func load(_ configuration: Configuration) throws(FileErrors) -> Loaded {
    try read(configuration, previous: nil).take()
  }

  /// Reads everything anew, for the caller to take or to leave: what is left has changed nothing, on disk neither. What
  /// is in force stays so until a bundle is accepted that is newer.
  func reload(after previous: Loaded) throws(FileErrors) -> Candidate {
    try read(configuration(), previous: previous)
  }

  private func read(_ written: Configuration, previous: Loaded?) throws(FileErrors) -> Candidate {
    var configuration = written
    // The state directory changes with a restart only, and so does what lies in it: no two have a part of it each.
    if let previous { configuration.stateDirectory = previous.rules.configuration.stateDirectory }
    try requirePlaces(configuration)
    let credentials = try CredentialList.load(configuration, file: path)
    // Before the authorities are read: a change in between ends what the ones before vouched for.
    let mark = TrustMark(caFile: configuration.tls.caFile?.text)
    let authorities = try authorities(configuration)
    let services = try PinServices(configuration, file: path)
    var warnings: [String] = []
    let installID = previous == nil ? Self.installID(configuration, &warnings) : previous?.installID
    let (cache, locked, cacheWarnings) =
      previous.map { ($0.cache, $0.lockedCache, []) } ?? Self.openCache(configuration)
    let clockFloor = previous?.rules.clockFloor ?? ClockFloor()
    let local = configuration.localPolicy(deviceID: DeviceID(configuration)?.text, installID: installID)
    guard !configuration.policy.bundles.isEmpty else {
      let policy = PolicySnapshot(.notConfigured, local: local)
      let clockWarnings = previous == nil ? Self.restore(clockFloor, configuration) : []
      return Candidate(
        Loaded(
          rules: Rules(
            configuration: configuration, policy: policy, trusting: authorities, mark: mark, pinServices: services,
            clockFloor: clockFloor, credentials: credentials),
          keeper: nil, report: nil, installID: installID, warnings: warnings, plan: nil, cache: cache,
          lockedCache: locked, cacheWarnings: cacheWarnings, clockWarnings: clockWarnings,
          nextStateDirectory: written.stateDirectory))
    }
    let source = try BundleSource(configuration.policy, file: path)
    var keeper: PolicyKeeper
    if let before = previous?.keeper {
      keeper = PolicyKeeper(source: source, stateDirectory: configuration.stateDirectory, previous: before)
    } else {
      try source.requireFiles()
      keeper = PolicyKeeper(source: source, stateDirectory: configuration.stateDirectory, cache: cache)
    }
    let plan = try RefreshPlan(source, configuration, trusting: authorities, file: path)
    let finding = keeper.examine(now: .now)
    let policy = PolicySnapshot(keeper.standing, local: local)
    return Candidate(
      Loaded(
        rules: Rules(
          configuration: configuration, policy: policy, trusting: authorities, mark: mark,
          pinServices: services, clockFloor: clockFloor, credentials: credentials),
        keeper: keeper, report: nil, installID: installID, warnings: warnings, plan: plan, cache: cache,
        lockedCache: locked, cacheWarnings: cacheWarnings, nextStateDirectory: written.stateDirectory), finding)
  }

  /// Has the time count that has passed for certain, where no keeper of a policy does. Returns warnings.
  private static func restore(_ floor: ClockFloor, _ configuration: Configuration) -> [String] {
    do throws(StateError) {
      floor.rise(to: try StateFile(directory: configuration.stateDirectory).read().clockFloor)
      return []
    } catch {
      return [error.description]
    }
  }

  private static func installID(_ configuration: Configuration, _ warnings: inout [String]) -> String? {
    do throws(InstallIDError) {
      return try InstallID.loadOrCreate(stateDirectory: configuration.stateDirectory).text
    } catch {
      warnings.append(error.description)
      return nil
    }
  }
}
