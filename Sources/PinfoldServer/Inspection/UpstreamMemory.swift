import PinfoldModel
import Synchronization

/// Remembers which upstreams answered with TLS 1.2 or older last time, so that no second connection is dialled to them
/// ahead of a probe that will not be needed.
///
/// Only an upstream that was offered TLS 1.3, and proved its key in an older version, is remembered. A TLS 1.3 answer that
/// was not expected is probed after the fact, by a probe that has to be answered in TLS 1.3 too, and remembered.
final class UpstreamMemory: Sendable {
  /// Hosts remembered at most; beyond it the one that was not asked for longest is forgotten.
  private static let limit = 4096

  private struct Host: Hashable, Sendable {
    let authority: Authority
    /// What vouched for the key.
    let reason: Reason
  }

  private let older = Mutex(RecentTable<Host, Bool>(limit: limit))
  private let pairs = Mutex(RecentTable<Authority, Bool>(limit: limit))

  /// Whether the upstream was ever seen to serve two connections at the same time.
  func servesTwo(_ authority: Authority) -> Bool {
    pairs.withLock { $0.value(for: authority) == true }
  }

  /// Both connections of a pair were answered while both were open.
  func noteServesTwo(_ authority: Authority) {
    pairs.withLock { $0.set(true, for: authority) }
  }

  /// Whether this upstream answered with an older version, with a key that was pinned, or, where no more is asked for, had
  /// a valid certificate.
  func answersOlder(_ authority: Authority, verifyOnly: Bool) -> Bool {
    let wanted: [Reason] = verifyOnly ? [.pinMatch, .chainVerified] : [.pinMatch]
    return older.withLock { hosts in
      wanted.contains { hosts.value(for: Host(authority: authority, reason: $0)) == true }
    }
  }

  /// An older version came with a key that was allowed for this reason. A key that was let through in spite of its pins
  /// teaches nothing: it may be an attacker's.
  func noteOlder(_ authority: Authority, _ reason: Reason) {
    guard [.pinMatch, .chainVerified].contains(reason) else { return }
    older.withLock { $0.set(true, for: Host(authority: authority, reason: reason)) }
  }

  /// The upstream answered in TLS 1.3.
  func forget(_ authority: Authority) {
    older.withLock { hosts in
      for reason in [Reason.pinMatch, .chainVerified] {
        let host = Host(authority: authority, reason: reason)
        if hosts.value(for: host) == true { hosts.set(false, for: host) }
      }
    }
  }
}
