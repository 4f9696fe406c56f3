package import PinfoldModel
package import PinfoldPolicy

/// What is known of the pins that services hand out, and what has to be done about it. A machine without clock, sockets
/// or disk: time comes in with each event, and its answers say what to fetch.
///
/// A host is in one of these states, each with those that follow it:
/// - unknown: asked for → fetching
/// - fetching: record → fresh; failure → failed, or as before where a fresh record is at hand
/// - fresh: time → due or stale; mismatch → fetching, fresh meanwhile
/// - due (fresh, used, near its end): → fetching, fresh meanwhile
/// - stale: asked for → fetching
/// - failed: some seconds later → unknown
///
/// Nothing here allows anything: what it hands out are verified pins, or a reason why there are none.
package struct PinKeeper: Sendable {
  /// The bounds of its memory, and how long it waits.
  package struct Limits: Sendable {
    /// Records at hand. Beyond it an eighth of them, least recently used, is forgotten; the cache on disk still has them.
    package var records = 10_000
    /// Bytes of these records: 10,000 usual ones have 6 MB, 10,000 of the largest would have 655 MB.
    package var bytes = 32 << 20
    /// Hosts of which is remembered that the cache was looked through, names that a wildcard serves among them. Whoever
    /// wants a tunnel under way to lose its pins has to ask for half as many others within one handshake.
    package var hosts = 65_536
    /// Hosts with a failure in memory.
    package var failures = 4096
    /// Hosts being fetched or waiting for their turn.
    package var flights = 1024
    /// For so long a failed host is not asked for again, in nanoseconds: long enough to protect a service that is down,
    /// short enough for a person who waits.
    package var failureNanoseconds: UInt64 = 5_000_000_000
    /// From the start of a refresh because of a mismatch to the next one of this host, in nanoseconds.
    package var mismatchNanoseconds: UInt64 = 10_000_000_000

    /// The limits in service.
    package init() {}
  }

  /// What is at hand for a host.
  package enum Finding: Sendable {
    /// Pins that may be used.
    case fresh(HeldPins)
    /// Pins whose time is over since then.
    case stale(Timestamp)
    /// Nothing.
    case unknown
  }

  /// What to do for a tunnel that has no pins.
  package enum Demand: Equatable, Sendable {
    /// Fetch; the answer goes to `store` or `fail`.
    case fetch
    /// Somebody fetches already.
    case join
    /// It failed a moment ago.
    case failed(PinFetchFailure)
  }

  struct Entry {
    var held: HeldPins?
    /// When the newest record of this place was made; `nil` while none had a date.
    var newest: Timestamp?
    /// Grows with each use of anything.
    var lastUsed: UInt64
    /// The host that was looked up last: a refresh asks for it.
    var lastHost: HostName
    /// Whether it was used since it came; what nobody uses is not refreshed.
    var isUsed: Bool
    var refreshAt: Timestamp
  }

  let limits: Limits
  var entries: [PinPlace: Entry] = [:]
  var met: MetHosts
  var failures: [HostName: (failure: PinFetchFailure, until: UInt64)] = [:]
  var flights: FairPlaces<HostName>
  var mismatches: [HostName: UInt64] = [:]
  var byteCount = 0
  var tick: UInt64 = 0

  /// A keeper that knows nothing yet.
  package init(limits: Limits = Limits()) {
    self.limits = limits
    flights = FairPlaces(limit: limits.flights)
    met = MetHosts(limit: limits.hosts)
  }

  /// Records at hand, stale ones included.
  package var count: Int { entries.values.count { $0.held != nil } }

  // MARK: Looking up

  /// The pins for a host of this service. `isUse`: for a tunnel, and not only to show them.
  ///
  /// The narrowest record speaks, unless a narrower one was newer that is gone by now: a neighbour may have brought an
  /// old one of a wildcard. So nothing is said of a host before everything that the cache has of it is in memory.
  package mutating func look(
    _ host: HostName, _ service: PinService, at moment: PinMoment, isUse: Bool = true
  ) -> Finding {
    var stale: Timestamp?
    var newest: Timestamp?
    let patterns = Self.patterns(for: host)
    let signers = met.signers(of: host, patterns)
    for pattern in patterns {
      for signer in service.keys.signers {
        guard let known = entries[PinPlace(signer, pattern)]?.newest else { continue }
        newest = max(newest ?? known, known)
      }
      for place in service.keys.signers.map({ PinPlace($0, pattern) }) {
        guard let held = entries[place]?.held, !held.record.isOlder(than: newest), signers.contains(place.signer),
          let believed = believed(held, place, host, service, at: moment.wall)
        else { continue }
        guard believed.isFresh(at: moment.wall) else {
          stale = stale ?? believed.record.freshUntil
          continue
        }
        if isUse { use(place, for: host) }
        return .fresh(believed)
      }
    }
    return stale.map { .stale($0) } ?? .unknown
  }

  private mutating func use(_ place: PinPlace, for host: HostName) {
    tick += 1
    entries[place]?.lastUsed = tick
    entries[place]?.lastHost = host
    entries[place]?.isUsed = true
    met.keep(host)
  }

  /// Where what a service may have said of a host is kept, the narrowest domain first.
  package static func places(for host: HostName, _ service: PinService) -> [PinPlace] {
    patterns(for: host).flatMap { pattern in service.keys.signers.map { PinPlace($0, pattern) } }
  }

  /// The domains of records that can speak for a host, the narrowest first.
  package static func patterns(for host: HostName) -> [HostPattern] {
    var result: [HostPattern] = []
    func add(_ reach: HostPattern.Reach, _ host: HostName) {
      if let pattern = HostPattern(reach: reach, host: host) { result.append(pattern) }
    }
    add(.exact, host)
    guard case .name(let name) = host else { return result }
    var rest = name[...]
    add(.anyDepth, host)
    while let dot = rest.firstIndex(of: ".") {
      rest = rest[rest.index(after: dot)...]
      let parent = HostName.name(String(rest))
      if result.count == 2 { result.insert(HostPattern(reach: .oneLabel, host: parent) ?? result[0], at: 1) }
      add(.anyDepth, parent)
    }
    return result
  }

  /// What is held, if this service stands for it: a record that came under another trust (another configuration) has to
  /// verify under this one first. So has one that came at a time still to come, when the clock was ahead: it counts as come
  /// now, since its lifetime would not end before that time.
  mutating func believed(
    _ held: HeldPins, _ place: PinPlace, _ host: HostName, _ service: PinService, at now: Timestamp
  ) -> HeldPins? {
    guard held.trust != service.trust || now < held.received else { return held }
    let received = min(held.received, now)
    guard let record = try? service.record(held.bytes, for: host, at: now, received: received),
      PinPlace(record) == place
    else { return nil }
    let again = HeldPins(record, bytes: held.bytes, received: received, trust: service.trust)
    entries[place]?.held = again
    if received < held.received {
      // As good as drawn, since hashes are seeded anew in each process: many records may be concerned at once.
      let jitter = Double(UInt(bitPattern: place.hashValue) % 1024) / 1024
      entries[place]?.refreshAt = Self.refreshTime(again, jitter: jitter)
    }
    return again
  }

  // MARK: Fetching

  /// What to do for a tunnel to a host without pins at hand. `client`: whose tunnel; one client has no more hosts in
  /// flight than it leaves room for.
  package mutating func demand(
    _ host: HostName, _ service: PinService, for client: ClientIdentity? = nil, at moment: PinMoment
  ) -> Demand {
    if flights.contains(host) { return .join }
    if let (failure, until) = failures[host] {
      if moment.steady < until { return .failed(failure) }
      failures[host] = nil
    }
    guard flights.admits(client) else {
      return .failed(PinFetchFailure(flights.free > 0 ? .crowded : .busy, at: service.label))
    }
    flights.take(host, for: client)
    return .fetch
  }

  /// What to do after a pin of a host did not match: `fetch` and `join` as for `demand`; `nil` when this host was
  /// refreshed for that reason a moment ago.
  package mutating func demand(afterMismatchOf host: HostName, at moment: PinMoment) -> Demand? {
    if flights.contains(host) { return .join }
    if let last = mismatches[host], moment.steady < last &+ limits.mismatchNanoseconds { return nil }
    guard flights.admits(nil) else { return nil }
    if mismatches.count >= limits.records {
      mismatches = mismatches.filter { moment.steady < $0.value &+ limits.mismatchNanoseconds }
      guard mismatches.count < limits.records else { return nil }
    }
    mismatches[host] = moment.steady
    flights.take(host, for: nil)
    return .fetch
  }

  /// A fetch for the host failed. Pins at hand stay as they are.
  package mutating func fail(_ host: HostName, _ failure: PinFetchFailure, at moment: PinMoment) {
    flights.giveBack(host)
    if failures.count >= limits.failures {
      failures = failures.filter { moment.steady < $0.value.until }
      if failures.count >= limits.failures { failures.removeAll() }
    }
    failures[host] = (failure, moment.steady &+ limits.failureNanoseconds)
  }

  /// Why the last fetch for a host failed, if it did a moment ago.
  package func failure(of host: HostName) -> PinFetchFailure? { failures[host]?.failure }
}
