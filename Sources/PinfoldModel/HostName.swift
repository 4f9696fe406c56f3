/// A host as a CONNECT line, an SNI or a policy names it, in its one normal form.
///
/// Names are lower case ASCII labels (A-labels where internationalised) without trailing dot; IP literals are
/// canonical. Two spellings of the same host are equal.
package enum HostName: Hashable, Sendable {
  /// A domain name of 1–253 bytes, labels of 1–63 bytes.
  case name(String)
  /// An IP literal.
  case address(IPAddress)

  /// Reads a DNS name or an IP literal; brackets around IPv6 are taken when `bracketed`, and then demanded.
  ///
  /// Refused: empty labels, labels of more than 63 bytes, names of more than 253, any byte outside letters, digits,
  /// `-` and `_`, and dotted forms whose last label is numeric but which are no canonical IPv4 address (readers
  /// disagree on `127.1` or `0x7f.1`; see the WHATWG URL standard's "ends in a number" rule).
  package init?(_ text: some StringProtocol, bracketed: Bool = false) {
    self.init(utf8: Array(text.utf8)[...], bracketed: bracketed)
  }

  /// Reads the same from bytes.
  package init?(utf8 bytes: ArraySlice<UInt8>, bracketed: Bool = false) {
    if bytes.first == 0x5b {
      guard bracketed, bytes.last == 0x5d, bytes.count > 2,
        let address = IPAddress(String(decoding: bytes.dropFirst().dropLast(), as: UTF8.self)), case .v6 = address
      else { return nil }
      self = .address(address)
      return
    }
    if Self.mayBeAddress(bytes), let address = IPAddress(String(decoding: bytes, as: UTF8.self)) {
      if case .v6 = address, bracketed { return nil }
      self = .address(address)
      return
    }
    guard let name = Self.normalised(bytes) else { return nil }
    self = .name(name)
  }

  /// Addresses have a colon, or begin with a digit.
  private static func mayBeAddress(_ bytes: ArraySlice<UInt8>) -> Bool {
    guard let first = bytes.first else { return false }
    return (first >= 0x30 && first <= 0x39) || bytes.contains(0x3a)
  }

  private static func normalised(_ written: ArraySlice<UInt8>) -> String? {
    var bytes = Array(written)
    if bytes.last == 0x2e { bytes.removeLast() }
    guard !bytes.isEmpty, bytes.count <= 253 else { return nil }
    var labelStart = 0
    for index in 0...bytes.count {
      guard index < bytes.count, bytes[index] != 0x2e else {
        let length = index - labelStart
        guard length >= 1, length <= 63, bytes[labelStart] != 0x2d, bytes[index - 1] != 0x2d else { return nil }
        if index == bytes.count, isNumeric(bytes[labelStart..<index]) { return nil }
        labelStart = index + 1
        continue
      }
      switch bytes[index] {
      case 0x41...0x5a: bytes[index] += 0x20
      case 0x61...0x7a, 0x30...0x39, 0x2d, 0x5f: break
      default: return nil
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// All digits, or `0x` and hexadecimal digits: what some resolvers take for a number.
  private static func isNumeric(_ label: ArraySlice<UInt8>) -> Bool {
    if label.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) { return true }
    guard label.count >= 2, label.starts(with: [0x30, 0x78]) else { return false }
    return label.dropFirst(2).allSatisfy { ($0 >= 0x30 && $0 <= 0x39) || ($0 >= 0x61 && $0 <= 0x66) }
  }

  /// The normal form, without brackets.
  package var text: String {
    switch self {
    case .name(let name): name
    case .address(let address): address.text
    }
  }

  /// Whether this is an IP literal.
  package var isAddress: Bool {
    if case .address = self { true } else { false }
  }
}
