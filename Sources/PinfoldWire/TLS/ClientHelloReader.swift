import PinfoldModel

/// Puts a ClientHello together from bytes in any cut.
///
///     reading ── receive ──▶ reading | done(hello) | done(refused)
///
/// A second hello, after a HelloRetryRequest, is read by a reader made with `after:`. An answer, once given, stays.
package struct ClientHelloReader: Sendable {
  /// What the bytes so far amount to.
  package enum Event: Sendable {
    /// More bytes are wanted.
    case incomplete
    /// The hello is whole. Bytes behind `hello.end` stay in `surplus`.
    case hello(ClientHello)
    /// It cannot be let through.
    case refused(HandshakeRefusal)
  }

  private var stream: RecordStream
  private let first: ClientHello?
  private var answer = Event.incomplete
  private var isDone = false
  private var hello: (start: Int, version: UInt16, count: Int)?
  private var dropped: [Range<Int>] = []
  private var changeCipherSpec: Range<Int>?

  /// Reads the first hello of a tunnel, from stream offset 0.
  package init() {
    first = nil
    stream = RecordStream(base: 0, limit: WireLimits.helloRecords)
  }

  /// Reads the hello that answers a HelloRetryRequest, from stream offset `first.end`: begin with the `surplus` of the
  /// first reader. 0-RTT records in between are dropped and reported, if the first hello announced them; one
  /// ChangeCipherSpec is kept (RFC 8446 appendix D.4).
  package init(after first: ClientHello) {
    self.first = first
    stream = RecordStream(base: first.end, limit: WireLimits.helloRecords + WireLimits.earlyData)
  }

  /// Bytes received behind what the hello used: they belong to whatever comes next.
  package var surplus: ArraySlice<UInt8> { stream.bytes(stream.consumedEnd..<stream.receivedEnd) }

  /// Takes bytes and answers what all bytes so far amount to.
  package mutating func receive(_ bytes: Span<UInt8>) -> Event {
    if case .refused = answer { return answer }
    // No byte may get lost: what does not fit is a refusal, even behind a hello that was read well.
    let fits = stream.append(bytes)
    if !isDone {
      do throws(WireError) {
        if let hello = try advance() { answer = .hello(hello) }
      } catch {
        answer = .refused(HandshakeRefusal(error))
      }
      if case .incomplete = answer {} else { isDone = true }
      if case .refused = answer { return answer }
    }
    guard fits else {
      isDone = true
      answer = .refused(
        HandshakeRefusal(.helloTooLarge, at: stream.receivedEnd, "more bytes than a hello may have came at once"))
      return answer
    }
    return answer
  }

  private mutating func advance() throws(WireError) -> ClientHello? {
    if first == nil { try checkFirstBytes() }
    while let record = try stream.record(longest: longest) {
      let start = stream.base + record.payload.lowerBound - 5
      switch record.type {
      case ContentType.handshake:
        if hello == nil { hello = (start, record.version, 0) }
        hello?.count += 1
        stream.consume(record)
        if let range = try message() { return try parse(range) }
      case ContentType.changeCipherSpec:
        try takeChangeCipherSpec(record, at: start)
      case ContentType.applicationData:
        guard let first, first.offersEarlyData, hello == nil else {
          throw .malformed("application data before the hello is whole", at: start)
        }
        dropped.append(start..<stream.consumedEnd)
      default:
        throw .malformed("an alert instead of a hello", at: start)
      }
    }
    return nil
  }

  /// Longest content of the next record: only 0-RTT records are protected.
  private var longest: Int {
    stream.nextType == ContentType.applicationData ? WireLimits.protectedRecord13 : WireLimits.plaintextRecord
  }

  /// Tells other protocols apart by the first bytes, as soon as they say enough.
  private func checkFirstBytes() throws(WireError) {
    guard let type = stream.raw.first else { return }
    if type & 0x80 != 0 {
      guard stream.raw.count >= 3 else { return }
      if stream.raw[2] == HandshakeType.clientHello { throw .refused(.notTLS, "an SSL 2.0 hello", at: 0) }
    }
    guard type == ContentType.handshake else { throw .refused(.notTLS, "the client does not speak TLS", at: 0) }
    guard stream.raw.count >= 2 else { return }
    if stream.raw[1] == 0xfe { throw .refused(.notTLS, "a DTLS record on a stream", at: 1) }
    guard stream.raw[1] == 3 else { throw .refused(.notTLS, "the client does not speak TLS", at: 1) }
  }

  private mutating func takeChangeCipherSpec(_ record: TLSRecord, at start: Int) throws(WireError) {
    guard first != nil, hello == nil, changeCipherSpec == nil else {
      throw .malformed("a ChangeCipherSpec where none may be", at: start)
    }
    guard record.payload.count == 1, stream.raw[record.payload.lowerBound] == 1 else {
      throw .malformed("a ChangeCipherSpec that is not the byte 1", at: start + 5)
    }
    changeCipherSpec = start..<stream.consumedEnd
  }

  /// The whole message. Type and length are judged as soon as the header is there.
  private mutating func message() throws(WireError) -> Range<Int>? {
    guard let header = stream.messageHeader else { return nil }
    guard header.type == HandshakeType.clientHello else {
      throw .malformed("the first message is not a ClientHello", at: stream.streamOffset(ofMessageByte: 0))
    }
    guard header.length <= WireLimits.helloMessage else {
      throw .refused(.helloTooLarge, "the hello is too large", at: stream.streamOffset(ofMessageByte: 1))
    }
    return stream.message()
  }

  private func parse(_ range: Range<Int>) throws(WireError) -> ClientHello {
    guard !stream.isInsideMessage else {
      let offset = stream.streamOffset(ofMessageByte: range.upperBound)
      throw .malformed("bytes lie behind the hello in its record", at: offset)
    }
    let parsed: ClientHello
    do throws(WireError) {
      parsed = try ClientHello(message: stream.handshake)
    } catch {
      throw stream.located(error)
    }
    guard let hello else { return parsed }
    parsed.start = hello.start
    parsed.recordVersion = hello.version
    parsed.recordCount = hello.count
    parsed.end = stream.consumedEnd
    parsed.records = Array(stream.bytes(parsed.start..<parsed.end))
    parsed.droppedEarlyData = dropped
    parsed.changeCipherSpec = changeCipherSpec
    return parsed
  }
}
