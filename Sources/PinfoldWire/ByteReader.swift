/// The one cursor over bytes of a peer. It borrows them and cannot outlive them.
///
/// Offsets count from wherever the owner of the bytes says (`at:`). A reader over a *whole* message answers a shortage
/// with `malformed`, because no byte that comes later can cure it; one over a growing buffer answers `incomplete`.
package struct ByteReader: ~Escapable {
  private let bytes: Span<UInt8>
  private var position = 0
  private let base: Int
  private let isWhole: Bool

  /// Reads `bytes`, whose first byte has the offset `at`.
  @_lifetime(copy bytes)
  package init(_ bytes: Span<UInt8>, at base: Int = 0, isWhole: Bool = true) {
    self.bytes = bytes
    self.base = base
    self.isWhole = isWhole
  }

  /// Offset of the next byte.
  package var offset: Int { base + position }

  /// Bytes not read yet.
  package var remaining: Int { bytes.count - position }

  /// Whether everything was read.
  package var isAtEnd: Bool { position == bytes.count }

  /// Throws unless `count` bytes are left.
  private func need(_ count: Int) throws(WireError) {
    guard count > remaining else { return }
    if isWhole { throw .malformed("a field runs past the end of what holds it", at: offset) }
    throw .incomplete(needed: count - remaining)
  }

  /// Reads a byte.
  @_lifetime(self: copy self)
  package mutating func u8() throws(WireError) -> UInt8 {
    try need(1)
    defer { position += 1 }
    return bytes[position]
  }

  /// Reads a 16-bit number, most significant byte first.
  @_lifetime(self: copy self)
  package mutating func u16() throws(WireError) -> UInt16 {
    try need(2)
    defer { position += 2 }
    return UInt16(bytes[position]) << 8 | UInt16(bytes[position + 1])
  }

  /// Reads a 24-bit length (RFC 8446 §4).
  @_lifetime(self: copy self)
  package mutating func u24() throws(WireError) -> Int {
    try need(3)
    defer { position += 3 }
    return Int(bytes[position]) << 16 | Int(bytes[position + 1]) << 8 | Int(bytes[position + 2])
  }

  /// Reads a 32-bit number, most significant byte first.
  @_lifetime(self: copy self)
  package mutating func u32() throws(WireError) -> UInt32 {
    let high = try u16()
    return UInt32(high) << 16 | UInt32(try u16())
  }

  /// Skips `count` bytes and answers where they lie.
  @_lifetime(self: copy self)
  package mutating func skip(_ count: Int) throws(WireError) -> Range<Int> {
    try need(count)
    defer { position += count }
    return offset..<(offset + count)
  }

  /// Copies `count` bytes.
  @_lifetime(self: copy self)
  package mutating func copy(_ count: Int) throws(WireError) -> [UInt8] {
    try need(count)
    defer { position += count }
    let part = bytes.extracting(position..<(position + count))
    return unsafe part.withUnsafeBufferPointer { unsafe Array($0) }
  }

  /// Reads a length of `width` (1–3) bytes.
  @_lifetime(self: copy self)
  private mutating func length(width: Int) throws(WireError) -> Int {
    switch width {
    case 1: Int(try u8())
    case 2: Int(try u16())
    default: try u24()
    }
  }

  /// Reads a vector whose length stands in front in `width` bytes (RFC 8446 §3.4) and answers where its content lies.
  @_lifetime(self: copy self)
  package mutating func vector(width: Int, atLeast minimum: Int = 0) throws(WireError) -> Range<Int> {
    let start = offset
    let count = try length(width: width)
    guard count >= minimum else { throw .malformed("a vector is shorter than the protocol allows", at: start) }
    return try skip(count)
  }

  /// Reads a vector whose length stands in front in `width` bytes and lends a reader over its content.
  @_lifetime(copy self)
  @_lifetime(self: copy self)
  package mutating func nested(width: Int, atLeast minimum: Int = 0) throws(WireError) -> ByteReader {
    reader(over: try vector(width: width, atLeast: minimum))
  }

  /// Lends a reader over a range that was read: one that this reader answered.
  @_lifetime(copy self)
  package func reader(over range: Range<Int>) -> ByteReader {
    ByteReader(bytes.extracting((range.lowerBound - base)..<(range.upperBound - base)), at: range.lowerBound)
  }

  /// Reads a vector of 16-bit numbers whose length in bytes stands in front in `width` bytes; it may not be empty.
  @_lifetime(self: copy self)
  package mutating func u16List(width: Int) throws(WireError) -> [UInt16] {
    var list = try nested(width: width, atLeast: 2)
    guard list.remaining.isMultiple(of: 2) else {
      throw .malformed("a list of 16-bit values has an odd length", at: list.offset)
    }
    var values: [UInt16] = []
    values.reserveCapacity(list.remaining / 2)
    while !list.isAtEnd { values.append(try list.u16()) }
    return values
  }

  /// Throws unless everything was read: trailing bytes are refused at every level.
  package func finish() throws(WireError) {
    guard isAtEnd else { throw .malformed("bytes lie behind the last field", at: offset) }
  }
}
