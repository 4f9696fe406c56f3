import PinfoldModel
import Synchronization

/// Remembers which upstreams answered with TLS 1.2 or older last time, so that no second connection is dialled to them
/// ahead of a probe that will not be needed.
///
/// Only an upstream that was offered TLS 1.3, and proved its key in an older version, is remembered. A TLS 1.3 answer that
/// was not expected is probed after the fact, by a probe that has to be answered in TLS 1.3 too, and remembered.
final class UpstreamMemory: Sendable {
  /// Hosts remembered at most; beyond it everything is forgotten, which costs one connection per host.
  private static let limit = 4096

  private let older = Mutex<Set<Authority>>([])
  private let pairs = Mutex<Set<Authority>>([])

  /// Whether the upstream was ever seen to serve two connections at the same time.
  func servesTwo(_ authority: Authority) -> Bool {
    pairs.withLock { $0.contains(authority) }
  }

  /// Both connections of a pair were answered while both were open.
  func noteServesTwo(_ authority: Authority) {
    pairs.withLock { hosts in
      guard !hosts.contains(authority) else { return }
      if hosts.count >= Self.limit { hosts.removeAll() }
      hosts.insert(authority)
    }
  }

  func answersOlder(_ authority: Authority) -> Bool {
    older.withLock { $0.contains(authority) }
  }

  func note(_ authority: Authority, answeredTLS13: Bool) {
    older.withLock { hosts in
      if answeredTLS13 {
        hosts.remove(authority)
      } else if !hosts.contains(authority) {
        if hosts.count >= Self.limit { hosts.removeAll() }
        hosts.insert(authority)
      }
    }
  }
}
