package import PinfoldModel

/// What the sealed cache keeps of a pin record: the bytes as received, when they came, and how new the newest record of
/// the domain was.
///
///     a byte 1 · received (8 bytes) · created (8 bytes) · the signer's id (8 ASCII digits) · the record's bytes
///
/// Times are seconds since 1970, most significant byte first. The record is verified again when it is read.
package struct CachedPins: Hashable, Sendable {
  private static let form: UInt8 = 1
  private static let headCount = 25

  /// When the bytes arrived.
  package var received: Timestamp
  /// How new the record is, by its own words.
  package var mark: PinMark
  /// The record, as received.
  package var bytes: [UInt8]

  /// How new the newest record was, without the record.
  init(mark: PinMark, at now: Timestamp) {
    received = now
    self.mark = mark
    bytes = []
  }

  init(_ held: HeldPins, mark: PinMark) {
    received = held.received
    self.mark = mark
    bytes = held.bytes
  }

  /// Reads the contents of a cache record; `nil` for anything but this form.
  package init?(_ contents: [UInt8]) {
    guard contents.count >= Self.headCount, contents[0] == Self.form else { return nil }
    func time(_ start: Int) -> Timestamp {
      let bits = contents[start..<start + 8].reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
      return Timestamp(seconds: Int64(bitPattern: bits))
    }
    received = time(1)
    mark = PinMark(created: time(9), keyID: String(decoding: contents[17..<25], as: UTF8.self))
    bytes = Array(contents[Self.headCount...])
  }

  /// The contents of a cache record.
  package var contents: [UInt8] {
    var result = [Self.form]
    for time in [received, mark.created] {
      let bits = UInt64(bitPattern: time.seconds)
      for shift in stride(from: 56, through: 0, by: -8) as StrideThrough<UInt64.Stride> {
        result.append(UInt8(truncatingIfNeeded: bits >> UInt64(shift)))
      }
    }
    result += Array((mark.keyID + "        ").utf8.prefix(8))
    return result + bytes
  }
}

/// How new the newest accepted record of a domain was, and whose signature said so. Nothing older is accepted while that
/// key is trusted; when it is not any more, what it signed counts for nothing.
package struct PinMark: Hashable, Sendable {
  /// When that record was made, and the id of the key that signed it.
  package var created: Timestamp
  package var keyID: String
}
