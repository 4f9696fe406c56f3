import PinfoldConfig
import PinfoldCrypto
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply

/// What the sealed cache holds for hosts whose pins come from a service; asks nobody and changes nothing.
struct CachedPinLookup {
  private let configuration: Configuration
  private let services: PinServices
  private let now: Timestamp

  init(_ configuration: Configuration, _ loaded: LoadedPolicy) {
    self.configuration = configuration
    services = loaded.services
    now = loaded.now
  }

  /// Puts the pins of the cache into a decision that is left to a service, and says what was found. Without pins the
  /// decision is what the first tunnel's will be once the service has answered: enforced, by pins not known here.
  func amend(_ decision: inout Decision, _ steps: inout [String]) {
    guard decision.source == .service, let domain = decision.serviceDomain, let service = services.service(of: domain)
    else { return }
    steps.append("service \(service.label), keys \(service.keys.ids.joined(separator: " "))")
    if let record = record(for: decision.authority.host, service, &steps) {
      decision = decision.supplied(with: PinSet(record.pins), from: .service, expiresAt: record.freshUntil)
      steps.append("inspect with \(record.pins.count) pins of the service, enforce")
    } else {
      steps.append("no record at hand: the first tunnel waits until the service was asked")
      decision.action = .inspect
      decision.state = .enforce
    }
  }

  private func record(for host: HostName, _ service: PinService, _ steps: inout [String]) -> PinRecord? {
    do {
      guard
        let cache = try SealedCache.existing(
          stateDirectory: configuration.stateDirectory, keyFile: configuration.cacheKeyFile)
      else { return nil }
      var newest = Timestamp(seconds: .min)
      for (place, cached) in try known(of: host, service, in: cache) {
        // What is kept without a record says how new the one was that is gone.
        newest = max(newest, cached.newest)
        guard !cached.bytes.isEmpty else { continue }
        guard cached.newest >= newest else {
          steps.append("cached record for \(place.domain.text) not used: a newer one was accepted for this host")
          continue
        }
        do throws(PinRecordError) {
          let record = try service.record(cached.bytes, for: host, at: now, received: cached.received)
          steps.append(
            "cached record for \(record.domain.text): made \(record.created.text), received \(cached.received.text), "
              + "signed by \(record.keyID), usable until \(record.freshUntil.text)")
          return record
        } catch {
          steps.append("cached record for \(place.domain.text) not used: \(error.step): \(error.description)")
        }
      }
    } catch let error as CryptoError {
      steps.append("the cache cannot be read: \(error.description)")
    } catch let error as CacheError {
      steps.append("the cache cannot be read: \(error.description)")
    } catch {
      steps.append("the cache cannot be read")
    }
    return nil
  }

  /// What is kept that the service may have said of a host: the narrowest domain first, of each the newest first.
  private func known(
    of host: HostName, _ service: PinService, in cache: SealedCache
  ) throws(CacheError) -> [(place: PinPlace, cached: CachedPins)] {
    var known: [(place: PinPlace, cached: CachedPins)] = []
    for pattern in PinKeeper.patterns(for: host) {
      var ofPattern: [(place: PinPlace, cached: CachedPins)] = []
      for place in PinKeeper.places(for: host, service) where place.domain == pattern {
        guard let contents = try cache.read(.pins, place.name), let cached = CachedPins(contents) else { continue }
        ofPattern.append((place, cached))
      }
      known += ofPattern.sorted { $0.cached.newest > $1.cached.newest }
    }
    return known
  }
}
