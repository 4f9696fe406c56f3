/// One pin: a hash that the upstream's key or certificate has to have.
package enum Pin: Hashable, Sendable {
  /// SHA-256 over the DER SubjectPublicKeyInfo (RFC 7469 §2.4), written `sha256/…`.
  case publicKey(Digest256)
  /// SHA-256 over the whole DER certificate, written `cert-sha256/…`.
  case certificate(Digest256)

  private static let publicKeyPrefix = "sha256/"
  private static let certificatePrefix = "cert-sha256/"

  /// Reads `sha256/` or `cert-sha256/` followed by 44 characters of base64 or 64 hexadecimal digits.
  package init?(_ text: some StringProtocol) {
    if text.hasPrefix(Self.publicKeyPrefix) {
      guard let digest = Self.digest(text.dropFirst(Self.publicKeyPrefix.count)) else { return nil }
      self = .publicKey(digest)
    } else if text.hasPrefix(Self.certificatePrefix) {
      guard let digest = Self.digest(text.dropFirst(Self.certificatePrefix.count)) else { return nil }
      self = .certificate(digest)
    } else {
      return nil
    }
  }

  private static func digest(_ text: some StringProtocol) -> Digest256? {
    let bytes = text.utf8.count == 64 ? Hex.decode(text) : Base64.decode(text)
    return bytes.flatMap { Digest256($0) }
  }

  /// The written form, always with base64.
  package var text: String {
    switch self {
    case .publicKey(let digest): Self.publicKeyPrefix + digest.base64
    case .certificate(let digest): Self.certificatePrefix + digest.base64
    }
  }
}
