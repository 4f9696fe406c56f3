import PinfoldCrypto
import PinfoldModel
import PinfoldPolicy
import PinfoldWire
import Synchronization

/// Remembers which sessions stem from full handshakes that Pinfold judged and allowed, so that a resumption, which shows
/// no certificate, is judged by the evidence of its origin under the rules of today.
///
/// TLS 1.0–1.2: by session id or ticket. TLS 1.3, where both are encrypted: by the client's address. Ids and tickets are
/// kept as hashes under a key that ends with the process; nothing is written to disk. Shared by all workers. It never
/// allows: it hands out evidence, or nothing.
final class ResumptionLedger: Sendable {
  /// Sessions remembered at most; each takes about 400 bytes.
  static let sessionLimit = 65_536
  /// Pairs of host and client address remembered at most.
  static let peerLimit = 16_384

  /// `nil` stands for a name that two different peers gave out: it proves nothing.
  private typealias Sessions = RecentTable<Digest256, SessionOrigin?>

  private struct Pair: Hashable, Sendable {
    let authority: Authority
    /// `nil`: a client of a UNIX socket.
    let client: IPAddress?
  }

  private struct Peers: Sendable {
    var known: RecentTable<Pair, SessionPeers>
    /// Full handshakes noted so far.
    var last: UInt64 = 0
    /// What was noted up to here vouches for nothing any more.
    var floor: UInt64 = 0
  }

  /// `nil` when there is no key: then nothing is remembered.
  private let hash: KeyedHash?
  private let sessions: Mutex<Sessions>
  private let peers: Mutex<Peers>
  private let clock: @Sendable () -> ContinuousClock.Instant

  /// - Parameter clock: what the life of TLS 1.3 tickets is measured by.
  init(
    sessionLimit: Int = sessionLimit, peerLimit: Int = peerLimit,
    clock: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
  ) {
    self.clock = clock
    hash = try? KeyedHash()
    sessions = Mutex(Sessions(limit: sessionLimit))
    peers = Mutex(Peers(known: RecentTable(limit: peerLimit)))
  }

  /// Ends all sessions: a device's key is another one now. Who was met in TLS 1.3 is still known as a witness.
  func endAll() {
    sessions.withLock { $0.removeAll() }
    peers.withLock { $0.floor = $0.last }
  }

  // MARK: TLS 1.0–1.2

  /// Remembers a session that its client has accepted.
  func note(_ session: SessionWatch.Session, at authority: Authority, from origin: SessionOrigin) {
    for (kind, bytes) in [(Kind.sessionID, session.sessionID), (.ticket, session.ticket)] where !bytes.isEmpty {
      guard let name = name(kind, bytes[...], authority) else { return }
      sessions.withLock { sessions in
        if let before = sessions.value(for: name) {
          // An id or a ticket is sent in the clear, so another peer can give out the same one. Once it has, nobody
          // can tell whose session a client means by it.
          guard let before, before.isSamePeer(as: origin) else { return sessions.set(nil, for: name) }
        }
        sessions.set(origin, for: name)
      }
    }
  }

  /// What is known of the session that a hello asks for.
  enum Origin: Sendable {
    case known(SessionOrigin)
    /// Two different peers gave out its name: whose it is, nobody can tell.
    case ambiguous
    /// Never seen, too old, or verified by other authorities than today's.
    case unknown
  }

  /// The origin of the session that this hello asks for.
  ///
  /// A client holds one session and offers it by its ticket, if it has one: the id beside a ticket is then any value
  /// (RFC 5077 §3.4), and says nothing.
  func origin(
    ofSessionIn hello: ClientHello, at authority: Authority, now: Timestamp, under trust: TrustMark
  ) -> Origin {
    let wanted: Digest256?
    if let ticket = hello.sessionTicket {
      wanted = name(.ticket, ticket, authority)
    } else {
      wanted = hello.sessionID.isEmpty ? nil : name(.sessionID, hello.sessionID, authority)
    }
    guard let wanted, let found = sessions.withLock({ $0.value(for: wanted) }) else { return .unknown }
    guard let origin = found else { return .ambiguous }
    return origin.counts(at: now, under: trust) ? .known(origin) : .unknown
  }

  private enum Kind: UInt8 {
    case sessionID = 1
    case ticket = 2
  }

  /// A hash of the name and of the host it is valid at. The host's text holds no zero byte.
  private func name(_ kind: Kind, _ bytes: ArraySlice<UInt8>, _ authority: Authority) -> Digest256? {
    hash?.digest([kind.rawValue] + Array(authority.text.utf8) + [0] + bytes)
  }

  // MARK: TLS 1.3

  /// The moment of now, to be asked before a client's hello is read.
  var moment: UInt64 { peers.withLock { $0.last } }

  /// Remembers a full TLS 1.3 handshake that was allowed.
  func noteFull(
    _ origin: SessionOrigin, by method: VerificationMethod, at authority: Authority, client: IPAddress?
  ) {
    peers.withLock { peers in
      peers.last &+= 1
      let pair = Pair(authority: authority, client: client)
      var met = peers.known.value(for: pair) ?? SessionPeers()
      met.noteFull(origin, by: method, number: peers.last, at: clock())
      peers.known.set(met, for: pair)
    }
  }

  /// Remembers a TLS 1.3 resumption that was allowed.
  func noteResumed(at authority: Authority, client: IPAddress?) {
    peers.withLock { peers in
      let pair = Pair(authority: authority, client: client)
      guard var met = peers.known.value(for: pair) else { return }
      met.noteResumed(at: clock())
      peers.known.set(met, for: pair)
    }
  }

  /// Evidence of everybody whose TLS 1.3 session this client may hold, judged before `moment`. The last one vouches by
  /// these authorities today; empty when nobody does: see `SessionPeers`.
  ///
  /// - Parameter method: only evidence found this way counts; any other makes the answer empty. `nil`: any.
  func peers(
    at authority: Authority, client: IPAddress?, before moment: UInt64, by method: VerificationMethod? = nil,
    now: Timestamp, under trust: TrustMark
  ) -> [Evidence] {
    let (met, floor) = peers.withLock {
      ($0.known.value(for: Pair(authority: authority, client: client)), $0.floor)
    }
    let question = SessionPeers.Question(
      before: moment, floor: floor, method: method, now: now, trust: trust, moment: clock())
    return met?.evidence(question) ?? []
  }
}
