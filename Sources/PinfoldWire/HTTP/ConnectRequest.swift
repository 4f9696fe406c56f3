package import PinfoldModel

/// What a CONNECT head asks for (RFC 9110 §9.3.6), once it was read without a complaint.
package struct ConnectRequest: Equatable, Sendable {
  /// Host and port of the request line.
  package let authority: Authority
  /// Where in the head the value of Proxy-Authorization stands, if there is one. The value is a secret and stays in the
  /// reader, which lends and erases it.
  package let proxyAuthorization: Range<Int>?
  /// Bytes of the head, its blank line included. What lies behind belongs to the tunnel.
  package let headLength: Int
}

/// Why a head is not taken, and what the client is told.
package struct HeadRefusal: Equatable, Sendable {
  /// The HTTP status: 400 or 405.
  package let status: Int
  /// Offset of the byte, or of the line, that is wrong.
  package let offset: Int
  /// One constant sentence for the client and the log.
  package let sentence: String

  init(_ status: Int = 400, at offset: Int, _ sentence: StaticString) {
    self.status = status
    self.offset = offset
    self.sentence = sentence.description
  }
}
