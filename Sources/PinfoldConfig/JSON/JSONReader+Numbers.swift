/// A number as it was written. What it means depends on who asks.
package enum JSONNumber: Hashable, Sendable {
  /// A whole number that fits.
  case integer(Int64)
  /// Any other finite number.
  case real(Double)
  /// `Infinity`, `NaN`, or beyond a double's range.
  case notFinite

  /// The value when it is a whole number of at most 53 bits, written as such or not (`1e3`).
  package var integer: Int64? {
    switch self {
    case .integer(let value): value
    case .real(let value): abs(value) < 9_007_199_254_740_992 ? Int64(exactly: value) : nil
    case .notFinite: nil
    }
  }

  /// The value; `nil` when it is not finite.
  package var real: Double? {
    switch self {
    case .integer(let value): Double(value)
    case .real(let value): value
    case .notFinite: nil
    }
  }
}

extension JSONReader {
  /// Reads a number: decimal, and in JSON5 also hexadecimal, with `+`, with a bare point, `Infinity` and `NaN`.
  package mutating func number() throws(JSONError) -> JSONNumber {
    let kind = try peek()
    guard kind == .number else { throw error("expected a number, found \(kind.rawValue)") }
    let start = position
    var isNegative = false
    if next == 0x2d || next == 0x2b {
      isNegative = next == 0x2d
      position += 1
    }
    if dialect == .json5 {
      if next == 0x49 {
        try word("Infinity")
        return .notFinite
      }
      if next == 0x4e {
        try word("NaN")
        return .notFinite
      }
      if next == 0x30, let letter = byte(after: 1), letter | 0x20 == 0x78 {
        return try hexadecimalNumber(isNegative: isNegative, start: start)
      }
    }
    return try decimal(isNegative: isNegative, start: start)
  }

  private mutating func hexadecimalNumber(isNegative: Bool, start: Int) throws(JSONError) -> JSONNumber {
    position += 2
    var value: UInt64 = 0
    var count = 0
    while let digit = next.flatMap(Self.hexadecimalValue) {
      guard value >> 59 == 0 else { throw error("a hexadecimal number of more than 63 bits", at: start) }
      value = value << 4 | UInt64(digit)
      count += 1
      position += 1
    }
    guard count > 0 else { throw error("\"0x\" needs hexadecimal digits", at: start) }
    try endNumber(start)
    let magnitude = Int64(truncatingIfNeeded: value)
    return .integer(isNegative ? -magnitude : magnitude)
  }

  private mutating func decimal(isNegative: Bool, start: Int) throws(JSONError) -> JSONNumber {
    let whole = digits()
    if whole.count > 1, whole.first == 0x30 { throw error("a number with a leading zero", at: start) }
    var fraction: ArraySlice<UInt8> = []
    var isWhole = true
    if next == 0x2e {
      isWhole = false
      position += 1
      fraction = digits()
      if dialect == .json, fraction.isEmpty { throw error("a number that ends in a point", at: start) }
    }
    guard !(whole.isEmpty && fraction.isEmpty), dialect == .json5 || !whole.isEmpty else {
      throw error("a number without digits", at: start)
    }
    var exponent = ""
    if let letter = next, letter | 0x20 == 0x65 {
      isWhole = false
      position += 1
      if next == 0x2b || next == 0x2d {
        exponent = next == 0x2d ? "-" : ""
        position += 1
      }
      let power = digits()
      guard !power.isEmpty else { throw error("an exponent without digits", at: start) }
      exponent += String(decoding: power, as: UTF8.self)
    }
    try endNumber(start)
    let sign = isNegative ? "-" : ""
    if isWhole, let value = Int64(sign + String(decoding: whole, as: UTF8.self)) { return .integer(value) }
    let text =
      sign + "0" + String(decoding: whole, as: UTF8.self) + "." + String(decoding: fraction, as: UTF8.self) + "0e"
      + (exponent.isEmpty ? "0" : exponent)
    guard let value = Double(text), value.isFinite else { return .notFinite }
    return .real(value)
  }

  private mutating func digits() -> ArraySlice<UInt8> {
    let start = position
    while let digit = next, digit >= 0x30, digit <= 0x39 { position += 1 }
    return bytes[start..<position]
  }

  private func endNumber(_ start: Int) throws(JSONError) {
    if runsOn || next == 0x2e {
      throw error("a number that runs on into \(found)", at: start)
    }
  }
}
