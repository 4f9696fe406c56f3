import CSodium

/// An Ed25519 secret key (RFC 8032) in guarded memory.
package struct Ed25519SecretKey: Sendable {
  private static let seedByteCount = Int(crypto_sign_SEEDBYTES)
  private static let file = KeyFile(kind: "pinfold-ed25519-secret-key", byteCount: seedByteCount)

  /// libsodium's form: the seed, then the public key.
  private let secret: SecretBytes
  private let seed: SecretBytes
  /// The key that verifies this one's signatures.
  package let publicKey: Ed25519PublicKey

  /// A new random key.
  package init() throws(CryptoError) {
    try self.init(seed: SecretBytes(randomCount: Self.seedByteCount))
  }

  /// The key of a 32-byte seed (crypto_sign_seed_keypair(3)), the "private key" of RFC 8032 §5.1.5.
  package init(seed: SecretBytes) throws(CryptoError) {
    guard seed.count == Self.seedByteCount else { throw .seedLength(seed.count) }
    var raw = [UInt8](repeating: 0, count: Ed25519PublicKey.byteCount)
    self.seed = seed
    secret = try unsafe SecretBytes(count: Int(crypto_sign_SECRETKEYBYTES)) { output in
      _ = unsafe seed.withPointer { unsafe crypto_sign_seed_keypair(&raw, output, $0) }
    }
    publicKey = try Ed25519PublicKey(raw: raw)
  }

  /// Reads a key file (`KeyFile` has the format) and says in `warnings` when others may read it too.
  package init(path: String, warnings: inout [String]) throws(CryptoError) {
    try self.init(seed: Self.file.read(path, warnings: &warnings))
  }

  /// Writes a new key file of mode 0600. An existing file is never overwritten.
  package func write(to path: String) throws(CryptoError) {
    try Self.file.create(path, secret: seed)
  }

  /// The 64-byte signature over `message` (crypto_sign_detached(3)). The same message has the same signature.
  package func sign(_ message: [UInt8]) -> [UInt8] {
    var signature = [UInt8](repeating: 0, count: Ed25519PublicKey.signatureByteCount)
    unsafe secret.withPointer { secret in
      _ = unsafe crypto_sign_detached(&signature, nil, message, UInt64(message.count), secret)
    }
    return signature
  }
}
