/// Watches the rest of a TLS 1.0–1.2 handshake, behind the verdict on it, for the session it makes: its id from the
/// ServerHello, and the ticket that the server sends in the clear before its ChangeCipherSpec (RFC 5077 §3.3).
///
///     client, full:     clear ──▶ changed ──▶ finished ──▶ data
///     client, resumed:  clear ──▶ changed ──▶ finished ──▶ data
///     server, full:     clear ──▶ changed ──▶ finished
///     server, resumed:                        finished
///
/// Neither id nor ticket is authenticated until the client has checked the server's Finished. A session is learnt only
/// when the client sends application data behind it, which no client does that found it wrong. A client that sends data
/// ahead of it (False Start, RFC 7918) says nothing by that, and is not learnt from.
///
/// Only watches: whatever is strange ends the watch, and the bytes go their way in any case. Holds at most
/// `WireLimits.sessionTicketFlight` bytes, and of the client none but a record's header.
package struct SessionWatch: Sendable {
  /// The names under which a client can ask for the session again; one of them may be empty.
  package struct Session: Equatable, Sendable {
    /// The id of the ServerHello.
    package let sessionID: [UInt8]
    /// The ticket.
    package let ticket: [UInt8]

    /// A session under these names.
    package init(sessionID: [UInt8], ticket: [UInt8]) {
      self.sessionID = sessionID
      self.ticket = ticket
    }
  }

  /// What the bytes so far amount to; all but `watching` stays.
  package enum State: Equatable, Sendable {
    /// More bytes are wanted.
    case watching
    /// The client has accepted the session.
    case learnt(Session)
    /// Nothing can be learnt here.
    case abandoned
  }

  private enum Phase {
    case clear, changed, finished
  }

  /// What the bytes so far amount to.
  package private(set) var state = State.watching

  private let sessionID: [UInt8]
  private let promisesTicket: Bool
  private let isFull: Bool
  private let version: UInt16
  private var ticket: [UInt8]?
  private var serverPhase: Phase
  private var clientPhase = Phase.clear
  private var server = RecordStream(base: 0, limit: WireLimits.sessionTicketFlight)
  private var clientRecords = RecordSteps()

  /// Watches behind a full handshake's ServerHelloDone; `nil` when the server offers no session.
  ///
  /// - Parameter client: the hello it answers. An id that only repeats the client's names no session of the server's.
  package init?(behind flight: ServerFlight, answering client: ClientHello) {
    let hello = flight.serverHello
    let isFresh = hello.sessionID != client.sessionID
    guard hello.promisesTicket || (isFresh && !hello.sessionID.isEmpty) else { return nil }
    sessionID = isFresh ? Array(hello.sessionID) : []
    promisesTicket = hello.promisesTicket
    isFull = true
    version = hello.version
    serverPhase = .clear
  }

  /// Watches behind a resumed handshake's Finished of the server; `nil` when it brought no fresh ticket.
  package init?(behind resumed: ResumedHandshake) {
    guard let ticket = resumed.newTicket, !ticket.isEmpty else { return nil }
    self.ticket = ticket
    sessionID = []
    promisesTicket = true
    isFull = false
    version = resumed.serverHello.version
    serverPhase = .finished
  }

  // MARK: The server

  /// Takes bytes of the server that are about to go to the client. What the client sent before has to be taken first.
  package mutating func receive(server bytes: Span<UInt8>) -> State {
    guard state == .watching, serverPhase != .finished, !bytes.isEmpty else { return state }
    // RFC 5246 §7.3: in a full handshake the server waits for the client's Finished.
    guard clientPhase == .finished, clientRecords.isBetweenRecords else { return abandon() }
    let fits = server.append(bytes)
    do throws(WireError) {
      while serverPhase != .finished, let record = try nextRecord() { try take(record) }
    } catch {
      return abandon()
    }
    guard serverPhase == .finished else { return fits ? state : abandon() }
    server = RecordStream(base: 0, limit: 0)
    return sessionID.isEmpty && (ticket ?? []).isEmpty ? abandon() : state
  }

  private mutating func nextRecord() throws(WireError) -> TLSRecord? {
    try server.record(
      longest: serverPhase == .clear ? WireLimits.plaintextRecord : WireLimits.protectedRecord12)
  }

  private mutating func take(_ record: TLSRecord) throws(WireError) {
    guard record.version == version else { throw .malformed("a record of another version", at: 0) }
    switch (serverPhase, record.type) {
    case (.clear, ContentType.handshake):
      server.consume(record)
      while let range = server.message() { try takeMessage(range) }
    case (.clear, ContentType.changeCipherSpec)
    where record.payload.count == 1 && server.raw[record.payload.lowerBound] == 1 && !server.isInsideMessage
      && (ticket != nil) == promisesTicket:
      serverPhase = .changed
    case (.changed, ContentType.handshake):
      serverPhase = .finished
    default:
      throw .malformed("a record out of order", at: 0)
    }
  }

  private mutating func takeMessage(_ range: Range<Int>) throws(WireError) {
    guard server.handshake[range.lowerBound] == HandshakeType.newSessionTicket, promisesTicket, ticket == nil else {
      throw .malformed("a handshake message out of order", at: range.lowerBound)
    }
    let body = (range.lowerBound + 4)..<range.upperBound
    let handshake = server.handshake
    var reader = ByteReader(handshake.span.extracting(body), at: body.lowerBound)
    _ = try reader.u32()
    ticket = Array(handshake[try reader.vector(width: 2)])
    try reader.finish()
  }

  // MARK: The client

  /// Takes bytes of the client, in the order in which they came.
  package mutating func receive(client bytes: Span<UInt8>) -> State {
    guard state == .watching else { return state }
    var index = 0
    while state == .watching, let header = clientRecords.next(in: bytes, at: &index) {
      take(header)
    }
    return state
  }

  private mutating func take(_ header: RecordSteps.Header) {
    guard header.version == version, header.length > 0, header.length <= WireLimits.protectedRecord12 else {
      return state = .abandoned
    }
    switch (clientPhase, header.type) {
    case (.clear, ContentType.handshake) where isFull:
      if clientRecords.count > Self.clearRecordLimit { state = .abandoned }
    case (.clear, ContentType.changeCipherSpec) where header.length == 1 && (clientRecords.count > 1) == isFull:
      clientPhase = .changed
    case (.changed, ContentType.handshake):
      clientPhase = .finished
    case (.finished, ContentType.applicationData) where serverPhase == .finished:
      state = .learnt(Session(sessionID: sessionID, ticket: ticket ?? []))
    default:
      state = .abandoned
    }
  }

  /// Records of the client's second flight before its ChangeCipherSpec: three messages, one of them a certificate
  /// list, which takes a few records of 16 KiB at most.
  private static let clearRecordLimit = 64

  /// Ends the watch without a session, whatever it had come to.
  @discardableResult package mutating func abandon() -> State {
    state = .abandoned
    server = RecordStream(base: 0, limit: 0)
    return state
  }
}

/// Steps over the records of one direction without keeping their content.
struct RecordSteps: Sendable {
  struct Header {
    let type: UInt8
    let version: UInt16
    /// Bytes of content.
    let length: Int
  }

  /// Headers seen.
  private(set) var count = 0
  private var header: [UInt8] = []
  private var left = 0

  /// Whether the last record that has begun is whole.
  var isBetweenRecords: Bool { left == 0 && header.isEmpty }

  /// The next header that is whole, looked for from `index` on, which moves behind what was read.
  mutating func next(in bytes: Span<UInt8>, at index: inout Int) -> Header? {
    while index < bytes.count {
      if left > 0 {
        let step = min(left, bytes.count - index)
        left -= step
        index += step
        continue
      }
      header.append(bytes[index])
      index += 1
      guard header.count == 5 else { continue }
      defer { header.removeAll(keepingCapacity: true) }
      left = Int(header[3]) << 8 | Int(header[4])
      count += 1
      return Header(type: header[0], version: UInt16(header[1]) << 8 | UInt16(header[2]), length: left)
    }
    return nil
  }
}
