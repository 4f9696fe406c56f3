/// One record of the stream, by raw index.
struct TLSRecord {
  let type: UInt8
  let version: UInt16
  /// Indexes into `RecordStream.raw`.
  let payload: Range<Int>
}

/// Bytes of one direction, cut into records, with the handshake messages put together again.
///
/// `raw` keeps everything received since `base`; `handshake` the content of the handshake records consumed so far. A
/// record is consumed when it is whole, so that what comes out does not depend on how the bytes were cut.
struct RecordStream {
  /// Everything received, from stream offset `base` on.
  private(set) var raw: [UInt8] = []
  /// Stream offset of `raw[0]`.
  let base: Int
  /// Raw index of the next record header.
  private(set) var next = 0
  /// Content of the handshake records consumed.
  private(set) var handshake: [UInt8] = []
  /// Index into `handshake` of the next message.
  private(set) var messageStart = 0
  /// Most bytes `raw` may hold.
  private let limit: Int

  init(base: Int, limit: Int) {
    self.base = base
    self.limit = limit
  }

  /// Stream offset behind the last consumed record.
  var consumedEnd: Int { base + next }

  /// Stream offset behind the last byte received.
  var receivedEnd: Int { base + raw.count }

  /// Whether a message has begun and is not whole.
  var isInsideMessage: Bool { messageStart < handshake.count }

  /// Takes as many bytes as the limit allows, and says whether that was all of them.
  mutating func append(_ bytes: Span<UInt8>) -> Bool {
    let part = bytes.extracting(first: min(bytes.count, limit - raw.count))
    unsafe part.withUnsafeBufferPointer { unsafe raw.append(contentsOf: $0) }
    return part.count == bytes.count
  }

  /// The first byte of the next record, once it is there.
  var nextType: UInt8? { next < raw.count ? raw[next] : nil }

  /// The next record once it is whole, and steps over it. The header is judged as soon as its five bytes are there.
  ///
  /// - Parameter longest: bytes of content allowed (RFC 8446 §5.1: empty fragments of handshake, alert and
  ///   ChangeCipherSpec are not).
  mutating func record(longest: Int) throws(WireError) -> TLSRecord? {
    guard raw.count - next >= 5 else { return nil }
    let version = UInt16(raw[next + 1]) << 8 | UInt16(raw[next + 2])
    let length = Int(raw[next + 3]) << 8 | Int(raw[next + 4])
    let start = base + next
    guard (ContentType.changeCipherSpec...ContentType.applicationData).contains(raw[next]) else {
      throw .malformed("a record has an unknown type", at: start)
    }
    guard version >> 8 == 3, version <= TLSVersion.tls12 else {
      throw .malformed("a record has an unknown version", at: start + 1)
    }
    guard length > 0 else { throw .malformed("a record is empty", at: start + 3) }
    guard length <= longest else { throw .malformed("a record is longer than the protocol allows", at: start + 3) }
    guard raw.count - next >= 5 + length else { return nil }
    defer { next += 5 + length }
    return TLSRecord(type: raw[next], version: version, payload: (next + 5)..<(next + 5 + length))
  }

  /// Adds the content of a handshake record to the messages.
  mutating func consume(_ record: TLSRecord) {
    handshake.append(contentsOf: raw[record.payload])
  }

  /// Type and length of the message that has begun, once its header is whole.
  var messageHeader: (type: UInt8, length: Int)? {
    guard handshake.count - messageStart >= 4 else { return nil }
    let length =
      Int(handshake[messageStart + 1]) << 16 | Int(handshake[messageStart + 2]) << 8
      | Int(handshake[messageStart + 3])
    return (handshake[messageStart], length)
  }

  /// The next message with its header, once it is whole, as a range of `handshake`; steps over it.
  mutating func message() -> Range<Int>? {
    guard let header = messageHeader, handshake.count - messageStart - 4 >= header.length else { return nil }
    let range = messageStart..<(messageStart + 4 + header.length)
    messageStart = range.upperBound
    return range
  }

  /// Where a byte of `handshake` came in: walks the records again, which only a refusal does.
  func streamOffset(ofMessageByte index: Int) -> Int {
    var left = index
    var position = 0
    while position + 5 <= next {
      let length = Int(raw[position + 3]) << 8 | Int(raw[position + 4])
      if raw[position] == ContentType.handshake {
        // The byte behind the last one belongs to the end of its record, not to a record that has not come.
        if left < length || (left == length && position + 5 + length >= next) { return base + position + 5 + left }
        left -= length
      }
      position += 5 + length
    }
    return consumedEnd
  }

  /// The error with its message offset turned into a stream offset.
  func located(_ error: WireError, from start: Int = 0) -> WireError {
    switch error {
    case .malformed(let text, let offset): .malformed(text, at: streamOffset(ofMessageByte: start + offset))
    case .refused(let reason, let text, let offset):
      .refused(reason, text, at: streamOffset(ofMessageByte: start + offset))
    case .incomplete: error
    }
  }

  /// A copy of what was received between two stream offsets, cut to what is there.
  func bytes(_ range: Range<Int>) -> ArraySlice<UInt8> {
    let range = range.clamped(to: base..<receivedEnd)
    return raw[(range.lowerBound - base)..<(range.upperBound - base)]
  }
}
