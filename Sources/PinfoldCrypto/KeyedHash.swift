import CSodium
package import PinfoldModel

/// BLAKE2b under a secret key (crypto_generichash(3)): a name for a value that only the key's owner can link to it.
///
/// With a key drawn at start, log lines can tell two clients or devices apart without saying who they are, and two
/// runs cannot be joined.
package struct KeyedHash: Sendable {
  /// Bytes of a key.
  package static let keyByteCount = Int(crypto_generichash_KEYBYTES)
  private static let pseudonymByteCount = 8

  private static let file = KeyFile(kind: "pinfold-hash-key", byteCount: keyByteCount)

  private let key: SecretBytes

  /// A new random key, which ends with the process.
  package init() throws(CryptoError) { key = try SecretBytes(randomCount: Self.keyByteCount) }

  /// A key of the caller's; `nil` unless it has 32 bytes.
  package init?(key: SecretBytes) {
    guard key.count == Self.keyByteCount else { return nil }
    self.key = key
  }

  /// Reads the key file, or makes it with a new key (mode 0600) when there is none. A file that cannot be read, or is
  /// none of this kind, is an error and stays untouched.
  package static func loadOrCreate(path: String, warnings: inout [String]) throws(CryptoError) -> KeyedHash {
    KeyedHash(holding: try file.readOrCreate(path, warnings: &warnings))
  }

  private init(holding key: SecretBytes) { self.key = key }

  /// 32 bytes that stand for `bytes` under this key.
  package func digest(_ bytes: [UInt8]) -> Digest256 {
    unsafe key.withPointer { pointer in
      unsafe Digest256(filling: { output in
        unsafe crypto_generichash(output, Digest256.byteCount, bytes, UInt64(bytes.count), pointer, key.count)
      })
    }
  }

  /// 16 hexadecimal digits that stand for `text` in a log line. Two of a million texts meet with a probability below 1 : 10⁷.
  package func pseudonym(_ text: String) -> String {
    Hex.encode(digest(Array(text.utf8)).bytes.prefix(Self.pseudonymByteCount))
  }
}
