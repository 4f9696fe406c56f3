import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply
import PinfoldTelemetry
import Synchronization

/// One host's turn, from the cache over the service to whoever waits. On the supply loop.
extension PinSupply {
  /// Fetches what the errand is for, unless a neighbour's record turned up that serves it.
  func run(_ errand: Errand) async {
    defer { land(errand.host) }
    if errand.isForTunnel, isFresh(errand) { return }
    let result = await PinFetcher(transport: client).fetch(
      errand.host, errand.service, now: { (rules.current.now, .now) },
      objection: { record in
        // What was known when the host's turn came may have had to make room meanwhile.
        do throws(CacheError) { try load(errand) } catch { return .cache(error.description) }
        return state.withLock { $0.keeper.objection(to: record, for: errand.host, errand.service) }
      },
      note: { note($0, $1) })
    switch result {
    case .success(let held): store(errand, held)
    case .failure(let failure): fail(errand, failure)
    }
  }

  func isFresh(_ errand: Errand) -> Bool {
    if case .fresh = look(errand.host, errand.service, isUse: false) { true } else { false }
  }

  /// Takes from the cache what memory does not have: records, or at least how new they were. Throws `unreadable`; until
  /// everything could be read nothing is said of the host, and nothing accepted.
  func load(_ errand: Errand) throws(CacheError) {
    guard !state.withLock({ $0.keeper.hasMet(errand.host, errand.service) }) else { return }
    for place in PinKeeper.places(for: errand.host, errand.service) {
      guard !state.withLock({ $0.keeper.knows(place) }), let cached = try records.read(place) else { continue }
      let moment = moment
      let refusal = state.withLock {
        $0.keeper.load(cached, place, for: errand.host, errand.service, at: moment, jitter: .random(in: 0..<1))
      }
      // A mark without a record is no refusal.
      if let refusal, !cached.bytes.isEmpty {
        log.write(
          .info, "cached pins not used",
          [
            .init("domain", .text(place.domain.text)), .init("step", .text(refusal.step)),
            .init("error", .text(refusal.description)),
          ])
      }
    }
    state.withLock { $0.keeper.meet(errand.host, errand.service) }
  }

  private func store(_ errand: Errand, _ held: HeldPins) {
    let moment = moment
    let stored = state.withLock {
      $0.keeper.store(held, for: errand.host, errand.service, at: moment, jitter: .random(in: 0..<1))
    }
    guard let stored else { return }
    for (place, cached) in stored.writes { records.write(cached, place) }
    let record = held.record
    let fields: [LogEvent.Field] = [
      .init("host", .text(errand.host.text)), .init("service", .text(errand.service.label)),
      .init("domain", .text(record.domain.text)),
      .init("pins", .text(record.pins.map(\.text).joined(separator: " "))), .init("keyid", .text(record.keyID)),
      .init("created", .text(record.created.text)), .init("expires", .text(record.freshUntil.text)),
    ]
    log.write(.info, "pins fetched", fields + [.init("changed", .flag(stored.isNews))])
    if stored.isNews { audit.record(AuditRecord(.pins, fields)) }
  }

  func fail(_ errand: Errand, _ failure: PinFetchFailure) {
    let moment = moment
    let isAtHand = state.withLock { state in
      state.keeper.fail(errand.host, failure, at: moment)
      guard case .fresh = state.keeper.look(errand.host, errand.service, at: moment, isUse: false) else { return false }
      return true
    }
    log.write(
      .warning, "pins not fetched",
      [
        .init("host", .text(errand.host.text)), .init("service", .text(errand.service.label)),
        .init("step", .text(failure.step)), .init("error", .text(failure.description)),
        .init("at_hand", .flag(isAtHand)),
      ])
  }

  /// Ends a host's turn and wakes whoever waited for it.
  func land(_ host: HostName) {
    let waiting = state.withLock { state in
      state.keeper.drop(host)
      return state.waiting.removeValue(forKey: host)
    }
    for tunnel in (waiting ?? [:]).values { tunnel.waiter.wake(()) }
  }

  private func note(_ url: HTTPURL, _ attempt: PinFetcher.Attempt) {
    metrics.pinFetch(service: url.origin, PinFetchResult(attempt))
    state.withLock { $0.tries[url.origin] = PinServiceTry(attempt, at: .now) }
  }
}
