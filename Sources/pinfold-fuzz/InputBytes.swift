/// Takes fields off the front of an input. What is not there is empty, so that every input means something.
struct InputBytes {
  private(set) var rest: ArraySlice<UInt8>

  init(_ bytes: [UInt8]) {
    rest = bytes[...]
  }

  /// Up to `count` bytes.
  mutating func take(_ count: Int) -> [UInt8] {
    defer { rest = rest.dropFirst(count) }
    return Array(rest.prefix(count))
  }

  /// A byte; 0 where there is none.
  mutating func byte() -> UInt8 { take(1).first ?? 0 }

  /// Sixteen bits, most significant byte first.
  mutating func number() -> Int { Int(byte()) << 8 | Int(byte()) }

  /// Bytes behind their 16-bit count.
  mutating func counted() -> [UInt8] { take(number()) }

  /// The other direction of `counted`.
  static func counted(_ bytes: [UInt8]) -> [UInt8] {
    [UInt8(truncatingIfNeeded: bytes.count >> 8), UInt8(truncatingIfNeeded: bytes.count)] + bytes
  }
}

extension [UInt8] {
  /// The bytes in pieces of `size`, the last one shorter.
  func pieces(of size: Int) -> [[UInt8]] {
    stride(from: 0, to: count, by: size).map { Array(self[$0..<Swift.min($0 + size, count)]) }
  }
}
