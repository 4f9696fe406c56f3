/// Host and port of a CONNECT line (RFC 9110 §9.3.6): the thing a policy decides about.
package struct Authority: Hashable, Sendable {
  /// The host in its normal form. An IPv4 address that was written as an IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2) is
  /// the IPv4 address: what is known of a host must not depend on how somebody spells it.
  package let host: HostName
  /// The port; zero cannot be written in text, so no peer can name it.
  package var port: UInt16

  /// Joins parts that were checked already.
  package init(host: HostName, port: UInt16) {
    if case .address(let address) = host { self.host = .address(address.unmapped) } else { self.host = host }
    self.port = port
  }

  /// Reads `host:port`, IPv6 in brackets, port 1–65535 in decimal without sign or leading zero. `defaultPort` stands
  /// in when no port is written; without it a port is demanded.
  package init?(_ text: some StringProtocol, defaultPort: UInt16? = nil) {
    self.init(utf8: Array(text.utf8)[...], defaultPort: defaultPort)
  }

  /// Reads the same from bytes.
  package init?(utf8 bytes: ArraySlice<UInt8>, defaultPort: UInt16? = nil) {
    let afterBracket = bytes.lastIndex(of: 0x5d).map { $0 + 1 } ?? bytes.startIndex
    guard let colon = bytes[afterBracket...].firstIndex(of: 0x3a) else {
      guard let defaultPort, let host = HostName(utf8: bytes, bracketed: true) else { return nil }
      self.init(host: host, port: defaultPort)
      return
    }
    guard let host = HostName(utf8: bytes[..<colon], bracketed: true), let port = Self.port(bytes[(colon + 1)...])
    else { return nil }
    self.init(host: host, port: port)
  }

  private static func port(_ digits: ArraySlice<UInt8>) -> UInt16? {
    guard let first = digits.first, first != 0x30, digits.count <= 5 else { return nil }
    var value: UInt32 = 0
    for digit in digits {
      guard digit >= 0x30, digit <= 0x39 else { return nil }
      value = value * 10 + UInt32(digit - 0x30)
    }
    return UInt16(exactly: value)
  }

  /// `host:port`, with brackets around IPv6.
  package var text: String {
    if case .address(let address) = host, case .v6 = address { return "[\(host.text)]:\(port)" }
    return "\(host.text):\(port)"
  }
}
