import PinfoldLoop
import PinfoldPolicy
import PinfoldSupply
import PinfoldTelemetry
import Synchronization

/// Pin records in the sealed cache: read where they are needed, written behind on a thread that may wait for the disk.
final class PinRecordStore: Sendable {
  private let cache: SealedCache?
  private let locked: LockedCache?
  /// The keys of all services as they are now.
  private let signers: @Sendable () -> [PinSigner]
  private let loop: EventLoop
  private let log: Logger
  /// What waits to be written, the newest of each place only.
  private let waiting = Mutex<[PinPlace: CachedPins]>([:])
  /// Until then the cache is taken to be as full as it was found.
  private let fullUntil = Mutex(Deadline(nanoseconds: 0))
  /// Between two looks for room, each of which reads all records.
  private static let fullPause = Duration.seconds(60)

  /// Without a cache nothing is read or written; `locked`: what there is instead.
  init(
    cache: SealedCache?, locked: LockedCache?, loop: EventLoop, log: Logger,
    signers: @escaping @Sendable () -> [PinSigner]
  ) {
    self.cache = cache
    self.locked = locked
    self.signers = signers
    self.loop = loop
    self.log = log
  }

  /// What is kept of a place. A record that is broken is said, and is as good as none. Throws `unreadable`, `locked` and
  /// `unlisted`, which may pass: what is there then must not be forgotten, nor written over.
  func read(_ place: PinPlace) throws(CacheError) -> CachedPins? {
    if let pending = waiting.withLock({ $0[place] }) { return pending }
    do throws(CacheError) {
      try locked?.requireNone(of: .pins)
      guard let contents = try cache?.read(.pins, place.name) else { return nil }
      guard let cached = CachedPins(contents) else { throw .broken(path: place.domain.text) }
      return cached
    } catch {
      if error.mayHideRecord { throw error }
      complain(error)
      return nil
    }
  }

  /// Keeps a record, soon.
  func write(_ cached: CachedPins, _ place: PinPlace) {
    guard let cache else { return }
    let isFirst = waiting.withLock { waiting in
      defer { waiting[place] = cached }
      return waiting[place] == nil
    }
    guard isFirst else { return }
    loop.execute { [self] in write(place, cache) }
  }

  private func write(_ place: PinPlace, _ cache: SealedCache) {
    guard let cached = waiting.withLock({ $0.removeValue(forKey: place) }) else { return }
    do throws(CacheError) {
      guard fullUntil.withLock({ $0 <= .now }) || cache.holds(.pins, place.name) else { return }
      do throws(CacheError) { try cache.write(.pins, place.name, cached.contents) } catch {
        guard case .full = error else { throw error }
        try makeRoom(in: cache, error)
        try cache.write(.pins, place.name, cached.contents)
      }
    } catch {
      complain(error)
    }
  }

  /// Gives up what guards nothing. Where there is no such record, those that are there stay, and new ones are not kept: how
  /// new a record was must not be forgotten for others that a client thinks of. Throws `error` then.
  private func makeRoom(in cache: SealedCache, _ error: CacheError) throws(CacheError) {
    let signers = Set(signers())
    guard try cache.makeRoom(.pins, age: { CachedPins.spareAge($0, trusting: signers) }) == 0 else { return }
    fullUntil.withLock { $0 = Deadline.now.advanced(by: Self.fullPause) }
    throw error
  }

  /// Writes what still waits, on the calling thread.
  func flush() {
    guard let cache else { return }
    for place in waiting.withLock({ Array($0.keys) }) { write(place, cache) }
  }

  private func complain(_ error: CacheError) {
    log.write(.warning, "cache", [.init("warning", .text(error.description))])
  }
}
