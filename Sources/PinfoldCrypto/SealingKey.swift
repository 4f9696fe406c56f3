import CSodium

/// XChaCha20-Poly1305 under a key from a file: what lies in the state directory can be neither read nor altered, nor
/// one record put in another's place, without the key.
package struct SealingKey: Sendable {
  private static let keyByteCount = Int(crypto_aead_xchacha20poly1305_ietf_KEYBYTES)
  private static let nonceByteCount = Int(crypto_aead_xchacha20poly1305_ietf_NPUBBYTES)
  private static let tagByteCount = Int(crypto_aead_xchacha20poly1305_ietf_ABYTES)
  private static let file = KeyFile(kind: "pinfold-sealing-key", byteCount: keyByteCount)

  /// Bytes that sealing adds: a random nonce in front (192 bits never meet twice by chance) and the tag behind.
  package static let overhead = nonceByteCount + tagByteCount

  private let key: SecretBytes

  /// A new random key.
  package init() throws(CryptoError) { key = try SecretBytes(randomCount: Self.keyByteCount) }

  /// Reads a key file (`KeyFile` has the format) and says in `warnings` when others may read it too.
  package init(path: String, warnings: inout [String]) throws(CryptoError) {
    key = try Self.file.read(path, warnings: &warnings)
  }

  /// Reads the key file, or makes it with a new key (mode 0600) when there is none. A file that cannot be read, or is
  /// none of this kind, is an error and stays untouched.
  package static func loadOrCreate(path: String, warnings: inout [String]) throws(CryptoError) -> SealingKey {
    SealingKey(holding: try file.readOrCreate(path, warnings: &warnings))
  }

  private init(holding key: SecretBytes) { self.key = key }

  /// Writes a new key file of mode 0600. An existing file is never overwritten.
  package func write(to path: String) throws(CryptoError) { try Self.file.create(path, secret: key) }

  /// Seals `plain` for `context` (such as the record's name), which is bound but not contained: nonce, cipher text,
  /// tag (crypto_aead_xchacha20poly1305_ietf_encrypt(3)).
  package func seal(_ plain: [UInt8], context: [UInt8]) throws(CryptoError) -> [UInt8] {
    let nonce = try Random.bytes(Self.nonceByteCount)
    let (body, status) = unsafe process(plain, capacity: plain.count + Self.tagByteCount) {
      output, length, input, count, key in
      unsafe crypto_aead_xchacha20poly1305_ietf_encrypt(
        output, length, input, count, context, UInt64(context.count), nil, nonce, key)
    }
    guard status == 0 else { throw .sealBroken }
    return nonce + body
  }

  /// The plain bytes of what `seal` made for the same context; anything else throws `sealBroken`.
  package func open(_ sealed: [UInt8], context: [UInt8]) throws(CryptoError) -> [UInt8] {
    guard sealed.count >= Self.overhead else { throw .sealBroken }
    let nonce = Array(sealed[..<Self.nonceByteCount])
    let body = Array(sealed[Self.nonceByteCount...])
    let (plain, status) = unsafe process(body, capacity: body.count - Self.tagByteCount) {
      output, length, input, count, key in
      unsafe crypto_aead_xchacha20poly1305_ietf_decrypt(
        output, length, nil, input, count, context, UInt64(context.count), nonce, key)
    }
    guard status == 0 else { throw .sealBroken }
    return plain
  }

  /// A hash under a key derived from this one (crypto_kdf_derive_from_key(3)): names by which only the key's owner can
  /// find a record. Each `number` gives another hash; knowing its values says nothing about the key.
  package func derivedHash(number: UInt64) throws(CryptoError) -> KeyedHash {
    let derived = try unsafe SecretBytes(count: KeyedHash.keyByteCount) { output in
      unsafe key.withPointer { key in
        _ = unsafe crypto_kdf_derive_from_key(output, KeyedHash.keyByteCount, number, "pinfold_", key)
      }
    }
    guard let hash = KeyedHash(key: derived) else { throw .secureMemoryUnavailable }
    return hash
  }

  private typealias Operation = (
    UnsafeMutablePointer<UInt8>, UnsafeMutablePointer<UInt64>, UnsafePointer<UInt8>, UInt64, UnsafePointer<UInt8>
  ) -> Int32

  /// Runs one AEAD call over input, key and fresh output of `capacity` bytes.
  private func process(
    _ input: [UInt8], capacity: Int, _ operation: Operation
  ) -> (bytes: [UInt8], status: Int32) {
    var status: Int32 = -1
    var length: UInt64 = 0
    // One byte more: an empty array has no address to hand out.
    var bytes = [UInt8](repeating: 0, count: capacity + 1)
    unsafe key.withPointer { key in
      status = unsafe operation(&bytes, &length, input, UInt64(input.count), key)
    }
    bytes.removeLast(bytes.count - min(Int(length), capacity))
    return (bytes, status)
  }
}
