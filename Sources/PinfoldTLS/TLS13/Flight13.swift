package import PinfoldModel
package import PinfoldWire

/// What a TLS 1.3 server showed in its encrypted flight, after everything in it was verified.
///
/// It exists only where the records opened under the handshake secret, the CertificateVerify (if there has to be one)
/// verified by the key shown, and the server's Finished matched the whole transcript. Chain, name and pins are not
/// looked at here.
package struct Flight13: Sendable {
  /// Who the server is.
  package enum Identity: Sendable {
    /// Certificates in DER as sent, leaf first, never empty. The leaf was read and its key is proven; the others were
    /// not looked at.
    case certificates([[UInt8]], leaf: LeafMemory.Leaf)
    /// A raw public key (RFC 7250), proven. The DER SubjectPublicKeyInfo as sent.
    case rawPublicKey([UInt8], LeafKey)
    /// None: the handshake rests on a pre-shared key of an earlier session. No key was shown.
    case preSharedKey
  }

  /// Who the server is.
  package let identity: Identity
  /// Whether the CertificateVerify was made with a delegated credential that the leaf signed (RFC 9345), and not with
  /// the leaf's key itself.
  package let usesDelegatedCredential: Bool
  /// How the Certificate came compressed; nil when it did not.
  package let compression: CertificateOpener.Algorithm?
  /// The flight's messages as decrypted.
  package let messages: EncryptedFlight
  /// Offset in the server's stream behind the record that ends with the Finished.
  package let end: Int

  /// The certificates in DER as sent, leaf first; empty without any.
  package var certificates: [[UInt8]] {
    if case .certificates(let list, _) = identity { list } else { [] }
  }

  /// SHA-256 of the SubjectPublicKeyInfo that was proven; nil for a pre-shared key.
  package var leafKey: Digest256? {
    switch identity {
    case .certificates(_, let leaf): leaf.certificate.keyDigest
    case .rawPublicKey(_, let key): key.digest
    case .preSharedKey: nil
    }
  }
}
