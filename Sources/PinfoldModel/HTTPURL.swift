/// An `http` or `https` URL that a client of Pinfold's fetches from (RFC 3986, RFC 9110 §4.2).
///
/// Only what can be read in one way: no user information, no fragment, visible ASCII alone.
package struct HTTPURL: Hashable, Sendable {
  /// Bytes of a URL at most; servers and proxies take 8000 (RFC 9110 §4.1), pins and policies need 200.
  package static let lengthLimit = 2048

  /// Whether the scheme is `https`.
  package let isSecure: Bool
  /// Host and port; the scheme's own port where none was written.
  package let authority: Authority
  /// Path and query as they stand in a request line; begins with `/`.
  package private(set) var target: String

  /// Reads an absolute URL; `nil` for another scheme, a user, a fragment, a bad host, port or percent-encoding, a byte
  /// outside visible ASCII, or a longer one than `lengthLimit`.
  package init?(_ text: some StringProtocol) {
    let bytes = Array(text.utf8)
    guard bytes.count <= Self.lengthLimit, let colon = bytes.firstIndex(of: 0x3a) else { return nil }
    switch String(decoding: bytes[..<colon], as: UTF8.self).lowercased() {
    case "http": isSecure = false
    case "https": isSecure = true
    default: return nil
    }
    let rest = bytes[(colon + 1)...]
    guard rest.starts(with: [0x2f, 0x2f]) else { return nil }
    let hierarchy = rest.dropFirst(2)
    let end = hierarchy.firstIndex { $0 == 0x2f || $0 == 0x3f || $0 == 0x23 } ?? hierarchy.endIndex
    let host = String(decoding: hierarchy[..<end], as: UTF8.self)
    guard let authority = Authority(host, defaultPort: isSecure ? 443 : 80) else { return nil }
    self.authority = authority
    let tail = hierarchy[end...]
    guard Self.isTarget(tail) else { return nil }
    target = (tail.first == 0x2f ? "" : "/") + String(decoding: tail, as: UTF8.self)
  }

  /// Path and query of RFC 3986 §3.3 and §3.4; what that leaves out is where readers disagree.
  private static func isTarget(_ bytes: ArraySlice<UInt8>) -> Bool {
    var hexLeft = 0
    for byte in bytes {
      switch byte {
      case 0x30...0x39, 0x41...0x46, 0x61...0x66: hexLeft = max(0, hexLeft - 1)
      case _ where hexLeft > 0: return false
      case 0x25: hexLeft = 2
      case 0x47...0x5a, 0x67...0x7a, 0x21, 0x24, 0x26...0x2f, 0x3a, 0x3b, 0x3d, 0x3f, 0x40, 0x5f, 0x7e: break
      default: return false
      }
    }
    return hexLeft == 0
  }

  /// The same URL with one more query parameter, all but unreserved characters percent-encoded. May be longer than
  /// `lengthLimit` by that much.
  package func appending(query name: String, _ value: String) -> HTTPURL {
    var result = self
    let separator = !target.contains("?") ? "?" : target.hasSuffix("?") || target.hasSuffix("&") ? "" : "&"
    result.target += "\(separator)\(Self.encoded(name))=\(Self.encoded(value))"
    return result
  }

  private static func encoded(_ text: String) -> String {
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f, 0x7e: bytes.append(byte)
      default: bytes += Array("%".utf8) + Hex.encode([byte]).uppercased().utf8
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The Host field: the port only where it is not the scheme's (RFC 9110 §7.2).
  package var hostField: String {
    guard authority.port == (isSecure ? 443 : 80) else { return authority.text }
    if case .address(.v6) = authority.host { return "[\(authority.host.text)]" }
    return authority.host.text
  }

  /// The URL in its normal form.
  package var text: String { "\(isSecure ? "https" : "http")://\(hostField)\(target)" }
}
