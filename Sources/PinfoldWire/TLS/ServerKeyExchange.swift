/// A signed ServerKeyExchange (RFC 5246 §7.4.3, RFC 8422 §5.4). Ranges are those of the flight's `handshake`.
package struct ServerKeyExchange: Equatable, Sendable {
  /// The parameters exactly as signed: the signature covers client random, server random, and these bytes.
  package let parameters: Range<Int>
  /// The signature scheme; nil before TLS 1.2, where it is MD5 with SHA-1 for RSA and SHA-1 for ECDSA and DSA.
  package let scheme: UInt16?
  /// The signature.
  package let signature: Range<Int>
  /// The named group; nil for finite-field parameters.
  package let group: UInt16?
  /// Bits of the prime of finite-field parameters; nil for a named group.
  package let primeBits: Int?

  /// Reads the body of the message. A named group and a scheme have to be among those the client offered.
  @_lifetime(reader: copy reader)
  init(
    _ reader: inout ByteReader, _ agreement: KeyAgreement, in bytes: [UInt8], version: UInt16,
    answering client: ClientHello
  ) throws(WireError) {
    let start = reader.offset
    switch agreement {
    case .ecdhe:
      // 3 is named_curve; the explicit forms are deprecated (RFC 8422 §5.4) and open to CVE-2020-0601's kind of trick.
      guard try reader.u8() == 3 else { throw .malformed("an explicit curve in the ServerKeyExchange", at: start) }
      let group = try reader.u16()
      guard client.supportedGroups.isEmpty || client.supportedGroups.contains(group) else {
        throw .malformed("the ServerKeyExchange has a group that was not offered", at: start + 1)
      }
      // RFC 8422 §5.1.1, RFC 7027: the groups above are TLS 1.3's, finite fields, hybrids and GREASE.
      guard (1...30).contains(group) else {
        throw .malformed("the ServerKeyExchange has a group that is no curve of TLS 1.2", at: start + 1)
      }
      _ = try reader.vector(width: 1, atLeast: 1)
      self.group = group
      primeBits = nil
    case .dhe:
      let prime = try reader.vector(width: 2, atLeast: 1)
      _ = try reader.vector(width: 2, atLeast: 1)
      _ = try reader.vector(width: 2, atLeast: 1)
      let significant = bytes[prime].drop { $0 == 0 }
      primeBits = significant.count * 8 - (significant.first?.leadingZeroBitCount ?? 0)
      group = nil
    }
    parameters = start..<reader.offset
    if version == TLSVersion.tls12 {
      let offset = reader.offset
      let scheme = try reader.u16()
      // RFC 5246 §7.4.1.4.1: without the extension the client takes SHA-1 with RSA, DSA or ECDSA.
      let offered: [UInt16] =
        client.signatureAlgorithms.isEmpty ? [0x0201, 0x0202, 0x0203] : client.signatureAlgorithms
      guard offered.contains(scheme) else {
        throw .malformed("the ServerKeyExchange has a signature scheme that was not offered", at: offset)
      }
      self.scheme = scheme
    } else {
      scheme = nil
    }
    signature = try reader.vector(width: 2, atLeast: 1)
    try reader.finish()
  }
}
