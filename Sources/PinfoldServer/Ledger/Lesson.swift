import PinfoldModel
import PinfoldWire

/// What a tunnel may still teach the ledger behind its verdict.
struct Lesson: Sendable {
  var watch: SessionWatch
  let authority: Authority
  /// The handshake that the session will stem from.
  let origin: SessionOrigin
}
