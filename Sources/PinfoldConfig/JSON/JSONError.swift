/// Why a text is not JSON5, or holds something else than was asked for.
package struct JSONError: Error, Hashable, Sendable {
  /// Byte offset into the text, from 0.
  package var offset: Int
  package var message: String

  /// An error at a byte of the text.
  package init(at offset: Int, _ message: String) {
    self.offset = offset
    self.message = message
  }
}

extension SourcePlace {
  /// The place of a byte. LF, CR and CRLF end lines; a byte order mark has no width.
  package init(of offset: Int, in bytes: ArraySlice<UInt8>) {
    var line = 1
    var column = 1
    var previous: UInt8 = 0
    for byte in bytes.prefix(max(0, offset)) {
      switch byte {
      case 0x0a where previous == 0x0d: break
      case 0x0a, 0x0d:
        line += 1
        column = 1
      case 0x80...0xbf: break
      default: column += 1
      }
      previous = byte
    }
    if line == 1, bytes.starts(with: [0xef, 0xbb, 0xbf]), column > 1 { column -= 1 }
    self.init(line: line, column: column)
  }
}
