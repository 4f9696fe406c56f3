import PinfoldConfig
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply

/// What the sealed cache holds for hosts whose pins come from a service, judged as the running proxy judges it; asks
/// nobody and changes nothing.
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
    do throws(CacheError) {
      guard let held = try pins(for: decision.authority.host, service, &steps) else {
        steps.append("no record at hand: the first tunnel waits until the service was asked")
        decision.action = .inspect
        decision.state = .enforce
        return
      }
      decision = decision.supplied(with: held.pins, from: .service, expiresAt: held.record.freshUntil)
      steps.append("inspect with \(held.record.pins.count) pins of the service, enforce")
    } catch {
      // As in the running proxy: an older record must not come back while the one that was accepted cannot be read.
      steps.append(error.description)
      steps.append("refused with pins_unavailable until it can be read")
      decision.action = .block(.pinsUnavailable)
      decision.state = .blocked
    }
  }

  /// What a keeper that has the cache's records and no others has at hand. Throws what may hide a record.
  private func pins(
    for host: HostName, _ service: PinService, _ steps: inout [String]
  ) throws(CacheError) -> HeldPins? {
    guard let cache = try SealedCache.lookup(of: .pins, configuration, &steps) else { return nil }
    let moment = PinMoment(wall: now, steady: 0)
    var keeper = PinKeeper()
    var verified: [PinPlace] = []
    for place in PinKeeper.places(for: host, service) {
      guard let cached = try read(place, in: cache, &steps) else { continue }
      if let refusal = keeper.load(cached, place, for: host, service, at: moment, jitter: 0) {
        // A mark without a record is no refusal.
        guard !cached.bytes.isEmpty else { continue }
        steps.append("cached record for \(place.domain.text) not used: \(refusal.step): \(refusal.description)")
      } else {
        verified.append(place)
      }
    }
    keeper.meet(host, service)
    var found: HeldPins?
    if case .fresh(let held) = keeper.look(host, service, at: moment, isUse: false) { found = held }
    for place in verified.prefix(while: { $0 != found.map { PinPlace($0.record) } }) {
      steps.append("cached record for \(place.domain.text) not used: a newer one was accepted for this host")
    }
    if let found {
      let record = found.record
      steps.append(
        "cached record for \(record.domain.text): made \(record.created.text), received \(found.received.text), "
          + "signed by \(record.keyID), usable until \(record.freshUntil.text)")
    }
    return found
  }

  /// What is kept of a place; one that is broken costs that place only.
  private func read(
    _ place: PinPlace, in cache: SealedCache, _ steps: inout [String]
  ) throws(CacheError) -> CachedPins? {
    do throws(CacheError) {
      guard let contents = try cache.read(.pins, place.name) else { return nil }
      guard let cached = CachedPins(contents) else { throw .broken(path: place.domain.text) }
      return cached
    } catch {
      if error.mayHideRecord { throw error }
      steps.append("cached record for \(place.domain.text) not used: \(error.description)")
      return nil
    }
  }
}
