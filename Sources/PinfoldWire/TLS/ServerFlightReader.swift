import PinfoldModel

/// Reads the server's answer to a ClientHello from bytes in any cut, and holds every byte until it is asked for.
///
///     hello ──▶ flight ──▶ done          TLS 1.0–1.2, full
///     hello ──▶ resumed ─▶ done          TLS 1.0–1.2, abbreviated
///     hello ──▶ done                     TLS 1.3, an alert, a refusal
///     hello ──▶ retried ──▶ hello        a HelloRetryRequest, until `secondHello` comes
///
/// An answer other than `incomplete` and `helloRetryRequest` stays; later bytes are only held. Bytes beyond
/// `WireLimits.heldFlight` turn every answer into a refusal. Nothing here allows anything: the caller judges.
package struct ServerFlightReader: Sendable {
  /// What the bytes so far amount to.
  package enum Event: Sendable {
    /// More bytes are wanted.
    case incomplete
    /// A full handshake of TLS 1.0–1.2 up to ServerHelloDone.
    case tls12Flight(ServerFlight)
    /// An abbreviated handshake of TLS 1.0–1.2 up to the encrypted Finished.
    case tls12Resumed(ResumedHandshake)
    /// A TLS 1.3 ServerHello; behind its `end` everything is encrypted.
    case tls13(ServerHello)
    /// A HelloRetryRequest, which passes to the client up to its `end`. Go on with `secondHello(_:)`.
    case helloRetryRequest(ServerHello)
    /// A fatal alert instead of a ServerHello: it passes to the client up to `end`.
    case fatalAlert(code: UInt8, end: Int)
    /// A suite in which the server shows no certificate: anonymous, or a shared key alone.
    case noCertificate(ServerHello)
    /// It cannot be let through.
    case refused(HandshakeRefusal)
  }

  enum Phase {
    case hello
    case retried
    case flight
    case resumed
    case done
  }

  var stream: RecordStream
  var client: ClientHello
  var phase = Phase.hello
  var retry: ServerHello?
  var hello: ServerHello?
  var helloVersion: UInt16?
  var hasWarning = false
  var flight = FlightParts()
  var ticket: [UInt8]?
  var hasChangedCipher = false
  var hasCompatibilityRecord = false
  private var answer = Event.incomplete

  /// Reads the answer to this hello, from the server's first byte on.
  package init(answering client: ClientHello) {
    self.client = client
    stream = RecordStream(base: 0, limit: WireLimits.heldFlight)
  }

  /// Stream offset behind the last byte received.
  package var receivedEnd: Int { stream.receivedEnd }

  /// Held bytes between two offsets of the server's stream, cut to what was received.
  package func held(_ range: Range<Int>) -> ArraySlice<UInt8> { stream.bytes(range) }

  /// Takes bytes and answers what all bytes so far amount to.
  package mutating func receive(_ bytes: Span<UInt8>) -> Event {
    if case .refused = answer { return answer }
    let fits = stream.append(bytes)
    advance()
    if !fits, !isRefused {
      refuse(.refused(.malformedHandshake, "more bytes than may be held", at: stream.receivedEnd))
    }
    return answer
  }

  /// Goes on after a HelloRetryRequest with the hello the client sent then. Without one, nothing changes.
  package mutating func secondHello(_ hello: ClientHello) -> Event {
    guard phase == .retried else { return answer }
    client = hello
    phase = .hello
    answer = .incomplete
    advance()
    return answer
  }

  private var isRefused: Bool {
    if case .refused = answer { true } else { false }
  }

  private mutating func refuse(_ error: WireError) {
    phase = .done
    answer = .refused(HandshakeRefusal(error))
  }

  private mutating func advance() {
    guard phase != .done, phase != .retried else { return }
    do throws(WireError) {
      if let event = try nextEvent() {
        if case .helloRetryRequest = event { phase = .retried } else { phase = .done }
        answer = event
      }
    } catch {
      refuse(error)
    }
  }

  private mutating func nextEvent() throws(WireError) -> Event? {
    try checkFirstBytes()
    while true {
      while let range = try message() {
        if let event = try take(range) { return event }
      }
      guard let record = try stream.record(longest: longest) else { return nil }
      if let event = try take(record) { return event }
    }
  }

  /// Longest content of the next record: only the Finished behind a ChangeCipherSpec is protected.
  private var longest: Int { hasChangedCipher ? WireLimits.protectedRecord12 : WireLimits.plaintextRecord }

  /// Tells other protocols apart by the first bytes, as soon as they say enough.
  private func checkFirstBytes() throws(WireError) {
    guard stream.next == 0, let type = stream.raw.first else { return }
    guard type == ContentType.handshake || type == ContentType.alert else {
      throw .refused(.notTLS, "the server does not speak TLS", at: 0)
    }
    guard stream.raw.count >= 2, stream.raw[1] != 3 else { return }
    throw .refused(.notTLS, "the server does not speak TLS", at: 1)
  }

  /// The next whole message. Type and length are judged as soon as the header is there.
  private mutating func message() throws(WireError) -> Range<Int>? {
    guard let header = stream.messageHeader else { return nil }
    let start = stream.messageStart
    guard header.length <= WireLimits.serverMessage else {
      throw .malformed("a handshake message is too long", at: stream.streamOffset(ofMessageByte: start + 1))
    }
    guard expects(header.type) else {
      throw .malformed("a handshake message out of order", at: stream.streamOffset(ofMessageByte: start))
    }
    return stream.message()
  }

  private mutating func take(_ record: TLSRecord) throws(WireError) -> Event? {
    let start = stream.base + record.payload.lowerBound - 5
    guard record.type == ContentType.handshake || !stream.isInsideMessage else {
      throw .malformed("a record of another type inside a handshake message", at: start)
    }
    // RFC 5246 §6.2.1: once the version is known, records carry it. Alerts have always been sent as they come.
    if let hello, hello.version != TLSVersion.tls13, record.type != ContentType.alert {
      guard record.version == hello.version else {
        throw .malformed("a record is not of the version agreed on", at: start + 1)
      }
    }
    switch record.type {
    case ContentType.handshake where hasChangedCipher: return .tls12Resumed(try resumed())
    case ContentType.handshake:
      if hello == nil, helloVersion == nil { helloVersion = record.version }
      stream.consume(record)
      return nil
    case ContentType.alert: return try takeAlert(record, at: start)
    case ContentType.changeCipherSpec:
      try takeChangeCipherSpec(record, at: start)
      return nil
    default: throw .malformed("application data inside the handshake", at: start)
    }
  }

  /// Alerts in the clear (RFC 5246 §7.2): one `unrecognized_name` warning may stand before the ServerHello (RFC 6066 §3).
  private mutating func takeAlert(_ record: TLSRecord, at start: Int) throws(WireError) -> Event? {
    guard record.payload.count == 2 else { throw .malformed("an alert that is not two bytes long", at: start + 3) }
    let level = stream.raw[record.payload.lowerBound]
    let code = stream.raw[record.payload.lowerBound + 1]
    switch (level, code) {
    case (1, 0): throw .refused(.upstreamUnreachable, "the server closed instead of finishing its flight", at: start)
    case (1, 112) where phase == .hello && !hasWarning && retry == nil:
      hasWarning = true
      return nil
    case (2, _) where phase == .hello: return .fatalAlert(code: code, end: stream.consumedEnd)
    case (2, _): throw .refused(.upstreamUnreachable, "a fatal alert inside the flight", at: start)
    default: throw .malformed("an alert that may not stand here", at: start + 5)
    }
  }
}
