package import PinfoldModel
import PinfoldPolicy

extension PinKeeper {
  // MARK: From a service

  /// Why a record that was just verified for a host is not taken: a newer one was accepted that speaks for the host
  /// too, for whatever domain, signed by a key that is trusted still. `nil` when it may be taken.
  ///
  /// An old record is worth something to whoever is in front of the service either way: one of the host is looked up
  /// before the wildcard's that replaced it, one of a wildcard speaks for the host when its own is over. A `fingerprint`
  /// has no date to be judged by: Pinfold's own clock, which may have been ahead, is none.
  package func objection(to record: PinRecord, for host: HostName, _ service: PinService) -> PinFetchFault? {
    let newest = Self.places(for: host, service).compactMap { entries[$0]?.newest }.max()
    guard let newest, record.isOlder(than: newest) else { return nil }
    return .rollback(created: record.created, highest: newest)
  }

  /// What became of a record.
  package struct Stored: Sendable {
    /// Whether these pins differ from those that were known of the domain.
    package var isNews: Bool
    /// What the cache should keep, by place.
    package var writes: [(place: PinPlace, cached: CachedPins)]
  }

  /// Takes a record that was fetched for a host and had no objection. `jitter`, 0 ..< 1, spreads its refresh. `nil` when
  /// another host's fetch brought a newer record meanwhile.
  ///
  /// What was known of narrower domains of this host, or by another key of the service, serves nobody any more: the
  /// service's answer for it is this one. How new it was stays known.
  package mutating func store(
    _ held: HeldPins, for host: HostName, _ service: PinService, at moment: PinMoment, jitter: Double
  ) -> Stored? {
    flights.giveBack(host)
    failures[host] = nil
    guard objection(to: held.record, for: host, service) == nil else { return nil }
    let place = PinPlace(held.record)
    let known = service.keys.signers.compactMap { entries[PinPlace($0, place.domain)]?.held }
      .max { $0.record.created < $1.record.created }
    let newest = held.record.date ?? entries[place]?.newest
    let isNews = known.map { Set($0.record.pins) != Set(held.record.pins) } ?? true
    var stored = Stored(isNews: isNews, writes: [(place, CachedPins(held, newest: newest))])
    put(
      Entry(
        held: held, newest: newest, lastUsed: 0, lastHost: host, isUsed: false,
        refreshAt: Self.refreshTime(held, jitter: jitter)), place)
    let patterns = Self.patterns(for: host)
    met.insert(host, patterns, service.keys.signers)
    let wider = patterns.drop { $0 != place.domain }.dropFirst()
    for other in Self.places(for: host, service) where other != place && !wider.contains(other.domain) {
      guard let entry = entries[other], let before = entry.held else { continue }
      byteCount -= before.bytes.count
      entries[other]?.held = nil
      stored.writes.append((other, CachedPins(newest: entry.newest, at: moment.wall)))
    }
    return stored
  }

  // MARK: From the cache

  /// Whether anything is known of a place; where not, the cache may know more.
  package func knows(_ place: PinPlace) -> Bool { entries[place] != nil }

  /// Takes what the cache kept of a place. Its record is verified again; one that does not verify any more leaves how
  /// new it was. Answers why the record is not used, if it is not.
  package mutating func load(
    _ cached: CachedPins, _ place: PinPlace, for host: HostName, _ service: PinService, at moment: PinMoment,
    jitter: Double
  ) -> PinRecordError? {
    guard entries[place] == nil else { return nil }
    var refusal: PinRecordError?
    var held: HeldPins?
    do throws(PinRecordError) {
      let record = try service.record(cached.bytes, for: host, at: moment.wall, received: cached.received)
      guard record.domain == place.domain else {
        throw .otherHost(domain: record.domain.text, asked: place.domain.text)
      }
      guard record.signer == place.signer else { throw .signature }
      held = HeldPins(
        record, bytes: cached.bytes, received: min(cached.received, moment.wall), trust: service.trust)
    } catch {
      refusal = error
    }
    let refreshAt = held.map { Self.refreshTime($0, jitter: jitter) } ?? moment.wall
    put(
      Entry(held: held, newest: cached.newest, lastUsed: 0, lastHost: host, isUsed: false, refreshAt: refreshAt), place)
    return refusal
  }

  /// Whether everything that the cache has of a host of this service is in memory.
  package func hasMet(_ host: HostName, _ service: PinService) -> Bool {
    let signers = met.signers(of: host, Self.patterns(for: host))
    return service.keys.signers.allSatisfy(signers.contains)
  }

  /// Everything that the cache has of a host of this service was loaded.
  package mutating func meet(_ host: HostName, _ service: PinService) {
    tick += 1
    // What was loaded long ago must not be the first to make room for what is fetched for this host now.
    for place in Self.places(for: host, service) { entries[place]?.lastUsed = tick }
    met.insert(host, Self.patterns(for: host), service.keys.signers)
  }

  // MARK: Bounds

  private mutating func put(_ entry: Entry, _ place: PinPlace) {
    tick += 1
    var entry = entry
    entry.lastUsed = tick
    byteCount += (entry.held?.bytes.count ?? 0) - (entries[place]?.held?.bytes.count ?? 0)
    entries[place] = entry
    guard entries.count > limits.records || byteCount > limits.bytes else { return }
    for (place, entry) in entries.sorted(by: { $0.value.lastUsed < $1.value.lastUsed }) {
      guard entries.count > limits.records * 7 / 8 || byteCount > limits.bytes / 8 * 7, entries.count > 1 else { break }
      byteCount -= entry.held?.bytes.count ?? 0
      entries[place] = nil
      met.remove(place.domain)
    }
  }
}
