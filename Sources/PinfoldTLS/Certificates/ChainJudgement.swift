package import PinfoldModel

/// What is true of the certificates (or the raw public key) a server showed, for one host at one time.
///
/// Pins and policy are not looked at here. Immutable, so that one judgement serves every tunnel that meets the same
/// chain.
package final class ChainJudgement: Sendable {
  /// One certificate of the path that was built and verified.
  package struct Link: Equatable, Sendable {
    /// SHA-256 over its SubjectPublicKeyInfo.
    package let key: Digest256
    /// SHA-256 over the whole certificate.
    package let certificate: Digest256
  }

  /// The key that has to sign the handshake.
  package let leafKey: LeafKey
  /// SHA-256 over the leaf certificate; `nil` for a raw public key.
  package let leafCertificateDigest: Digest256?
  /// Whether a path to a trusted authority was built and every check on it passed. `false` for a raw public key.
  package let chainVerified: Bool
  /// Why not, in OpenSSL's constant words (X509_verify_cert_error_string(3)); `nil` when it verified.
  package let chainError: String?
  /// Whether the leaf is good for the host. Independent of `chainVerified`; `false` for a raw public key.
  package let nameMatches: Bool
  /// The path from leaf to root **as built and verified**, never the list as sent: a pinned authority that a stranger
  /// appended to his chain is not in it. Empty unless `chainVerified`.
  package let builtChain: [Link]
  /// End of validity of the first certificate on the path to expire; of the leaf, when none was verified.
  package let validUntil: Timestamp

  /// SHA-256 over the leaf's SubjectPublicKeyInfo (RFC 7469 §2.4).
  package var leafKeyDigest: Digest256 { leafKey.digest }

  init(
    leafKey: LeafKey, leafCertificateDigest: Digest256?, chainError: String?, nameMatches: Bool, builtChain: [Link],
    validUntil: Timestamp
  ) {
    self.leafKey = leafKey
    self.leafCertificateDigest = leafCertificateDigest
    self.chainError = chainError
    chainVerified = chainError == nil && !builtChain.isEmpty
    self.nameMatches = nameMatches
    self.builtChain = builtChain
    self.validUntil = validUntil
  }
}
