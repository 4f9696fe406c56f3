import CSodium
import PinfoldModel

/// An Ed25519 public key (RFC 8032): 32 bytes that are known to be a point of the prime-order group.
package struct Ed25519PublicKey: Hashable, Sendable, CustomStringConvertible {
  /// Bytes of a raw key.
  package static let byteCount = Int(crypto_sign_PUBLICKEYBYTES)
  /// Bytes of a signature.
  package static let signatureByteCount = Int(crypto_sign_BYTES)
  /// The DER of an Ed25519 SubjectPublicKeyInfo up to the key's own bytes (RFC 8410 §4, §10.1).
  static let derPrefix: [UInt8] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00]

  /// The 32 raw bytes.
  package let bytes: [UInt8]
  /// The first 16 hexadecimal digits of SHA-256 over the raw bytes: the `keyid` of a DSSE signature.
  package let keyID: String

  /// Takes 32 raw bytes. Throws `publicKey(.wrongLength)`, or `.weakPoint` for what
  /// crypto_core_ed25519_is_valid_point(3) turns down: non-canonical, small-order, or outside the main subgroup.
  package init(raw bytes: [UInt8]) throws(CryptoError) {
    try Sodium.start()
    guard bytes.count == Self.byteCount else { throw .publicKey(.wrongLength(bytes.count)) }
    let isPoint = unsafe crypto_core_ed25519_is_valid_point(bytes)
    guard isPoint == 1 else { throw .publicKey(.weakPoint) }
    self.bytes = bytes
    keyID = Hex.encode(SHA256.digest(bytes).bytes.prefix(8))
  }

  /// Reads base64 of the 32 raw bytes or of the 44 bytes of SPKI DER, exactly; anything else throws
  /// `publicKey(…)` saying what would be right.
  package init(_ text: some StringProtocol) throws(CryptoError) {
    guard let decoded = Base64.decode(text) else { throw .publicKey(.notBase64) }
    switch decoded.count {
    case Self.byteCount:
      try self.init(raw: decoded)
    case Self.derPrefix.count + Self.byteCount:
      guard decoded.starts(with: Self.derPrefix) else { throw .publicKey(.otherAlgorithm) }
      try self.init(raw: Array(decoded[Self.derPrefix.count...]))
    default:
      throw .publicKey(.wrongLength(decoded.count))
    }
  }

  /// Whether `signature` (64 bytes) is this key's over `message` (crypto_sign_verify_detached(3)); any other length
  /// is no signature.
  package func verifies(_ signature: [UInt8], of message: [UInt8]) -> Bool {
    guard signature.count == Self.signatureByteCount else { return false }
    return unsafe crypto_sign_verify_detached(signature, message, UInt64(message.count), bytes) == 0
  }

  /// Base64 of the raw bytes, 44 characters: what `keygen` prints.
  package var text: String { Base64.encode(bytes) }
  /// DER SubjectPublicKeyInfo, 44 bytes (RFC 8410).
  package var der: [UInt8] { Self.derPrefix + bytes }
  /// The written form.
  package var description: String { text }
}
