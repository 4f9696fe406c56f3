import PinfoldConfig
import PinfoldModel
import PinfoldPolicy
import PinfoldServer
import PinfoldSupply
import PinfoldTLS

/// What `run` would put in force now, worked out without changing the state directory.
struct LoadedPolicy {
  let snapshot: PolicySnapshot
  /// The bundle that would be in force.
  let bundle: PolicyBundle?
  /// One line for each bundle that would be refused.
  let refusals: [String]
  /// The pin services of the configuration.
  let services: PinServices
  /// The time that decisions are made at: the clock's, or a later one that has passed for certain.
  let now: Timestamp
  /// Who this instance is to rollouts by device; `nil` where it is not known.
  let device: DeviceID?
  /// Who it is to rollouts by installation: the id, or why there is none.
  let install: Result<InstallID?, InstallIDError>

  /// Throws `config` for keys that are none, for bundles and authorities that are not there.
  init(_ file: ConfigurationFile) throws(CommandFailure) {
    let configuration = file.configuration
    var clock = WallClock.now
    var standing = PolicySnapshot.Standing.notConfigured
    var found: PolicyBundle?
    var lines: [String] = []
    do throws(FileErrors) {
      services = try PinServices(configuration, file: file.path)
      try RulesLoader(path: file.path, environment: [:]).requirePlaces(configuration)
      if !configuration.policy.bundles.isEmpty {
        let source = try BundleSource(configuration.policy, file: file.path)
        try source.requireFiles()
        standing = .unavailable
        do throws(StateError) {
          let state = try StateFile(directory: configuration.stateDirectory).read()
          clock = max(clock, state.clockFloor)
          let (newest, refusals) = source.newest(at: clock, highest: state.highestVersion)
          found = newest
          lines = refusals.map(\.description)
          if let newest { standing = .document(newest.document) }
        } catch {
          lines = ["no bundle is taken, since an older version could not be told: \(error.description)"]
        }
      } else if !configuration.policy.trustedKeys.isEmpty {
        _ = try TrustedKeys(configuration.policy, file: file.path)
      }
    } catch {
      throw CommandFailure(.config, error.text)
    }
    try Self.demandAuthorities(of: configuration)
    let device = DeviceID(configuration)
    let install = Result { () throws(InstallIDError) in
      try InstallID(stateDirectory: configuration.stateDirectory)
    }
    let local = configuration.localPolicy(deviceID: device?.text, installID: (try? install.get())?.text)
    snapshot = PolicySnapshot(standing, local: local)
    (self.device, self.install) = (device, install)
    bundle = found
    refusals = lines
    now = clock
  }

  private static func demandAuthorities(of configuration: Configuration) throws(CommandFailure) {
    guard let path = configuration.tls.caFile else { return }
    do throws(TLSError) {
      _ = try TrustStore(caFile: path)
    } catch {
      throw CommandFailure(.config, "tls.ca_file: \(error.description)")
    }
  }
}
