import PinfoldModel

/// The header fields of a CONNECT head that matter, taken line by line.
struct ConnectFields {
  /// The target of the request line, as written and as read.
  let target: ArraySlice<UInt8>
  let authority: Authority
  private(set) var proxyAuthorization: ArraySlice<UInt8>?
  private var hasHost = false

  init(target: ArraySlice<UInt8>, authority: Authority) {
    self.target = target
    self.authority = authority
  }

  /// Bytes of a token (RFC 9110 §5.6.2).
  static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x21, 0x23...0x27, 0x2a, 0x2b, 0x2d, 0x2e, 0x5e...0x60, 0x7c, 0x7e:
      true
    default: false
    }
  }

  /// Takes one line without its end (RFC 9112 §5).
  mutating func take(_ line: ArraySlice<UInt8>) throws(HeadRefusal) {
    let start = line.startIndex
    if line.first == 0x20 || line.first == 0x09 {
      throw HeadRefusal(at: start, "A header field may not be folded over lines.")
    }
    guard let colon = line.firstIndex(of: 0x3a), colon > start, line[..<colon].allSatisfy(Self.isTokenByte) else {
      throw HeadRefusal(at: start, "A header field has to be: name, colon, value, with no blank before the colon.")
    }
    let value = Self.trimmed(line[(colon + 1)...])
    let name = line[..<colon]
    if Self.names(name, "host") {
      guard !hasHost else { throw HeadRefusal(at: start, "There are two Host fields.") }
      hasHost = true
      try checkHost(value, at: start)
    } else if Self.names(name, "content-length") || Self.names(name, "transfer-encoding") {
      throw HeadRefusal(at: start, "A CONNECT request has no body.")
    } else if Self.names(name, "proxy-authorization") {
      guard proxyAuthorization == nil else { throw HeadRefusal(at: start, "There are two Proxy-Authorization fields.") }
      proxyAuthorization = value
    }
  }

  /// Whether a field name is this one, written in lower case here; case does not matter (RFC 9110 §5.1).
  private static func names(_ field: ArraySlice<UInt8>, _ name: StaticString) -> Bool {
    guard field.count == name.utf8CodeUnitCount else { return false }
    return name.withUTF8Buffer { name in
      unsafe zip(field, name).allSatisfy { $0 == $1 || ($0 | 0x20 == $1 && (0x41...0x5a).contains($0)) }
    }
  }

  /// Blanks and tabs around a value are none of it (RFC 9112 §5.1).
  private static func trimmed(_ value: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var value = value.drop { $0 == 0x20 || $0 == 0x09 }
    while let last = value.last, last == 0x20 || last == 0x09 { value.removeLast() }
    return value
  }

  /// Host has to be a host (RFC 9112 §3.2), but not the target: the request line alone says where the tunnel leads, as
  /// for every request whose target names an authority (§3.2.2), and Node's `http.request` sends the proxy's own address.
  private func checkHost(_ value: ArraySlice<UInt8>, at start: Int) throws(HeadRefusal) {
    // What nearly every client sends is known to be one.
    guard value == target || Authority(utf8: value, defaultPort: authority.port) != nil else {
      throw HeadRefusal(at: start, "Host is not a host with or without a port.")
    }
  }
}
