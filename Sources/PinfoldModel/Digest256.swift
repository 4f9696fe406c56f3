/// A SHA-256 digest: 32 bytes held inline, compared in constant time.
package struct Digest256: Hashable, Sendable {
  /// Number of bytes.
  package static let byteCount = 32

  private var words: (UInt64, UInt64, UInt64, UInt64)

  /// Takes exactly 32 bytes; `nil` for any other count.
  package init?(_ bytes: some Collection<UInt8>) { self.init(Array(bytes)[...]) }

  /// Takes exactly 32 bytes where they lie; `nil` for any other count.
  package init?(_ bytes: ArraySlice<UInt8>) {
    guard bytes.count == Self.byteCount else { return nil }
    var packed: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    var index = 0
    for byte in bytes {
      switch index >> 3 {
      case 0: packed.0 = packed.0 << 8 | UInt64(byte)
      case 1: packed.1 = packed.1 << 8 | UInt64(byte)
      case 2: packed.2 = packed.2 << 8 | UInt64(byte)
      default: packed.3 = packed.3 << 8 | UInt64(byte)
      }
      index += 1
    }
    words = packed
  }

  /// Takes 32 bytes held inline: what a hash function has just written.
  package init(_ bytes: [32 of UInt8]) {
    func word(_ start: Int) -> UInt64 {
      var value: UInt64 = 0
      for index in start..<start + 8 { value = value << 8 | UInt64(bytes[index]) }
      return value
    }
    words = (word(0), word(8), word(16), word(24))
  }

  /// The 32 bytes, first byte first.
  package var bytes: [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(Self.byteCount)
    for word in [words.0, words.1, words.2, words.3] {
      for shift in stride(from: 56, through: 0, by: -8) {
        result.append(UInt8(truncatingIfNeeded: word >> UInt64(shift)))
      }
    }
    return result
  }

  /// Lower-case hexadecimal, 64 digits.
  package var hex: String { Hex.encode(bytes) }
  /// Standard base64 with padding, 44 characters: the form of RFC 7469.
  package var base64: String { Base64.encode(bytes) }

  /// Constant time in the contents.
  package static func == (left: Self, right: Self) -> Bool {
    let difference =
      (left.words.0 ^ right.words.0) | (left.words.1 ^ right.words.1) | (left.words.2 ^ right.words.2)
      | (left.words.3 ^ right.words.3)
    return difference == 0
  }

  package func hash(into hasher: inout Hasher) {
    // A digest is uniform already; the hasher's own seed keeps buckets unpredictable.
    hasher.combine(words.0)
    hasher.combine(words.1)
  }
}
