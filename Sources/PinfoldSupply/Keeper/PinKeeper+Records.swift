package import PinfoldModel
package import PinfoldPolicy

extension PinKeeper {
  // MARK: From a service

  /// Why a record that was just verified for a host is not taken: an older one than was accepted before, for its domain or
  /// for a narrower one that speaks for the host. `nil` when it may be taken.
  ///
  /// A service that goes over from records of hosts to one of a wildcard signs that one anew; otherwise whoever has an
  /// old wildcard record could play it for a host whose own record is newer.
  package func objection(to record: PinRecord, for host: HostName, _ service: PinService) -> PinFetchFault? {
    let domains = Self.patterns(for: host).prefix { $0 != record.domain } + [record.domain]
    let marks = domains.compactMap { entries[$0]?.mark }.filter { service.keys.ids.contains($0.keyID) }
    guard let highest = marks.map(\.created).max(), record.created < highest else { return nil }
    return .rollback(created: record.created, highest: highest)
  }

  /// What became of a record.
  package struct Stored: Sendable {
    /// Whether these pins differ from those that were known of the domain.
    package var isNews: Bool
    /// What the cache should keep, by domain.
    package var writes: [(domain: HostPattern, cached: CachedPins)]
  }

  /// Takes a record that was fetched for a host and had no objection. `jitter`, 0 ..< 1, spreads its refresh. `nil` when
  /// another host's fetch brought a newer record of this domain meanwhile.
  ///
  /// What was known of narrower domains of this host serves nobody any more: the service's answer for it is this one.
  package mutating func store(
    _ held: HeldPins, for host: HostName, _ service: PinService, at moment: PinMoment, jitter: Double
  ) -> Stored? {
    flights.giveBack(host)
    failures[host] = nil
    let domain = held.record.domain
    guard objection(to: held.record, for: host, service) == nil else { return nil }
    let known = entries[domain]?.held?.record.pins
    var stored = Stored(isNews: known.map { Set($0) != Set(held.record.pins) } ?? true, writes: [])
    let mark = PinMark(created: held.record.created, keyID: held.record.keyID)
    put(
      Entry(
        held: held, mark: mark, lastUsed: 0, lastHost: host, isUsed: false,
        refreshAt: Self.refreshTime(held, jitter: jitter)), domain)
    stored.writes.append((domain, CachedPins(held, mark: mark)))
    for narrower in Self.patterns(for: host).prefix(while: { $0 != domain }) {
      guard let entry = entries[narrower], let before = entry.held else { continue }
      byteCount -= before.bytes.count
      entries[narrower]?.held = nil
      stored.writes.append((narrower, CachedPins(mark: entry.mark, at: moment.wall)))
    }
    return stored
  }

  // MARK: From the cache

  /// Whether anything is known of a domain; where not, the cache may know more.
  package func knows(_ pattern: HostPattern) -> Bool { entries[pattern] != nil }

  /// Takes what the cache kept of a domain. Its record is verified again; one that does not verify any more leaves its
  /// mark alone. Answers why the record is not used, if it is not.
  package mutating func load(
    _ cached: CachedPins, _ pattern: HostPattern, for host: HostName, _ service: PinService, at moment: PinMoment,
    jitter: Double
  ) -> PinRecordError? {
    guard entries[pattern] == nil else { return nil }
    var refusal: PinRecordError?
    var held: HeldPins?
    do throws(PinRecordError) {
      let record = try service.record(cached.bytes, for: host, at: moment.wall, received: cached.received)
      guard record.domain == pattern else { throw .otherHost(domain: record.domain.text, asked: pattern.text) }
      held = HeldPins(
        record, bytes: cached.bytes, received: min(cached.received, moment.wall), trust: service.trust)
    } catch {
      refusal = error
    }
    let refreshAt = held.map { Self.refreshTime($0, jitter: jitter) } ?? moment.wall
    put(
      Entry(held: held, mark: cached.mark, lastUsed: 0, lastHost: host, isUsed: false, refreshAt: refreshAt), pattern)
    return refusal
  }

  // MARK: Bounds

  private mutating func put(_ entry: Entry, _ pattern: HostPattern) {
    tick += 1
    var entry = entry
    entry.lastUsed = tick
    byteCount += (entry.held?.bytes.count ?? 0) - (entries[pattern]?.held?.bytes.count ?? 0)
    entries[pattern] = entry
    guard entries.count > limits.records || byteCount > limits.bytes else { return }
    let oldest = entries.sorted { $0.value.lastUsed < $1.value.lastUsed }
    for (pattern, entry) in oldest {
      guard entries.count > limits.records * 7 / 8 || byteCount > limits.bytes / 8 * 7, entries.count > 1 else {
        return
      }
      byteCount -= entry.held?.bytes.count ?? 0
      entries[pattern] = nil
    }
  }
}
