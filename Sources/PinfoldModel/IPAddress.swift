/// An IPv4 or IPv6 address.
package enum IPAddress: Hashable, Sendable {
  /// Four bytes, most significant first.
  case v4(UInt32)
  /// Sixteen bytes as two words, most significant first. Zone identifiers are not taken.
  case v6(high: UInt64, low: UInt64)

  /// Reads dotted-decimal IPv4 (four parts, no leading zeros) or RFC 4291 §2.2 IPv6; `nil` for anything else.
  package init?(_ text: some StringProtocol) {
    let bytes = Array(text.utf8)
    if bytes.contains(0x3a) {
      guard let groups = Self.groups(bytes) else { return nil }
      var high: UInt64 = 0
      var low: UInt64 = 0
      for index in 0..<4 {
        high = high << 16 | UInt64(groups[index])
        low = low << 16 | UInt64(groups[index + 4])
      }
      self = .v6(high: high, low: low)
    } else {
      guard let value = Self.dotted(bytes[...]) else { return nil }
      self = .v4(value)
    }
  }

  private static func dotted(_ bytes: ArraySlice<UInt8>) -> UInt32? {
    // Most of what is asked is a name: told apart without allocating.
    guard let first = bytes.first, first >= 0x30, first <= 0x39, bytes.count <= 15 else { return nil }
    let parts = bytes.split(separator: 0x2e, omittingEmptySubsequences: false)
    guard parts.count == 4 else { return nil }
    var result: UInt32 = 0
    for part in parts {
      guard (1...3).contains(part.count), part.count == 1 || part.first != 0x30 else { return nil }
      var value: UInt32 = 0
      for digit in part {
        guard digit >= 0x30, digit <= 0x39 else { return nil }
        value = value * 10 + UInt32(digit - 0x30)
      }
      guard value <= 255 else { return nil }
      result = result << 8 | value
    }
    return result
  }

  private static func groups(_ bytes: [UInt8]) -> [UInt16]? {
    let fields = bytes.split(separator: 0x3a, omittingEmptySubsequences: false)
    guard (3...9).contains(fields.count) else { return nil }
    var head: [UInt16] = []
    var tail: [UInt16] = []
    var compressed = false
    for (index, field) in fields.enumerated() {
      if field.isEmpty {
        let isEdge = index == 0 || index == fields.count - 1
        if isEdge {
          // A leading or trailing colon is legal only as half of "::".
          let neighbour = index == 0 ? 1 : fields.count - 2
          guard fields[neighbour].isEmpty else { return nil }
          continue
        }
        guard !compressed else { return nil }
        compressed = true
        continue
      }
      guard let values = group(field, isLast: index == fields.count - 1) else { return nil }
      if compressed { tail += values } else { head += values }
    }
    let count = head.count + tail.count
    guard compressed ? count <= 7 : count == 8 else { return nil }
    return head + Array(repeating: 0, count: 8 - count) + tail
  }

  private static func group(_ field: ArraySlice<UInt8>, isLast: Bool) -> [UInt16]? {
    if isLast, field.contains(0x2e) {
      guard let value = dotted(field) else { return nil }
      return [UInt16(value >> 16), UInt16(value & 0xffff)]
    }
    // A number in Swift may have a sign; a group has none.
    guard field.count <= 4, field.first != 0x2b, field.first != 0x2d,
      let value = UInt16(String(decoding: field, as: UTF8.self), radix: 16)
    else { return nil }
    return [value]
  }

  /// The canonical text (RFC 5952 for IPv6), without brackets.
  package var text: String {
    switch self {
    case .v4(let value):
      return "\(value >> 24).\(value >> 16 & 255).\(value >> 8 & 255).\(value & 255)"
    case .v6(let high, let low):
      return Self.text(groups: Self.words(high) + Self.words(low))
    }
  }

  private static func words(_ half: UInt64) -> [UInt16] {
    [48, 32, 16, 0].map { UInt16(truncatingIfNeeded: half >> UInt64($0)) }
  }

  private static func text(groups: [UInt16]) -> String {
    var best = 0..<0
    var start = 0
    while start < groups.count {
      guard groups[start] == 0 else {
        start += 1
        continue
      }
      var end = start
      while end < groups.count, groups[end] == 0 { end += 1 }
      if end - start > max(best.count, 1) { best = start..<end }
      start = end
    }
    let hexadecimal = groups.map { String($0, radix: 16) }
    guard !best.isEmpty else { return hexadecimal.joined(separator: ":") }
    return hexadecimal[..<best.lowerBound].joined(separator: ":") + "::"
      + hexadecimal[best.upperBound...].joined(separator: ":")
  }

  /// The bytes in network order: 4 or 16.
  package var bytes: [UInt8] {
    switch self {
    case .v4(let value): [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> UInt32($0)) }
    case .v6(let high, let low):
      [high, low].flatMap { half in
        [56, 48, 40, 32, 24, 16, 8, 0].map { UInt8(truncatingIfNeeded: half >> UInt64($0)) }
      }
    }
  }

  /// Takes 4 or 16 bytes in network order; `nil` for any other count.
  package init?(bytes: [UInt8]) {
    switch bytes.count {
    case 4: self = .v4(bytes.reduce(0) { $0 << 8 | UInt32($1) })
    case 16:
      self = .v6(
        high: bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }, low: bytes[8...].reduce(0) { $0 << 8 | UInt64($1) })
    default: return nil
    }
  }

  /// The IPv4 address inside an IPv4-mapped IPv6 address (`::ffff:0:0/96`), or the address itself.
  package var unmapped: IPAddress {
    if case .v6(high: 0, let low) = self, low >> 32 == 0xffff { return .v4(UInt32(truncatingIfNeeded: low)) }
    return self
  }
}
