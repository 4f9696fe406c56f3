package import PinfoldModel
package import PinfoldWire

/// Opens and judges the server's encrypted TLS 1.3 flight: the core that key log and twin hello share.
///
///     opening ── receive ──▶ opening | done(flight) | done(refused)
///
/// Hand in what the server sent behind its ServerHello, in any cut. Bytes are kept up to `WireLimits.heldFlight`. An
/// answer, once given, stays. Not Sendable: for one handshake on one thread.
package final class FlightOpener {
  /// What the bytes so far amount to.
  package enum Event: Sendable {
    /// More bytes are wanted.
    case incomplete
    /// Everything verified.
    case flight(Flight13)
    /// It cannot be let through. Offsets count from the first byte of the server's stream.
    case refused(HandshakeRefusal)
  }

  private let judge: FlightJudge
  private let protection: RecordProtection
  private var reader: EncryptedFlightReader
  private var buffer: [UInt8] = []
  private var next = 0
  private let base: Int
  private var opened: [(message: Int, stream: Int)] = []
  private var messageBytes = 0
  private var hasChangeCipherSpec = false
  private var answer = Event.incomplete

  /// Makes ready to open with `secret`, a server_handshake_traffic_secret from whatever source: nothing about it is
  /// believed before records open with it.
  ///
  /// - Parameters:
  ///   - hellos: the clear messages; `hellos.server.end` is where the flight begins in the server's stream.
  ///   - now: for the validity of delegated credentials.
  ///   - leaves: where leaves that were read before are found again.
  /// - Throws: `unreadable` for a suite that cannot be opened or a secret of a wrong length.
  package init(
    secret: SecretBytes, hellos: Hellos13, now: Timestamp, leaves: LeafMemory = LeafMemory(capacity: 1)
  ) throws(TLSError) {
    guard let suite = hellos.suite else { throw .unreadable("a cipher suite that cannot be opened") }
    let key = try DerivationKey(secret, suite)
    protection = try RecordProtection(key, .opening)
    judge = FlightJudge(hellos: hellos, suite: suite, secret: key, now: now, leaves: leaves)
    reader = EncryptedFlightReader(answering: hellos.client, with: hellos.server)
    base = hellos.server.end
  }

  /// Whether a record opened with the secret: then it belongs to this handshake.
  package var hasOpened: Bool { protection.hasWorked }

  /// Takes bytes and answers what all bytes so far amount to. Bytes behind the flight are none of its business.
  package func receive(_ bytes: ArraySlice<UInt8>) -> Event {
    guard case .incomplete = answer else { return answer }
    guard bytes.count <= WireLimits.heldFlight - buffer.count else {
      refuse(.malformedHandshake, base + buffer.count, "more bytes than may be held")
      return answer
    }
    buffer.append(contentsOf: bytes)
    while case .incomplete = answer, takeRecord() {}
    return answer
  }

  /// Takes the next record if it is whole. The header is judged as soon as its five bytes are there.
  private func takeRecord() -> Bool {
    guard buffer.count - next >= 5 else { return false }
    let start = base + next
    let type = buffer[next]
    let length = Int(buffer[next + 3]) << 8 | Int(buffer[next + 4])
    let longest =
      type == ContentType.applicationData ? WireLimits.protectedRecord13 : WireLimits.plaintextRecord
    guard buffer[next + 1] == 3, buffer[next + 2] == 3 else {
      refuse(.malformedHandshake, start + 1, "a record is not of the version TLS 1.3 has")
      return false
    }
    guard (1...longest).contains(length) else {
      refuse(.malformedHandshake, start + 3, "a record has a length the protocol does not allow")
      return false
    }
    guard buffer.count - next - 5 >= length else { return false }
    let record = buffer[next..<(next + 5 + length)]
    next += 5 + length
    switch type {
    case ContentType.applicationData: takeProtected(record, at: start)
    case ContentType.changeCipherSpec: takeChangeCipherSpec(record.dropFirst(5), at: start)
    case ContentType.alert: refuse(.upstreamUnreachable, start, "an alert instead of the encrypted flight")
    default: refuse(.malformedHandshake, start, "a record in the clear behind the ServerHello")
    }
    return true
  }

  /// RFC 8446 §5: one byte 1, before the Finished, and never inside a message. Servers send one; a second one is refused.
  private func takeChangeCipherSpec(_ body: ArraySlice<UInt8>, at start: Int) {
    guard body.count == 1, body.first == 1 else {
      return refuse(.malformedHandshake, start + 5, "a ChangeCipherSpec that is not the byte 1")
    }
    guard !hasChangeCipherSpec, !reader.isInsideMessage else {
      return refuse(.malformedHandshake, start, "a ChangeCipherSpec where none may be")
    }
    hasChangeCipherSpec = true
  }

  private func takeProtected(_ bytes: ArraySlice<UInt8>, at start: Int) {
    guard let record = protection.open(bytes) else {
      // The first record's tag tells whether the secret belongs to this handshake; everything else, whether somebody
      // meddled, or sent padding alone or more than a record may hold.
      return hasOpened
        ? refuse(.malformedHandshake, start, "a record does not open")
        : refuse(.keyNotProven, start, "the flight does not open with this secret")
    }
    switch record.type {
    case ContentType.handshake: break
    case ContentType.alert:
      return refuse(.upstreamUnreachable, start, "an encrypted alert inside the flight")
    default: return refuse(.malformedHandshake, start, "a record of another type inside the flight")
    }
    opened.append((messageBytes, start + 5))
    messageBytes += record.content.count
    switch reader.receive(record.content.span) {
    case .incomplete: return
    case .refused(let refusal):
      answer = .refused(refusal.moved(to: streamOffset(ofMessageByte: refusal.offset)))
    case .flight(let flight):
      switch judge.judge(flight, end: base + next) {
      case .holds(let facts): answer = .flight(facts)
      case .refused(let refusal): answer = .refused(refusal.moved(to: streamOffset(ofMessageByte: refusal.offset)))
      }
    }
  }

  /// Where a decrypted byte lies in the server's stream: the ciphers here keep positions.
  private func streamOffset(ofMessageByte index: Int) -> Int {
    guard let record = opened.last(where: { $0.message <= index }) else { return base }
    return record.stream + index - record.message
  }

  private func refuse(_ reason: Reason, _ offset: Int, _ detail: StaticString) {
    answer = .refused(HandshakeRefusal(reason, at: offset, detail))
  }
}
