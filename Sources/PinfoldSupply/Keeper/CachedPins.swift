package import PinfoldModel

/// What the sealed cache keeps of a pin record: the bytes as received, when they came, and how new the newest
/// record of its place was.
///
///     a byte 2 · received (8 bytes) · created (8 bytes) · the record's bytes
///
/// Times are seconds since 1970, most significant byte first; for `created` the lowest number stands for none. The record
/// is verified again when it is read.
package struct CachedPins: Hashable, Sendable {
  private static let form: UInt8 = 2
  private static let headCount = 17
  private static let noTime = Timestamp(seconds: .min)

  /// When the bytes arrived.
  package var received: Timestamp
  /// When the newest record of this signer and domain was made, by its own words; `nil` while none had a date. Nothing
  /// older is accepted while that key is trusted; when it is not any more, what it signed counts for nothing.
  package var newest: Timestamp?
  /// The record, as received.
  package var bytes: [UInt8]

  /// How new the newest record was, without the record.
  init(newest: Timestamp?, at now: Timestamp) {
    received = now
    self.newest = newest
    bytes = []
  }

  init(_ held: HeldPins, newest: Timestamp?) {
    received = held.received
    self.newest = newest
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
    newest = time(9) == Self.noTime ? nil : time(9)
    bytes = Array(contents[Self.headCount...])
  }

  /// When a record of the cache came, in seconds, if it guards nothing and may make room: it has no date, or its signer is
  /// none of these. `nil` for one that has to stay.
  package static func spareAge(_ record: SealedCache.Record, trusting signers: Set<PinSigner>) -> Int64? {
    guard let cached = CachedPins(record.contents) else { return .min }
    let isTrusted = signers.contains { record.name.hasPrefix("\($0.text) ") }
    return isTrusted && cached.newest != nil ? nil : cached.received.seconds
  }

  /// The contents of a cache record.
  package var contents: [UInt8] {
    var result = [Self.form]
    for time in [received, newest ?? Self.noTime] {
      let bits = UInt64(bitPattern: time.seconds)
      for shift in stride(from: 56, through: 0, by: -8) as StrideThrough<UInt64.Stride> {
        result.append(UInt8(truncatingIfNeeded: bits >> UInt64(shift)))
      }
    }
    return result + bytes
  }
}
