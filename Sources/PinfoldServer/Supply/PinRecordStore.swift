import PinfoldLoop
import PinfoldPolicy
import PinfoldSupply
import PinfoldTelemetry
import Synchronization

/// Pin records in the sealed cache: read where they are needed, written behind on a thread that may wait for the disk.
final class PinRecordStore: Sendable {
  private let cache: SealedCache?
  private let loop: EventLoop
  private let log: Logger
  /// What waits to be written, the newest of each domain only.
  private let waiting = Mutex<[HostPattern: CachedPins]>([:])

  /// Without a cache nothing is read or written.
  init(cache: SealedCache?, loop: EventLoop, log: Logger) {
    self.cache = cache
    self.loop = loop
    self.log = log
  }

  /// What is kept of a domain. A record that cannot be read is said, and is as good as none.
  func read(_ domain: HostPattern) -> CachedPins? {
    if let pending = waiting.withLock({ $0[domain] }) { return pending }
    do throws(CacheError) {
      guard let contents = try cache?.read(.pins, domain.text) else { return nil }
      guard let cached = CachedPins(contents) else { throw .broken(path: domain.text) }
      return cached
    } catch {
      complain(error)
      return nil
    }
  }

  /// Keeps a record, soon.
  func write(_ cached: CachedPins, _ domain: HostPattern) {
    guard let cache else { return }
    let isFirst = waiting.withLock { waiting in
      defer { waiting[domain] = cached }
      return waiting[domain] == nil
    }
    guard isFirst else { return }
    loop.execute { [self] in write(domain, cache) }
  }

  private func write(_ domain: HostPattern, _ cache: SealedCache) {
    guard let cached = waiting.withLock({ $0.removeValue(forKey: domain) }) else { return }
    do throws(CacheError) { try cache.write(.pins, domain.text, cached.contents) } catch { complain(error) }
  }

  /// Writes what still waits, on the calling thread.
  func flush() {
    guard let cache else { return }
    for domain in waiting.withLock({ Array($0.keys) }) { write(domain, cache) }
  }

  private func complain(_ error: CacheError) {
    log.write(.warning, "cache", [.init("warning", .text(error.description))])
  }
}
