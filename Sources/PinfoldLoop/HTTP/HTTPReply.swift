/// What a server answered: any status, redirects included, which nobody follows.
package struct HTTPReply: Hashable, Sendable {
  /// A field line, as received.
  package struct Field: Hashable, Sendable {
    /// The name, in the server's spelling.
    package let name: String
    /// The value, without white space around it.
    package let value: String
  }

  /// 100–999.
  package let status: Int
  /// In the order received; `HTTPClient.maximalHeadSize` bounds them.
  package let fields: [Field]
  /// Whole, with any chunked coding taken off; at most as long as the caller allowed.
  package let body: [UInt8]

  /// A reply as received, or as a test would have it.
  package init(status: Int, fields: [Field], body: [UInt8]) {
    self.status = status
    self.fields = fields
    self.body = body
  }

  /// The first field of a name, in any spelling of it (RFC 9110 §5.1).
  package func field(_ name: String) -> String? {
    let wanted = name.lowercased()
    return fields.first { $0.name.lowercased() == wanted }?.value
  }
}
