import FoundationEssentials
import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply
import PinfoldTelemetry
import Synchronization

/// Keeps suspensions over a restart: one record of the sealed cache, so that a state directory tells no host without its
/// key, and nothing that was altered suspends anything.
///
/// Writing waits for the disk and is done on a loop of its own; several changes at once become one write. After a crash
/// the record is as it was before the changes that were not written yet: a suspension that began is armed, and one that
/// ended comes back, for the rest of its time at most. So who ends one can be told when that is written.
final class SuspensionKeeper: Sendable {
  /// The policy's version, and what is suspended.
  typealias Suspensions = (version: UInt64, suspensions: [BreakerTrip])

  /// What is to be written, and who waits for it.
  private struct Debt {
    /// A write is queued that takes up every change until it begins.
    var isQueued = false
    /// The record is not what it should be: no write came after a change, or the last one failed.
    var isOwed = false
    var waiting: [@Sendable (Bool) -> Void] = []
  }

  /// The record's name in the cache.
  private static let record = "suspensions"

  private let cache: SealedCache
  private let disk: EventLoop
  private let log: Logger
  private let debt = Mutex(Debt())

  init(_ cache: SealedCache, disk: EventLoop, log: Logger) {
    self.cache = cache
    self.disk = disk
    self.log = log
  }

  /// The suspensions of an earlier run under this version of the policy. A record that is altered or another version's is
  /// as none. Before anything is served: it waits for the disk.
  func load(version: UInt64) -> [BreakerTrip] {
    do throws(CacheError) {
      guard let record = try Self.read(cache), record.version == version else { return [] }
      return record.suspensions.compactMap(\.trip)
    } catch {
      log.write(.warning, "suspensions of an earlier run are not used", [.init("error", .text(error.description))])
      return []
    }
  }

  /// The record; `nil` where there is none.
  static func read(_ cache: SealedCache) throws(CacheError) -> SuspensionRecord? {
    try cache.read(.breaker, record).flatMap { SuspensionRecord($0) }
  }

  /// Has written down what `current` says when it is written. `whenDone` is told once, on the disk's thread, whether it
  /// is; never where that thread ends before.
  func keep(_ current: @escaping @Sendable () -> Suspensions, whenDone: (@Sendable (Bool) -> Void)? = nil) {
    let isFirst = debt.withLock { debt in
      defer { (debt.isQueued, debt.isOwed) = (true, true) }
      if let whenDone { debt.waiting.append(whenDone) }
      return !debt.isQueued
    }
    if isFirst { disk.execute { [self] in write(current) } }
  }

  /// Writes what is still owed. To be called once, when the disk's thread has ended, which drops what was queued there.
  func finish(_ current: () -> Suspensions) {
    if debt.withLock(\.isOwed) { write(current) }
  }

  private func write(_ current: () -> Suspensions) {
    // Before it is asked what to write: a change after that queues another write.
    let waiting = debt.withLock { debt in
      defer { debt = Debt() }
      return debt.waiting
    }
    let (version, suspensions) = current()
    let isWritten = write(SuspensionRecord(version: version, suspensions: suspensions.compactMap { .init($0) }))
    if !isWritten { debt.withLock { $0.isOwed = true } }
    for tell in waiting { tell(isWritten) }
  }

  private func write(_ record: SuspensionRecord) -> Bool {
    do throws(CacheError) {
      if record.suspensions.isEmpty {
        try cache.remove(.breaker, Self.record)
      } else {
        try cache.write(.breaker, Self.record, record.bytes)
      }
      return true
    } catch {
      log.write(.warning, "suspensions cannot be kept over a restart", [.init("error", .text(error.description))])
      return false
    }
  }
}

/// The contents of the record, as JSON. Times are milliseconds since 1970.
struct SuspensionRecord: Codable, Equatable {
  struct Suspension: Codable, Equatable {
    var rule: String
    var authority: String
    var user: String?
    var address: String?
    var failures: Int
    var samples: Int
    var since: Int64
    var until: Int64
  }

  /// The policy's version.
  var version: UInt64
  var suspensions: [Suspension]

  init(version: UInt64, suspensions: [Suspension]) {
    self.version = version
    self.suspensions = suspensions
  }

  init?(_ bytes: [UInt8]) {
    guard let record = try? JSONDecoder().decode(SuspensionRecord.self, from: Data(bytes)) else { return nil }
    self = record
  }

  var bytes: [UInt8] { (try? JSONEncoder().encode(self)).map(Array.init) ?? [] }
}

extension SuspensionRecord.Suspension {
  /// `nil` for what is no suspension of a client.
  init?(_ trip: BreakerTrip) {
    guard let client = trip.client, let until = trip.until else { return nil }
    self.init(
      rule: trip.rule, authority: trip.authority.text, user: nil, address: nil, failures: trip.failures,
      samples: trip.samples, since: BreakerClock.time(of: trip.since).milliseconds,
      until: BreakerClock.time(of: until).milliseconds)
    switch client {
    case .user(let name): user = name
    case .address(let address): self.address = address.text
    case .local: break
    }
  }

  /// The trip in moments of this process; `nil` when it cannot be one: names that are none, or a clock that was set back
  /// to before it began.
  var trip: BreakerTrip? {
    guard let authority = Authority(authority), since <= LogTime.now.milliseconds else { return nil }
    let client: ClientIdentity
    switch (user, address.map { IPAddress($0) }) {
    case (let name?, nil): client = .user(name)
    case (nil, let address??): client = .address(address)
    case (nil, nil): client = .local
    default: return nil
    }
    return BreakerTrip(
      rule: rule, authority: authority, client: client, failures: failures, samples: samples,
      since: BreakerClock.moment(of: LogTime(milliseconds: since)),
      until: BreakerClock.moment(of: LogTime(milliseconds: until)))
  }
}
