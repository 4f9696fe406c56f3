import PinfoldModel
import Synchronization

/// Remembers of upstreams what spares the second connection of a pair, and what forbids to go without one.
///
/// Only an upstream that was offered TLS 1.3, proved its key in an older version, and never chose TLS 1.3, counts as an
/// older one. Somebody on the path can bring that about wherever a pinned key is used on a server without TLS 1.3 too, so a
/// TLS 1.3 answer where none was expected is refused, and expected from then on.
final class UpstreamMemory: Sendable {
  /// Hosts remembered at most on either ground; beyond it the one that was not asked for longest is forgotten.
  private static let limit = 4096

  /// By what a host's key is known. What is seen on one ground says nothing on the other: whoever has a name and a valid
  /// certificate of his own must neither teach what is believed of pinned hosts, nor push it out.
  enum Ground: Sendable {
    case pins, chain
  }

  private enum Versions: Sendable {
    case older, tls13
  }

  private struct Served: Sendable {}

  private struct Seen: Sendable {
    var versions = RecentTable<Authority, Versions>(limit: limit)
    var pairs = RecentTable<Authority, Served>(limit: limit)
  }

  private let pinned = Mutex(Seen())
  private let verified = Mutex(Seen())

  /// Whether the upstream was ever seen to serve two connections at the same time, or may have been: where some had to be
  /// forgotten, everybody unknown.
  func servesTwo(_ authority: Authority, _ ground: Ground) -> Bool {
    change(ground) { $0.pairs.value(for: authority) != nil || $0.pairs.hasForgotten }
  }

  /// Both connections of a pair were answered while both were open, by a key that was allowed.
  func noteServesTwo(_ authority: Authority, _ ground: Ground) {
    change(ground) { $0.pairs.set(Served(), for: authority) }
  }

  /// Whether this upstream chose an older version and never TLS 1.3.
  func answersOlder(_ authority: Authority, _ ground: Ground) -> Bool {
    change(ground) { $0.versions.value(for: authority) == .older }
  }

  /// An older version came with a key that was allowed for this reason. A key that was let through in spite of its pins
  /// teaches nothing: it may be an attacker's.
  func noteOlder(_ authority: Authority, by reason: Reason) {
    let ground: Ground
    switch reason {
    case .pinMatch: ground = .pins
    case .chainVerified: ground = .chain
    default: return
    }
    change(ground) { seen in
      if seen.versions.value(for: authority) == nil { seen.versions.set(.older, for: authority) }
    }
  }

  /// Somebody answered in TLS 1.3, whoever it was: from now on a pair is dialled.
  func noteTLS13(_ authority: Authority, _ ground: Ground) {
    change(ground) { $0.versions.set(.tls13, for: authority) }
  }

  private func change<Result>(_ ground: Ground, _ body: (inout sending Seen) -> sending Result) -> Result {
    switch ground {
    case .pins: pinned.withLock(body)
    case .chain: verified.withLock(body)
    }
  }
}
