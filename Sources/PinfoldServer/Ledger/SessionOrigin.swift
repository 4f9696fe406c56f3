import PinfoldModel
import PinfoldPolicy

/// The full handshake a session stems from: what it showed of the peer, and for how long that may count.
struct SessionOrigin: Sendable {
  /// Longest time between a full handshake and the last resumption that leans on it, in seconds: RFC 5246 appendix
  /// F.1.4 suggests a day as the longest life of a session.
  static let longestLife: Int64 = 86_400

  let evidence: Evidence
  /// When the handshake was judged. A clock that is set back before it ends the origin too.
  let judged: Timestamp
  /// What its chain was verified by. Under other authorities it is no evidence.
  let trust: TrustMark
  /// The first second in which it does not count any more.
  let expires: Timestamp

  /// The origin of sessions from a handshake judged `now` by these authorities.
  init(_ evidence: Evidence, judged now: Timestamp, under trust: TrustMark) {
    self.evidence = evidence
    self.trust = trust
    judged = now
    let end = Timestamp(seconds: now.seconds.addingReportingOverflow(Self.longestLife).partialValue)
    expires = evidence.validUntil.map { min($0, end) } ?? end
  }

  func counts(at now: Timestamp, under authorities: TrustMark) -> Bool {
    judged <= now && now < expires && trust == authorities
  }

  /// Whether both are of one peer: the same key under the same certificate.
  func isSamePeer(as other: SessionOrigin) -> Bool {
    evidence.publicKey == other.evidence.publicKey && evidence.certificate == other.evidence.certificate
  }
}
