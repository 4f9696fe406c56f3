import PinfoldModel

/// User and password of the Basic scheme (RFC 7617), read strictly: one spelling of base64, UTF-8, no control
/// characters, a user's name that may stand in a file of credentials.
///
/// A class, so that the password lies in one place only until `erase` overwrites it.
package final class BasicCredentials {
  /// Bytes of the longest user's name.
  package static let userLimit = 255

  private var decoded: [UInt8]
  /// The user's name.
  package let user: String

  /// Reads the value of an Authorization or Proxy-Authorization field; `nil` for every other scheme and form.
  package init?(_ field: ArraySlice<UInt8>) {
    let scheme = Array("basic".utf8)
    guard field.count > scheme.count,
      zip(field, scheme).allSatisfy({ $0 | 0x20 == $1 }), field[field.startIndex + scheme.count] == 0x20
    else { return nil }
    let text = field.dropFirst(scheme.count).drop { $0 == 0x20 }
    guard let decoded = Base64.decode(text, urlSafe: false), Self.isPrintable(decoded[...]),
      let colon = decoded.firstIndex(of: 0x3a), Self.isUserName(Array(decoded[..<colon]))
    else { return nil }
    user = String(decoding: decoded[..<colon], as: UTF8.self)
    self.decoded = decoded
  }

  /// Lends `user:password`, the whole of it.
  package var bytes: ArraySlice<UInt8> { decoded[...] }
  /// Lends the password.
  package var password: ArraySlice<UInt8> { decoded.dropFirst(user.utf8.count + 1) }

  /// Lets `body` overwrite user and password, where they lie.
  package func erase(_ body: (inout [UInt8]) -> Void) { body(&decoded) }

  /// Whether the bytes are UTF-8 without control characters (RFC 7617 §2). Makes no copy of them.
  package static func isPrintable(_ bytes: ArraySlice<UInt8>) -> Bool {
    var decoder = UTF8()
    var iterator = bytes.makeIterator()
    while true {
      switch decoder.decode(&iterator) {
      case .scalarValue(let scalar):
        if scalar.value < 0x20 || (0x7f..<0xa0).contains(scalar.value) { return false }
      case .emptyInput: return true
      case .error: return false
      }
    }
  }

  /// Whether the bytes may be a user's name: 1 to 255 bytes of UTF-8, no colon, no control character, and no `#` in
  /// front, which begins a comment in a file of credentials.
  package static func isUserName(_ bytes: [UInt8]) -> Bool {
    (1...userLimit).contains(bytes.count) && bytes.first != 0x23 && !bytes.contains(0x3a) && isPrintable(bytes[...])
  }
}
