package import PinfoldModel

extension PinKeeper {
  /// Share of its lifetime after which a record is refreshed: between these two, drawn for each, so that many hosts or
  /// many proxies that began together do not ask together.
  private static let refreshShare = 0.75...0.9
  /// Seconds between two tries to refresh a record, at least. They grow with the time that is left, an eighth of it each:
  /// some 65 tries in a day.
  private static let retrySeconds: Int64 = 1

  /// When a record is refreshed ahead of its end. `jitter` is 0 ..< 1.
  static func refreshTime(_ held: HeldPins, jitter: Double) -> Timestamp {
    let lifetime = Double(held.record.freshUntil.seconds - held.received.seconds)
    let width = refreshShare.upperBound - refreshShare.lowerBound
    let share = refreshShare.lowerBound + width * min(max(jitter, 0), 1)
    return Timestamp(seconds: held.received.seconds + max(1, Int64((lifetime * share).rounded(.down))))
  }

  /// The hosts whose records are near their end and in use, at most `count`; each is in flight from now on. Until an
  /// answer is there the pins at hand are used; a try that fails is made again before they end. `serviceOf`: the
  /// service that speaks for a host now; what it would not use is left to its end.
  package mutating func due(
    at moment: PinMoment, atMost count: Int, serviceOf: (HostName) -> PinService?
  ) -> [(host: HostName, service: PinService)] {
    settle(at: moment.wall, serviceOf: serviceOf)
    var due: [(host: HostName, service: PinService)] = []
    for (place, entry) in entries where entry.isUsed && entry.refreshAt <= moment.wall {
      guard due.count < count, flights.admits(nil) else { break }
      guard let held = entry.held, held.isFresh(at: moment.wall), !flights.contains(entry.lastHost) else { continue }
      guard let service = serviceOf(entry.lastHost), service.keys.signers.contains(place.signer) else { continue }
      let left = held.record.freshUntil.seconds - moment.wall.seconds
      entries[place]?.refreshAt = Timestamp(seconds: moment.wall.seconds + max(Self.retrySeconds, left / 8))
      flights.take(entry.lastHost, for: nil)
      due.append((entry.lastHost, service))
    }
    return due
  }

  /// After the clock was ahead: has the records that came meanwhile count from now, those that nobody looks up as well. One
  /// that does not hold at this time is given up, and how new it was stays known.
  private mutating func settle(at now: Timestamp, serviceOf: (HostName) -> PinService?) {
    for (place, entry) in entries {
      guard let held = entry.held, now < held.received, let service = serviceOf(entry.lastHost),
        service.keys.signers.contains(place.signer),
        believed(held, place, entry.lastHost, service, at: now) == nil
      else { continue }
      byteCount -= held.bytes.count
      entries[place]?.held = nil
    }
  }

  /// A host's turn is over, whatever came of it.
  package mutating func drop(_ host: HostName) { flights.giveBack(host) }
}
