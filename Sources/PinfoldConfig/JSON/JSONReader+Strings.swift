extension JSONReader {
  /// Reads a string. Escapes are resolved; what is left has to be valid UTF-8.
  package mutating func string() throws(JSONError) -> String {
    let kind = try peek()
    guard kind == .string else { throw error("expected a string, found \(kind.rawValue)") }
    let quote = bytes[position]
    let start = position
    position += 1
    let content = position
    // Most strings have no escape and are taken as they lie.
    while let byte = next, byte != quote, byte != 0x5c, byte >= 0x20 { position += 1 }
    if next == quote {
      let text = try validated(bytes[content..<position], at: start)
      position += 1
      return text
    }
    var buffer = Array(bytes[content..<position])
    while let byte = next, byte != quote {
      switch byte {
      case 0x5c: try escape(into: &buffer)
      case 0x0a, 0x0d: throw error("a string that is not closed on its line", at: start)
      case 0x00..<0x20 where dialect == .json: throw error("a control character inside a string")
      default:
        buffer.append(byte)
        position += 1
      }
    }
    guard next == quote else { throw error("a string that is not closed", at: start) }
    position += 1
    return try validated(buffer[...], at: start)
  }

  /// Passes over a string. One without escapes, however long, is not copied.
  mutating func skipString() throws(JSONError) {
    let start = position
    position += 1
    let content = position
    while let byte = next, byte != bytes[start], byte != 0x5c, byte >= 0x20 { position += 1 }
    guard next == bytes[start] else {
      position = start
      _ = try string()
      return
    }
    // Most of what is skipped is ASCII, which needs no second look.
    if !bytes[content..<position].allSatisfy({ $0 < 0x80 }) { _ = try validated(bytes[content..<position], at: start) }
    position += 1
  }

  private func validated(_ content: ArraySlice<UInt8>, at start: Int) throws(JSONError) -> String {
    guard let text = String(validating: content, as: UTF8.self) else {
      throw error("a string that is not UTF-8", at: start)
    }
    return text
  }

  private mutating func escape(into buffer: inout [UInt8]) throws(JSONError) {
    let start = position
    position += 1
    guard let letter = next else { throw error("a string that is not closed", at: start) }
    position += 1
    switch letter {
    case 0x22, 0x5c, 0x2f: buffer.append(letter)
    case 0x62: buffer.append(0x08)
    case 0x66: buffer.append(0x0c)
    case 0x6e: buffer.append(0x0a)
    case 0x72: buffer.append(0x0d)
    case 0x74: buffer.append(0x09)
    case 0x75: buffer.append(contentsOf: String(try unicodeEscape(at: start)).utf8)
    default:
      guard dialect == .json5 else { throw error("an escape that JSON does not have", at: start) }
      try wideEscape(letter, at: start, into: &buffer)
    }
  }

  /// The escapes that JSON5 has beyond JSON.
  private mutating func wideEscape(_ letter: UInt8, at start: Int, into buffer: inout [UInt8]) throws(JSONError) {
    switch letter {
    case 0x76: buffer.append(0x0b)
    case 0x30:
      if let digit = next, (0x30...0x39).contains(digit) { throw error("an octal escape", at: start) }
      buffer.append(0)
    case 0x31...0x39: throw error("an octal escape", at: start)
    case 0x78:
      guard let code = hexadecimal(2) else { throw error("\"\\x\" needs two hexadecimal digits", at: start) }
      buffer.append(contentsOf: String(Unicode.Scalar(UInt8(truncatingIfNeeded: code))).utf8)
    case 0x0d: if next == 0x0a { position += 1 }
    case 0x0a: break
    case 0xe2 where next == 0x80 && (byte(after: 1) == 0xa8 || byte(after: 1) == 0xa9): position += 2
    default: buffer.append(letter)
    }
  }

  /// The scalar of `\u` and four hexadecimal digits, or of two of them that are a surrogate pair.
  private mutating func unicodeEscape(at start: Int) throws(JSONError) -> Unicode.Scalar {
    guard let first = hexadecimal(4) else { throw error("\"\\u\" needs four hexadecimal digits", at: start) }
    if let scalar = Unicode.Scalar(first) { return scalar }
    guard first < 0xdc00, next == 0x5c, byte(after: 1) == 0x75 else { throw error("half a surrogate pair", at: start) }
    position += 2
    guard let second = hexadecimal(4), (0xdc00...0xdfff).contains(second),
      let scalar = Unicode.Scalar(0x10000 + (first - 0xd800) << 10 + (second - 0xdc00))
    else { throw error("half a surrogate pair", at: start) }
    return scalar
  }

  private mutating func hexadecimal(_ count: Int) -> UInt32? {
    var value: UInt32 = 0
    for distance in 0..<count {
      guard let digit = byte(after: distance).flatMap(Self.hexadecimalValue) else { return nil }
      value = value << 4 | digit
    }
    position += count
    return value
  }

  static func hexadecimalValue(_ byte: UInt8) -> UInt32? {
    switch byte {
    case 0x30...0x39: UInt32(byte - 0x30)
    case 0x41...0x46: UInt32(byte - 0x41 + 10)
    case 0x61...0x66: UInt32(byte - 0x61 + 10)
    default: nil
    }
  }

  // MARK: Names

  /// A member's name: a string, or in JSON5 an identifier of ECMAScript 5.1.
  mutating func memberName() throws(JSONError) -> String {
    if next == 0x22 || (next == 0x27 && dialect == .json5) { return try string() }
    guard dialect == .json5 else { throw error("expected a member's name in double quotes, found \(found)") }
    let start = position
    var buffer: [UInt8] = []
    while let byte = next, Self.continuesWord(byte) || byte == 0x5c {
      if byte == 0x5c {
        guard self.byte(after: 1) == 0x75 else { throw error("only \"\\u\" escapes stand in a bare name") }
        let escapeStart = position
        position += 2
        buffer.append(contentsOf: String(try unicodeEscape(at: escapeStart)).utf8)
      } else {
        buffer.append(byte)
        position += 1
      }
    }
    guard !buffer.isEmpty else { throw error("expected a member's name, found \(found)") }
    let name = try validated(buffer[...], at: start)
    guard Self.isIdentifier(name) else { throw error("\"\(name)\" is no bare name: put it in quotes", at: start) }
    return name
  }

  private static func isIdentifier(_ name: String) -> Bool {
    for (index, scalar) in name.unicodeScalars.enumerated() {
      if scalar == "$" || scalar == "_" { continue }
      let properties = scalar.properties
      guard index == 0 ? properties.isIDStart : properties.isIDContinue || scalar == "\u{200c}" || scalar == "\u{200d}"
      else { return false }
    }
    return true
  }
}
