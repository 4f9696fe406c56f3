/// One entry of a TLS 1.3 Certificate message (RFC 8446 §4.4.2).
package struct CertificateEntry: Equatable, Sendable {
  /// The DER certificate, or the SubjectPublicKeyInfo of a raw public key.
  package let certificate: Range<Int>
  /// Extensions of this entry: a stapled status, timestamps, a delegated credential.
  package let extensions: [TLSExtension]

  /// Content of the delegated credential (RFC 9345 §4), if the entry carries one.
  package var delegatedCredential: Range<Int>? { extensions.content(ExtensionType.delegatedCredential) }
}

/// Reads the bodies of Certificate messages. All ranges and offsets are the reader's.
enum CertificateMessage {
  /// TLS 1.2 and older (RFC 5246 §7.4.2): a list of DER certificates, leaf first, at least one.
  @_lifetime(reader: copy reader)
  static func list(_ reader: inout ByteReader) throws(WireError) -> [Range<Int>] {
    var list = try reader.nested(width: 3, atLeast: 1)
    try reader.finish()
    var certificates: [Range<Int>] = []
    while !list.isAtEnd {
      guard certificates.count < WireLimits.certificates else {
        throw .malformed("too many certificates", at: list.offset)
      }
      certificates.append(try list.vector(width: 3, atLeast: 1))
    }
    return certificates
  }

  /// TLS 1.2 and older with a raw public key (RFC 7250 §3): one SubjectPublicKeyInfo, no list.
  @_lifetime(reader: copy reader)
  static func rawPublicKey(_ reader: inout ByteReader) throws(WireError) -> Range<Int> {
    let key = try reader.vector(width: 3, atLeast: 1)
    try reader.finish()
    return key
  }

  /// TLS 1.3: an empty context and entries, each with extensions the client asked for.
  @_lifetime(reader: copy reader)
  static func entries(
    _ reader: inout ByteReader, answering client: ClientHello, rawPublicKey: Bool
  ) throws(WireError) -> [CertificateEntry] {
    guard try reader.u8() == 0 else {
      throw .malformed("the server's Certificate has a request context", at: reader.offset - 1)
    }
    let start = reader.offset
    var list = try reader.nested(width: 3, atLeast: 1)
    try reader.finish()
    var entries: [CertificateEntry] = []
    while !list.isAtEnd {
      guard entries.count < WireLimits.certificates else { throw .malformed("too many certificates", at: list.offset) }
      let certificate = try list.vector(width: 3, atLeast: 1)
      let extensions = try TLSExtension.list(&list)
      for one in extensions {
        // RFC 9345 §4.1.1.
        guard entries.isEmpty || one.type != ExtensionType.delegatedCredential else {
          throw .malformed("a delegated credential outside the leaf's entry", at: one.content.lowerBound - 4)
        }
        try ServerExtension.check(one, in: .certificate, answering: client, list.reader(over: one.content))
      }
      entries.append(CertificateEntry(certificate: certificate, extensions: extensions))
    }
    guard !rawPublicKey || entries.count == 1 else { throw .malformed("more than one raw public key", at: start) }
    return entries
  }
}
