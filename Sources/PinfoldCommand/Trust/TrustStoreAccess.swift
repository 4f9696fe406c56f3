import PinfoldConfig
import PinfoldCrypto
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply

/// The trusted keys of a state directory, for commands. A running proxy sees every change within some seconds.
struct TrustStoreAccess {
  /// One device.
  struct Device {
    let authority: Authority
    let key: TrustedKey
  }

  /// `nil` where there is no cache yet.
  private let cache: SealedCache?

  /// The store as it is. `creates`: with a cache and its key made where there is none.
  init(_ configuration: Configuration, creates: Bool = false, console: Console) throws(CommandFailure) {
    var warnings: [String] = []
    do throws(CryptoError) {
      if creates {
        cache = try SealedCache(
          stateDirectory: configuration.stateDirectory, keyFile: configuration.cacheKeyFile, warnings: &warnings)
      } else {
        cache = try SealedCache.existing(
          stateDirectory: configuration.stateDirectory, keyFile: configuration.cacheKeyFile)
      }
    } catch {
      throw CommandFailure(.failed, "the keys of devices cannot be used: \(error.description)")
    }
    for warning in warnings { console.complain("warning: \(warning)") }
  }

  /// The store in this cache.
  init(_ cache: SealedCache?) { self.cache = cache }

  /// Every device by host, and why records cannot be read.
  func devices() -> (devices: [Device], problems: [String]) {
    guard let cache else { return ([], []) }
    let (records, refusals) = cache.all(.trust)
    var problems = refusals.map(\.description)
    let devices = records.compactMap { record -> Device? in
      guard let authority = Authority(record.name), let key = TrustRecord.key(record.contents) else {
        problems.append("the trusted key of \(escaped(record.name)) is in a form that this version does not know")
        return nil
      }
      return Device(authority: authority, key: key)
    }
    return (devices, problems)
  }

  /// The key of one device; throws where its record cannot be read.
  func key(of authority: Authority) throws(CacheError) -> TrustedKey? {
    guard let contents = try cache?.read(.trust, TrustRecord.name(authority)) else { return nil }
    guard let key = TrustRecord.key(contents) else { throw .broken(path: authority.text) }
    return key
  }

  /// The same as a proxy that starts now knows it: while the records cannot be listed, any device may have one.
  func knownKey(of authority: Authority) throws(CacheError) -> TrustedKey? {
    _ = try cache?.survey(.trust)
    return try key(of: authority)
  }

  /// Trusts the key in the place of any other.
  func keep(_ key: TrustedKey, for authority: Authority) throws(CommandFailure) {
    do throws(CacheError) {
      try cache?.write(.trust, TrustRecord.name(authority), TrustRecord.contents(key))
    } catch {
      throw CommandFailure(.failed, error.description)
    }
  }

  /// Forgets a device, whether its record can be read or not.
  func forget(_ authority: Authority) throws(CommandFailure) {
    do throws(CacheError) { try cache?.remove(.trust, TrustRecord.name(authority)) } catch {
      throw CommandFailure(.failed, error.description)
    }
  }
}

/// What the trusted keys make of a decision, for `explain`.
struct TrustedKeyLookup {
  let configuration: Configuration

  /// Puts the device's key into the decision, and says so.
  func amend(_ decision: inout Decision, _ steps: inout [String]) {
    do throws(CacheError) {
      let cache = try SealedCache.lookup(of: .trust, configuration, &steps)
      let key = try TrustStoreAccess(cache).knownKey(of: decision.authority)
      let before = decision
      decision = decision.trusting(key)
      if decision.learnsKey {
        steps.append("trust on first use: no key is trusted yet, the first one in order will be")
      } else if let key, decision.pins.count != before.pins.count {
        let how = key.origin == .paired ? "paired" : "first used"
        steps.append("\(how) \(key.since.text): \(key.pin.text) is trusted")
      }
    } catch {
      refuse(&decision, &steps, error)
    }
  }

  /// What a record that cannot be read makes of a decision: as in the running proxy nothing where it has no say, and
  /// elsewhere a refusal. A rule that learns refuses every key behind the handshake, which comes to the same.
  private func refuse(_ decision: inout Decision, _ steps: inout [String], _ error: CacheError) {
    let before = decision
    decision = decision.withUnreadableKey()
    guard decision.learnsKey || decision.source != before.source else { return }
    decision.action = .block(.pinsUnavailable)
    decision.state = .blocked
    let name = decision.authority.text
    steps.append("the key this device is trusted with cannot be read: \(error.description)")
    if case .locked = error {
      steps.append("refused with pins_unavailable until it can be read")
    } else {
      steps.append("refused with pins_unavailable: pinfold trust forget \(name) begins anew")
    }
  }
}
