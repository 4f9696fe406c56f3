import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldWire

extension Inspection {
  /// The full handshake that a resumed TLS 1.0–1.2 session stems from; `nil` when it is not known. Throws where two peers
  /// gave out the session: a probe would be answered by the one whose key is pinned, the app by the other.
  func origin(ofSessionIn hello: ClientHello) throws(Refusal) -> SessionOrigin? {
    let found = worker.ledger.origin(
      ofSessionIn: hello, at: decision.authority, now: rules.now, under: worker.rules.current.trust)
    return switch found {
    case .known(let origin): origin
    case .unknown: nil
    case .ambiguous: throw .resumptionUnverified
    }
  }

  /// Evidence of the full TLS 1.3 handshakes one of which the client's pre-shared key stems from: those judged for this
  /// host and this client before this tunnel. `nil` when there are none, or when some of their keys match today's pins
  /// and others do not.
  func evidenceBehindPreSharedKey() -> Evidence? {
    // A rule that demands the key log is not satisfied by what a probe said earlier.
    let method: VerificationMethod? = decision.tls13 == .keyLog ? .keyLog : nil
    let all = worker.ledger.peers(
      at: decision.authority, client: client.peerAddress?.address, before: moment, by: method, now: rules.now,
      under: worker.rules.current.trust)
    guard let evidence = all.last else { return nil }
    let asked = decisionOfNow()
    let reason = asked.judge(evidence, method: .resumption).reason
    return all.allSatisfy { asked.judge($0, method: .resumption).reason == reason } ? evidence : nil
  }

  /// What the rest of a full handshake may teach. Bytes that are here before their time are strange: nothing then.
  func lesson(
    behind flight: ServerFlight, answering hello: ClientHello, evidence: Evidence, receivedEnd: Int
  ) -> Lesson? {
    guard surplus.isEmpty, receivedEnd == flight.end, let watch = SessionWatch(behind: flight, answering: hello)
    else { return nil }
    return Lesson(
      watch: watch, authority: decision.authority,
      origin: SessionOrigin(evidence, judged: rules.now, under: rules.trust))
  }

  /// What the rest of a resumption may teach: a fresh ticket stands for the same full handshake, and not a moment longer.
  func lesson(behind resumed: ResumedHandshake, from origin: SessionOrigin) -> Lesson? {
    guard surplus.isEmpty, let watch = SessionWatch(behind: resumed) else { return nil }
    return Lesson(watch: watch, authority: decision.authority, origin: origin)
  }

  /// Remembers a TLS 1.3 handshake that was allowed, in full or resumed.
  func noteTLS13(_ finding: Finding) {
    guard isFullTLS13 else {
      return worker.ledger.noteResumed(at: decision.authority, client: client.peerAddress?.address)
    }
    worker.ledger.noteFull(
      SessionOrigin(finding.evidence, judged: rules.now, under: rules.trust), by: finding.method,
      at: decision.authority, client: client.peerAddress?.address)
  }
}
