/// The server's encrypted flight of TLS 1.3, EncryptedExtensions to Finished, after decryption: read, not judged.
///
/// Ranges index `handshake`. The transcript of a message is everything before it: the clear hellos, then `handshake` up
/// to its lower bound.
package struct EncryptedFlight: Sendable {
  /// One handshake message: its type and where it lies, header included.
  package struct Message: Equatable, Sendable {
    /// The type number.
    package let type: UInt8
    /// Header and body.
    package let range: Range<Int>
  }

  /// What stands where the certificate is.
  package enum Certificate: Equatable, Sendable {
    /// None: the handshake rests on a pre-shared key.
    case none
    /// A Certificate message's entries, leaf first.
    case entries([CertificateEntry])
    /// A raw public key (RFC 7250).
    case rawPublicKey(Range<Int>)
    /// A CompressedCertificate (RFC 8879): open it, then read it with `EncryptedFlight.certificate(opened:…)`.
    case compressed(algorithm: UInt16, length: Int, content: Range<Int>)
  }

  /// The handshake messages as decrypted, one behind the other.
  package let handshake: [UInt8]
  /// All messages in order.
  package let messages: [Message]
  /// Extensions of EncryptedExtensions in order.
  package let extensions: [TLSExtension]
  /// The protocol chosen by ALPN.
  package let alpnRange: Range<Int>?
  /// Whether 0-RTT data was taken.
  package let acceptsEarlyData: Bool
  /// Whether the server asks for a client certificate.
  package let requestsClientCertificate: Bool
  /// Whether EncryptedExtensions chose a raw public key.
  package let usesRawPublicKey: Bool
  /// What stands where the certificate is.
  package let certificate: Certificate
  /// Scheme of the CertificateVerify; nil without a certificate.
  package let scheme: UInt16?
  /// Signature of the CertificateVerify; nil without a certificate.
  package let signature: Range<Int>?
  /// The content of Finished: one digest of the suite's hash.
  package let verifyData: Range<Int>

  /// The bytes of a range.
  package func bytes(_ range: Range<Int>) -> ArraySlice<UInt8> { handshake[range] }

  /// The message of a type; each type stands at most once.
  package func message(_ type: UInt8) -> Message? { messages.first { $0.type == type } }

  /// The protocol chosen by ALPN.
  package var alpn: ArraySlice<UInt8>? { alpnRange.map { handshake[$0] } }

  /// Reads a Certificate body that was opened from a CompressedCertificate. Ranges index `body`.
  ///
  /// - Throws: `malformed`, offsets counted from the first byte of `body`.
  package static func certificate(
    opened body: [UInt8], answering client: ClientHello, rawPublicKey: Bool
  ) throws(WireError) -> Certificate {
    var reader = ByteReader(body.span)
    return try certificate(&reader, answering: client, rawPublicKey: rawPublicKey)
  }

  @_lifetime(reader: copy reader)
  static func certificate(
    _ reader: inout ByteReader, answering client: ClientHello, rawPublicKey: Bool
  ) throws(WireError) -> Certificate {
    let entries = try CertificateMessage.entries(&reader, answering: client, rawPublicKey: rawPublicKey)
    guard rawPublicKey, let key = entries.first else { return .entries(entries) }
    return .rawPublicKey(key.certificate)
  }
}
