/// Turns what others wrote into text that can neither end a log line, forge a field, nor speak to a terminal.
///
/// Only printable ASCII passes as it is. Everything else (control bytes, escape sequences, line separators, text that
/// changes direction, bytes that are no UTF-8) is spelled out.
enum LogText {
  /// Bytes of one value that are written at most; what is beyond is counted only. No single field can fill a disk.
  static let limit = 1024

  /// JSON string with its quotes (RFC 8259 §7). Text beyond ASCII becomes `\u` and four digits.
  static func appendJSON(_ text: String, to output: inout [UInt8]) {
    output.append(0x22)
    appendBounded(text, to: &output) { scalar, output in
      switch scalar.value {
      case 0x22, 0x5c: output.append(contentsOf: [0x5c, UInt8(scalar.value)])
      case 0x20..<0x7f: output.append(UInt8(scalar.value))
      default: for unit in scalar.utf16 { append("\\u\(hex(unit, width: 4))", to: &output) }
      }
    }
    output.append(0x22)
  }

  /// A bare word where that is unambiguous, else a quoted text with `\n`, `\"`, `\\`, `\u{…}` escapes.
  static func appendPlain(_ text: String, to output: inout [UInt8]) {
    if !text.isEmpty, text.utf8.count <= limit, text.utf8.allSatisfy(isBare) {
      output.append(contentsOf: text.utf8)
      return
    }
    output.append(0x22)
    appendBounded(text, to: &output) { scalar, output in
      switch scalar.value {
      case 0x22, 0x5c: output.append(contentsOf: [0x5c, UInt8(scalar.value)])
      case 0x0a: append("\\n", to: &output)
      case 0x20..<0x7f: output.append(UInt8(scalar.value))
      default: append("\\u{\(String(scalar.value, radix: 16))}", to: &output)
      }
    }
    output.append(0x22)
  }

  /// Bytes that need be no text: printable ASCII but the backslash as it is, each other byte as `\xNN`.
  static func spelled(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    for byte in bytes.prefix(limit) {
      if (0x20..<0x7f).contains(byte), byte != 0x5c {
        text.append(byte)
      } else {
        append("\\x\(hex(UInt16(byte), width: 2))", to: &text)
      }
    }
    if bytes.count > limit { append(rest(bytes.count - limit), to: &text) }
    return String(decoding: text, as: UTF8.self)
  }

  private static func appendBounded(
    _ text: String, to output: inout [UInt8], _ write: (Unicode.Scalar, inout [UInt8]) -> Void
  ) {
    var written = 0
    for scalar in text.unicodeScalars {
      let width = UTF8.width(scalar)
      guard written + width <= limit else {
        append(rest(text.utf8.count - written), to: &output)
        return
      }
      written += width
      write(scalar, &output)
    }
  }

  private static func rest(_ count: Int) -> String { "...(+\(count) bytes)" }

  private static func isBare(_ byte: UInt8) -> Bool {
    byte > 0x20 && byte < 0x7f && byte != 0x22 && byte != 0x5c && byte != 0x3d
  }

  private static func hex(_ value: UInt16, width: Int) -> String {
    let digits = String(value, radix: 16)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }

  static func append(_ text: String, to output: inout [UInt8]) { output.append(contentsOf: text.utf8) }
}
