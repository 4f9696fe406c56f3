import PinfoldModel

/// The header fields of a CONNECT head that matter, taken line by line.
struct ConnectFields {
  let authority: Authority
  private(set) var proxyAuthorization: ArraySlice<UInt8>?
  private var hasHost = false

  init(authority: Authority) {
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
    let name = String(decoding: line[..<colon], as: UTF8.self).lowercased()
    switch name {
    case "host":
      guard !hasHost else { throw HeadRefusal(at: start, "There are two Host fields.") }
      hasHost = true
      try checkHost(value, at: start)
    case "content-length", "transfer-encoding":
      throw HeadRefusal(at: start, "A CONNECT request has no body.")
    case "proxy-authorization":
      guard proxyAuthorization == nil else { throw HeadRefusal(at: start, "There are two Proxy-Authorization fields.") }
      proxyAuthorization = value
    default: return
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
    guard let text = String(validating: value, as: UTF8.self), Authority(text, defaultPort: authority.port) != nil
    else { throw HeadRefusal(at: start, "Host is not a host with or without a port.") }
  }
}
