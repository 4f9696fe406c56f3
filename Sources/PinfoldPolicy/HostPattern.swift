package import PinfoldModel

/// The hosts one rule speaks for: `api.example.com`, `*.example.com`, `**.example.org`, `192.168.1.42:8443`.
///
/// Patterns are ASCII: whoever reads a document turns internationalised names into A-labels first.
package struct HostPattern: Hashable, Sendable {
  /// How far the pattern reaches. The raw value is the order of precedence: the greater one wins.
  package enum Reach: UInt8, CaseIterable, Sendable {
    /// `**.`: the name itself and everything below it.
    case anyDepth = 0
    /// `*.`: exactly one label in front of the name.
    case oneLabel = 1
    /// The name alone.
    case exact = 2

    /// What stands in front of the name.
    package var prefix: String {
      switch self {
      case .anyDepth: "**."
      case .oneLabel: "*."
      case .exact: ""
      }
    }
  }

  /// How far the pattern reaches.
  package let reach: Reach
  /// The name behind the wildcard, or the whole host. IPv4-mapped addresses are IPv4 here.
  package let host: HostName
  /// The one port the rule is for; `nil` for every port.
  package let port: UInt16?

  /// `host` must be a name unless the pattern is exact; `nil` otherwise, and for port 0.
  package init?(reach: Reach, host: HostName, port: UInt16? = nil) {
    if host.isAddress, reach != .exact { return nil }
    if port == 0 { return nil }
    self.reach = reach
    self.host = Self.unmapped(host)
    self.port = port
  }

  /// Reads the written form; IPv6 needs brackets when a port follows.
  ///
  /// The error's text says what is wrong and what would be right.
  package init(_ text: some StringProtocol) throws(HostPatternError) {
    let (reach, rest) = Self.wildcard(Array(text.utf8)[...])
    guard !rest.contains(0x2a) else { throw .misplacedWildcard }
    // A URL is no host; without this its scheme would be taken for a host with a strange port.
    guard !rest.contains(0x2f) else { throw .badHost }
    let (hostBytes, port) = try Self.port(of: rest)
    let hostText = String(decoding: hostBytes, as: UTF8.self)
    guard let host = HostName(hostText, bracketed: hostBytes.first == 0x5b) else { throw .badHost }
    guard let pattern = Self(reach: reach, host: host, port: port) else { throw .wildcardOverAddress }
    self = pattern
  }

  private static func wildcard(_ text: ArraySlice<UInt8>) -> (Reach, ArraySlice<UInt8>) {
    guard text.first == 0x2a else { return (.exact, text) }
    for reach in [Reach.anyDepth, .oneLabel] where text.starts(with: reach.prefix.utf8) {
      return (reach, text.dropFirst(reach.prefix.utf8.count))
    }
    return (.exact, text)
  }

  private static func port(
    of text: ArraySlice<UInt8>
  ) throws(HostPatternError) -> (host: ArraySlice<UInt8>, port: UInt16?) {
    // Two colons outside brackets are an IPv6 address without a port.
    let afterBracket = text.lastIndex(of: 0x5d) ?? text.startIndex
    guard let colon = text[afterBracket...].lastIndex(of: 0x3a),
      text.first == 0x5b || text.firstIndex(of: 0x3a) == colon
    else { return (text, nil) }
    let digits = text[(colon + 1)...]
    guard (1...5).contains(digits.count), digits.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), digits.first != 0x30,
      let port = UInt16(String(decoding: digits, as: UTF8.self))
    else { throw .badPort }
    return (text[..<colon], port)
  }

  static func unmapped(_ host: HostName) -> HostName {
    if case .address(let address) = host { .address(address.unmapped) } else { host }
  }

  /// The normal written form.
  package var text: String {
    guard let port else { return reach.prefix + host.text }
    return reach.prefix + Authority(host: host, port: port).text
  }

  /// Whether the rule speaks for this host and port. The table does this by index; this is the plain definition.
  package func matches(_ authority: Authority) -> Bool {
    if let port, port != authority.port { return false }
    let other = Self.unmapped(authority.host)
    if reach == .exact || other.isAddress { return reach == .exact && other == host }
    let base = host.text
    if reach == .anyDepth, other.text == base { return true }
    guard other.text.hasSuffix("." + base) else { return false }
    let front = other.text.utf8.dropLast(base.utf8.count + 1)
    return reach == .anyDepth || !front.contains(0x2e)
  }
}

/// Why a text is no host pattern.
package enum HostPatternError: String, Error, Sendable {
  case misplacedWildcard =
    "\"*\" stands only at the front, as \"*.\" (one label) or \"**.\" (any depth and the name itself)"
  case badPort = "a port is 1 to 65535 in decimal"
  case badHost =
    "a host is a domain name of letters, digits, \"-\" and \"_\" without empty labels, or an IP address (IPv6 in brackets before a port)"
  case wildcardOverAddress = "a wildcard stands before a domain name, not before an IP address"

  /// One sentence for the operator.
  package var text: String { rawValue }
}
