/// A number of at most 256 bits: one half of a P-256 signature.
struct Scalar: Equatable, Sendable {
  /// 64 bits each, lowest first.
  var words: (UInt64, UInt64, UInt64, UInt64)

  /// The words, lowest first.
  init(_ first: UInt64, _ second: UInt64, _ third: UInt64, _ fourth: UInt64) {
    words = (first, second, third, fourth)
  }

  /// Digits, highest first; `nil` for more than 32.
  init?(_ digits: some Collection<UInt8>) {
    guard digits.count <= 32 else { return nil }
    self.init(0, 0, 0, 0)
    for digit in digits {
      words.3 = words.3 << 8 | words.2 >> 56
      words.2 = words.2 << 8 | words.1 >> 56
      words.1 = words.1 << 8 | words.0 >> 56
      words.0 = words.0 << 8 | UInt64(digit)
    }
  }

  /// 32 digits, highest first.
  var digits: [UInt8] {
    [words.3, words.2, words.1, words.0].flatMap { word in
      (0..<8).map { UInt8(truncatingIfNeeded: word >> UInt64(56 - 8 * $0)) }
    }
  }

  static func == (a: Scalar, b: Scalar) -> Bool { a.words == b.words }
}
