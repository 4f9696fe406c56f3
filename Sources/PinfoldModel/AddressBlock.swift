/// A CIDR block (RFC 4632, RFC 4291 §2.3).
package struct AddressBlock: Hashable, Sendable {
  /// The first address of the block.
  package let base: IPAddress
  /// Leading bits that count: 0–32 for IPv4, 0–128 for IPv6.
  package let prefixLength: Int

  /// Reads `10.0.0.0/8`, `::1/128`, or a lone address. Bits behind the prefix must be zero, since a block written
  /// otherwise is a typing error more often than an intention.
  package init?(_ text: some StringProtocol) {
    let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let first = parts.first, let base = IPAddress(first) else { return nil }
    let width = base.bytes.count * 8
    var length = width
    if parts.count == 2 {
      let digits = parts[1].utf8
      guard (1...3).contains(digits.count), digits.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }),
        let value = Int(parts[1]), value <= width
      else { return nil }
      length = value
    }
    self.base = base
    prefixLength = length
    guard Self.masked(base, length) == base else { return nil }
  }

  /// Whether the address lies in the block. IPv4-mapped IPv6 addresses count as IPv4.
  package func contains(_ address: IPAddress) -> Bool {
    Self.masked(address.unmapped, prefixLength) == base || Self.masked(address, prefixLength) == base
  }

  private static func masked(_ address: IPAddress, _ length: Int) -> IPAddress? {
    switch address {
    case .v4(let value):
      guard length <= 32 else { return nil }
      return .v4(length == 0 ? 0 : value & (UInt32.max << UInt32(32 - length)))
    case .v6(let high, let low):
      let highMask = length == 0 ? 0 : length >= 64 ? UInt64.max : UInt64.max << UInt64(64 - length)
      let lowMask = length <= 64 ? 0 : UInt64.max << UInt64(128 - length)
      return .v6(high: high & highMask, low: low & lowMask)
    }
  }

  /// `base/length`.
  package var text: String { "\(base.text)/\(prefixLength)" }
}
