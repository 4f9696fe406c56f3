import PinfoldModel

extension IPAddress {
  /// The IPv4 address that a translating gateway would take out of this IPv6 address: NAT64 (RFC 6052, the /96 of
  /// `64:ff9b::` and of `64:ff9b:1::`), 6to4 (RFC 3056), Teredo (RFC 4380, the client's), IPv4-compatible
  /// (RFC 4291 §2.5.5.1). `nil` for all others, `::` and `::1` among them.
  var translated: IPAddress? {
    guard case .v6(let high, let low) = self else { return nil }
    let last = UInt32(truncatingIfNeeded: low)
    if high == 0, low >> 32 == 0, low > 1 { return .v4(last) }
    if high == 0x0064_ff9b_0000_0000, low >> 32 == 0 { return .v4(last) }
    if high >> 16 == 0x0064_ff9b_0001 { return .v4(last) }
    if high >> 48 == 0x2002 { return .v4(UInt32(truncatingIfNeeded: high >> 16)) }
    if high >> 32 == 0x2001_0000 { return .v4(~last) }
    return nil
  }
}
