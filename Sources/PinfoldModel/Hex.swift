/// Hexadecimal text (RFC 4648 §8).
package enum Hex {
  private static let digits: [UInt8] = Array("0123456789abcdef".utf8)

  /// Lower-case digits, two per byte.
  package static func encode(_ bytes: some Sequence<UInt8>) -> String {
    var text: [UInt8] = []
    for byte in bytes {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Reads an even number of digits of either case; `nil` for anything else.
  package static func decode(_ text: some StringProtocol) -> [UInt8]? {
    var result: [UInt8] = []
    var high: UInt8?
    for character in text.utf8 {
      let value: UInt8
      switch character {
      case 0x30...0x39: value = character - 0x30
      case 0x41...0x46: value = character - 0x41 + 10
      case 0x61...0x66: value = character - 0x61 + 10
      default: return nil
      }
      if let first = high {
        result.append(first << 4 | value)
        high = nil
      } else {
        high = value
      }
    }
    return high == nil ? result : nil
  }
}
