extension JSONReader {
  /// Skips white space and, in JSON5, comments.
  mutating func skipSpace() throws(JSONError) {
    while let byte = next {
      switch byte {
      case 0x20, 0x09, 0x0a, 0x0d: position += 1
      // VT and FF are space in JSON5 only; a condition stands for one pattern, so that each has its own.
      case 0x0b where dialect == .json5, 0x0c where dialect == .json5: position += 1
      case 0x2f where dialect == .json5: try skipComment()
      case 0xc2, 0xe1, 0xe2, 0xe3, 0xef:
        guard dialect == .json5, let length = wideSpace() else { return }
        position += length
      default: return
      }
    }
  }

  /// Length of a space beyond ASCII: U+00A0, U+FEFF, the line separators, and Unicode's class Zs.
  func wideSpace() -> Int? {
    switch (next, byte(after: 1), byte(after: 2)) {
    case (0xc2, 0xa0, _): 2
    case (0xe1, 0x9a, 0x80): 3  // U+1680
    case (0xe2, 0x80, (0x80...0x8a)?), (0xe2, 0x80, 0xa8), (0xe2, 0x80, 0xa9), (0xe2, 0x80, 0xaf): 3
    case (0xe2, 0x81, 0x9f): 3  // U+205F
    case (0xe3, 0x80, 0x80): 3  // U+3000
    case (0xef, 0xbb, 0xbf): 3
    default: nil
    }
  }

  private mutating func skipComment() throws(JSONError) {
    let start = position
    switch byte(after: 1) {
    case 0x2f:
      while let byte = next, byte != 0x0a, byte != 0x0d { position += 1 }
    case 0x2a:
      position += 2
      while let byte = next {
        if byte == 0x2a, self.byte(after: 1) == 0x2f {
          position += 2
          return
        }
        position += 1
      }
      throw error("a comment that is not closed by \"*/\"", at: start)
    default: throw error("expected \"//\" or \"/*\", found \(found)")
    }
  }
}
