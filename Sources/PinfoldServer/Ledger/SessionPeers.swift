import PinfoldModel
import PinfoldPolicy

/// Whom one client may hold TLS 1.3 sessions of, at one host: everybody a full handshake with whom was allowed.
///
/// Tickets are encrypted, so what speaks against a session is only that its client once met a peer of another key. That
/// must not be forgotten before the client's last ticket from there has ended. A peer whose own time is over (see
/// `SessionOrigin`) therefore vouches for nothing, and stays a witness.
struct SessionPeers: Sendable {
  /// Different peers remembered. A client that met more keys of a host than this is not vouched for.
  static let limit = 4
  /// How long a ticket can be used (RFC 8446 §4.6.1). A resumption gives out new ones.
  static let ticketLife = Duration.seconds(604_800)

  private struct Peer: Sendable {
    var origin: SessionOrigin
    var method: VerificationMethod
    /// Places of its first and of its latest handshake among all that were noted.
    let first: UInt64
    var latest: UInt64
    /// When the last ticket of it ends, by a clock that nobody sets.
    var ticketsEnd: ContinuousClock.Instant
  }

  private var list: [Peer] = []

  /// Remembers a full handshake that was allowed. `number` is its place among all of them.
  mutating func noteFull(
    _ origin: SessionOrigin, by method: VerificationMethod, number: UInt64, at moment: ContinuousClock.Instant
  ) {
    list.removeAll { $0.ticketsEnd <= moment }
    let end = moment + Self.ticketLife
    if let index = list.firstIndex(where: { $0.origin.isSamePeer(as: origin) && $0.method == method }) {
      list[index].origin = origin
      list[index].latest = number
      list[index].ticketsEnd = end
    } else if list.count <= Self.limit {
      list.append(Peer(origin: origin, method: method, first: number, latest: number, ticketsEnd: end))
    } else {
      // That there are too many has to last as long as the tickets of the one there is no place for.
      noteResumed(at: moment)
    }
  }

  /// Remembers that a resumption was allowed: whoever it was gave out new tickets.
  mutating func noteResumed(at moment: ContinuousClock.Instant) {
    for index in list.indices where list[index].ticketsEnd > moment {
      list[index].ticketsEnd = moment + Self.ticketLife
    }
  }

  /// What is asked of the peers.
  struct Question: Sendable {
    /// Only who was met before this place counts.
    let before: UInt64
    /// Only a handshake behind this place vouches.
    let floor: UInt64
    /// Only evidence found this way is good enough; `nil`: any.
    let method: VerificationMethod?
    let now: Timestamp
    let trust: TrustMark
    let moment: ContinuousClock.Instant
  }

  /// Evidence of everybody whose session the client may hold, the last of which vouches by these authorities today; empty
  /// when nobody does, when there are too many, or when one of them was met under other authorities or in another way.
  func evidence(_ question: Question) -> [Evidence] {
    let met = list.filter { $0.ticketsEnd > question.moment }
    guard met.count <= Self.limit, met.allSatisfy({ question.method == nil || $0.method == question.method })
    else { return [] }
    let before = met.filter { $0.first <= question.before }
    let vouching = before.last {
      $0.latest > question.floor && $0.origin.counts(at: question.now, under: question.trust)
    }
    guard let vouching, before.allSatisfy({ $0.origin.trust == question.trust }) else { return [] }
    return before.filter { $0.first != vouching.first }.map(\.origin.evidence) + [vouching.origin.evidence]
  }
}
