/// Base64 text (RFC 4648 §4 and §5), read strictly.
///
/// Strict means: canonical padding, no white space, and no non-zero bits behind the last byte. One byte string has
/// exactly one accepted spelling per alphabet, so two readers cannot disagree on what was signed.
package enum Base64 {
  private static let standard: [UInt8] = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// The standard alphabet, padded.
  package static func encode(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count + 2) / 3 * 4)
    var index = 0
    while index < bytes.count {
      let left = bytes.count - index
      let first = UInt32(bytes[index]) << 16
      let second = left > 1 ? UInt32(bytes[index + 1]) << 8 : 0
      let third = left > 2 ? UInt32(bytes[index + 2]) : 0
      let group = first | second | third
      text.append(standard[Int(group >> 18 & 63)])
      text.append(standard[Int(group >> 12 & 63)])
      text.append(left > 1 ? standard[Int(group >> 6 & 63)] : 0x3d)
      text.append(left > 2 ? standard[Int(group & 63)] : 0x3d)
      index += 3
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// The URL-safe alphabet without padding, as JWS writes it (RFC 7515 §2).
  package static func encodeURLSafe(_ bytes: [UInt8]) -> String {
    let text = encode(bytes).utf8.compactMap { character -> UInt8? in
      switch character {
      case 0x2b: 0x2d
      case 0x2f: 0x5f
      case 0x3d: nil
      default: character
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Reads the standard alphabet with its padding; `nil` for anything else.
  package static func decode(_ text: some StringProtocol) -> [UInt8]? {
    decode(Array(text.utf8)[...], urlSafe: false)
  }

  /// Reads the URL-safe alphabet without padding, as JWS uses it (RFC 7515 §2); `nil` for anything else.
  package static func decodeURLSafe(_ text: some StringProtocol) -> [UInt8]? {
    decode(Array(text.utf8)[...], urlSafe: true)
  }

  /// Reads base64 bytes where they lie. `prefix` is put in front of the result, so that a signed frame around a
  /// large payload needs no second copy.
  package static func decode(_ text: ArraySlice<UInt8>, urlSafe: Bool, prefix: [UInt8] = []) -> [UInt8]? {
    var body = text
    if !urlSafe {
      guard body.count % 4 == 0 else { return nil }
      var padding = 0
      while padding < 2, body.last == 0x3d {
        body = body.dropLast()
        padding += 1
      }
    }
    guard body.count % 4 != 1 else { return nil }
    var result = prefix
    result.reserveCapacity(prefix.count + body.count / 4 * 3 + 2)
    var bits: UInt32 = 0
    var count = 0
    for character in body {
      guard let value = value(of: character, urlSafe: urlSafe) else { return nil }
      bits = bits << 6 | UInt32(value)
      count += 6
      if count >= 8 {
        count -= 8
        result.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
        bits &= (1 << UInt32(count)) - 1
      }
    }
    return bits == 0 ? result : nil
  }

  private static func value(of character: UInt8, urlSafe: Bool) -> UInt8? {
    switch character {
    case 0x41...0x5a: character - 0x41
    case 0x61...0x7a: character - 0x61 + 26
    case 0x30...0x39: character - 0x30 + 52
    case 0x2b where !urlSafe, 0x2d where urlSafe: 62
    case 0x2f where !urlSafe, 0x5f where urlSafe: 63
    default: nil
    }
  }
}
