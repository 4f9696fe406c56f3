/// One extension of a hello: its type and where its content lies in the bytes that hold it.
package struct TLSExtension: Equatable, Sendable {
  /// The type number.
  package let type: UInt16
  /// The content, without type and length.
  package let content: Range<Int>

  /// Reads `Extension extensions<0..2^16-1>` (RFC 8446 §4.2). Two of one type, and more than
  /// `WireLimits.extensions`, are malformed.
  @_lifetime(reader: copy reader)
  static func list(_ reader: inout ByteReader) throws(WireError) -> [TLSExtension] {
    var body = try reader.nested(width: 2)
    var list: [TLSExtension] = []
    list.reserveCapacity(24)
    while !body.isAtEnd {
      let start = body.offset
      let type = try body.u16()
      let content = try body.vector(width: 2)
      guard !list.contains(where: { $0.type == type }) else {
        throw .malformed("an extension stands twice", at: start)
      }
      guard list.count < WireLimits.extensions else { throw .malformed("too many extensions", at: start) }
      list.append(TLSExtension(type: type, content: content))
    }
    return list
  }
}

extension [TLSExtension] {
  /// Whether an extension of this type is there.
  func has(_ type: UInt16) -> Bool { contains { $0.type == type } }

  /// The content of the extension of this type.
  func content(_ type: UInt16) -> Range<Int>? { first { $0.type == type }?.content }
}
