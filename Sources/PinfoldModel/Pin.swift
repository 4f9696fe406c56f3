/// One pin: a hash that the upstream's key or certificate has to have.
package enum Pin: Hashable, Sendable {
  /// SHA-256 over the DER SubjectPublicKeyInfo (RFC 7469 §2.4), written `sha256/…`.
  case publicKey(Digest256)
  /// SHA-256 over the whole DER certificate, written `cert-sha256/…`.
  case certificate(Digest256)

  private static let publicKeyPrefix = Array("sha256/".utf8)
  private static let certificatePrefix = Array("cert-sha256/".utf8)

  /// Reads `sha256/` or `cert-sha256/` followed by 44 characters of base64 or 64 hexadecimal digits.
  package init?(_ text: some StringProtocol) {
    self.init(utf8: Array(text.utf8))
  }

  /// The same for bytes: documents have a million of them.
  private init?(utf8 text: [UInt8]) {
    if text.starts(with: Self.publicKeyPrefix) {
      guard let digest = Self.digest(text.dropFirst(Self.publicKeyPrefix.count)) else { return nil }
      self = .publicKey(digest)
    } else if text.starts(with: Self.certificatePrefix) {
      guard let digest = Self.digest(text.dropFirst(Self.certificatePrefix.count)) else { return nil }
      self = .certificate(digest)
    } else {
      return nil
    }
  }

  private static func digest(_ text: ArraySlice<UInt8>) -> Digest256? {
    let bytes =
      text.count == 64
      ? Hex.decode(String(decoding: text, as: UTF8.self)) : Base64.decode(text, urlSafe: false)
    return bytes.flatMap { Digest256($0[...]) }
  }

  /// The written form, always with base64.
  package var text: String {
    switch self {
    case .publicKey(let digest): "sha256/" + digest.base64
    case .certificate(let digest): "cert-sha256/" + digest.base64
    }
  }
}
