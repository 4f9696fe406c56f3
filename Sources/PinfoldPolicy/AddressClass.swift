package import PinfoldModel

/// What kind of place an address is, as far as a proxy must care (IANA special-purpose registries, RFC 6890).
package enum AddressClass: String, CaseIterable, Sendable {
  case global
  case unspecified
  case loopback
  case privateUse = "private"
  case linkLocal = "link_local"
  /// Shared address space of carriers (RFC 6598).
  case carrier
  /// Where clouds answer with credentials.
  case metadata
  case multicast
  case broadcast
  /// Documentation, benchmarks, protocol assignments, and what IANA has not given out.
  case reserved
  /// An IPv4 address inside IPv6: NAT64, 6to4, Teredo, IPv4-compatible. Not public whatever is inside: which gateway
  /// unpacks it, and to where, is not ours to know.
  case translated

  /// Where an unpinned host may lead to without being allowed by configuration.
  package var isPublic: Bool { self == .global }

  /// Classifies any address; IPv4-mapped ones as IPv4.
  package init(_ address: IPAddress) {
    switch address.unmapped {
    case .v4(let value): self = Self.classify(v4: value)
    case .v6(let high, let low): self = Self.classify(high, low)
    }
  }

  private static func classify(v4 value: UInt32) -> AddressClass {
    // Single addresses first: they lie inside wider blocks.
    switch value {
    case 0xffff_ffff: return .broadcast
    // 169.254.169.254 (most clouds), 169.254.170.2 and .23 (container credentials), 100.100.100.200 (Alibaba),
    // 192.0.0.192 (Oracle), 168.63.129.16 (Azure's host).
    case 0xa9fe_a9fe, 0xa9fe_aa02, 0xa9fe_aa17, 0x6464_64c8, 0xc000_00c0, 0xa83f_8110: return .metadata
    default: break
    }
    for block in v4Blocks where value & (UInt32.max << UInt32(32 - block.length)) == block.base {
      return block.kind
    }
    return .global
  }

  private static let v4Blocks: [(base: UInt32, length: Int, kind: AddressClass)] = [
    (0x0000_0000, 8, .unspecified),  // "This network" (RFC 791 §3.2); 0.0.0.0 reaches the own machine.
    (0x0a00_0000, 8, .privateUse),
    (0x6440_0000, 10, .carrier),
    (0x7f00_0000, 8, .loopback),
    (0xa9fe_0000, 16, .linkLocal),
    (0xac10_0000, 12, .privateUse),
    (0xc000_0000, 24, .reserved),  // IETF protocol assignments
    (0xc000_0200, 24, .reserved),  // TEST-NET-1
    (0xc058_6300, 24, .translated),  // 6to4 relay anycast (RFC 7526)
    (0xc0a8_0000, 16, .privateUse),
    (0xc612_0000, 15, .reserved),  // benchmarks
    (0xc633_6400, 24, .reserved),  // TEST-NET-2
    (0xcb00_7100, 24, .reserved),  // TEST-NET-3
    (0xe000_0000, 4, .multicast),
    (0xf000_0000, 4, .reserved),
  ]

  private static func classify(_ high: UInt64, _ low: UInt64) -> AddressClass {
    if high == 0 {
      if low == 0 { return .unspecified }
      if low == 1 { return .loopback }
      return low >> 32 == 0 ? .translated : .reserved
    }
    // fd00:ec2::254 (AWS), fd20:ce::254 (Google), fd00:c1::a9fe:a9fe (Oracle)
    switch (high, low) {
    case (0xfd00_0ec2_0000_0000, 0x254), (0xfd20_00ce_0000_0000, 0x254), (0xfd00_00c1_0000_0000, 0xa9fe_a9fe):
      return .metadata
    default: break
    }
    for block in v6Blocks where high & (UInt64.max << UInt64(64 - block.length)) == block.base {
      return block.kind
    }
    // Only 2000::/3 is given out as global unicast (RFC 4291 §2.4).
    return high >> 61 == 1 ? .global : .reserved
  }

  /// High halves; no block here is longer than 64 bits.
  private static let v6Blocks: [(base: UInt64, length: Int, kind: AddressClass)] = [
    (0x0064_ff9b_0000_0000, 64, .translated),  // NAT64; wider than its /96, the rest being unassigned
    (0x0064_ff9b_0001_0000, 48, .translated),  // local NAT64 (RFC 8215)
    (0x0100_0000_0000_0000, 64, .reserved),  // discard
    (0x2001_0000_0000_0000, 32, .translated),  // Teredo
    (0x2001_0000_0000_0000, 23, .reserved),  // protocol assignments, benchmarks, ORCHID
    (0x2001_0db8_0000_0000, 32, .reserved),  // documentation
    (0x2002_0000_0000_0000, 16, .translated),  // 6to4
    (0x3fff_0000_0000_0000, 20, .reserved),  // documentation (RFC 9637)
    (0x5f00_0000_0000_0000, 16, .reserved),  // segment routing (RFC 9602)
    (0xfc00_0000_0000_0000, 7, .privateUse),
    (0xfe80_0000_0000_0000, 10, .linkLocal),
    (0xfec0_0000_0000_0000, 10, .privateUse),  // site-local, deprecated
    (0xff00_0000_0000_0000, 8, .multicast),
  ]
}
