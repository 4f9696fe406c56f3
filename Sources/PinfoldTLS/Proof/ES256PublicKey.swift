/// A P-256 public key that verifies JWS "ES256" signatures (RFC 7518 §3.4).
package struct ES256PublicKey: Hashable, Sendable {
  /// Bytes of a signature: both numbers in 32 bytes each, most significant byte first. Not DER.
  package static let signatureByteCount = 64
  /// The DER of a P-256 SubjectPublicKeyInfo with an uncompressed point, up to the point (RFC 5480 §2).
  static let derPrefix: [UInt8] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04,
  ]
  /// Bytes of the whole SubjectPublicKeyInfo.
  package static let derByteCount = derPrefix.count + 64

  /// The DER SubjectPublicKeyInfo: 91 bytes, in the one form that every writer of such keys has.
  package let der: [UInt8]
  private let key: LeafKey

  /// Reads the 91 bytes of a SubjectPublicKeyInfo with an uncompressed point. Throws `unreadable` for any other form,
  /// another curve, and a point that is not on the curve.
  package init(subjectPublicKeyInfo der: [UInt8]) throws(TLSError) {
    guard der.count == Self.derByteCount, der.starts(with: Self.derPrefix) else {
      throw .unreadable("not the SPKI DER of a P-256 key with an uncompressed point (MFkwEwYHKoZI…)")
    }
    let key = try LeafKey(subjectPublicKeyInfo: der)
    guard key.kind == .ellipticCurve("prime256v1") else { throw .unreadable("not a key on P-256") }
    self.der = der
    self.key = key
  }

  /// Whether `signature` is this key's over `message`. Any other length than 64 bytes, DER among them, is no signature.
  package func verifies(_ signature: [UInt8], of message: [UInt8]) -> Bool {
    guard signature.count == Self.signatureByteCount else { return false }
    let body = Self.number(signature[..<32]) + Self.number(signature[32...])
    let der = [0x30, UInt8(truncatingIfNeeded: body.count)] + body
    return key.verifies(der, over: message, SignatureMethod(hash: .sha256, padding: .none))
  }

  /// A DER INTEGER, at most 35 bytes.
  private static func number(_ digits: ArraySlice<UInt8>) -> [UInt8] {
    var digits = Array(digits.drop { $0 == 0 })
    if (digits.first ?? 0x80) >= 0x80 { digits.insert(0, at: 0) }
    return [0x02, UInt8(truncatingIfNeeded: digits.count)] + digits
  }

  package static func == (left: Self, right: Self) -> Bool { left.der == right.der }
  package func hash(into hasher: inout Hasher) { hasher.combine(der) }
}
