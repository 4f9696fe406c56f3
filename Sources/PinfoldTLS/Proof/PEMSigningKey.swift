import COpenSSL

/// A private key that signs pin records: Ed25519, or P-256 for JWS "ES256". Owns one reference to an `EVP_PKEY`.
///
/// Sendable: the key is not changed after it was read, and each signature has a context of its own.
@safe package final class PEMSigningKey: Sendable {
  /// What it signs with.
  package enum Algorithm: Sendable {
    case ed25519, es256
  }

  /// Bytes of a PEM file: an Ed25519 key has 119.
  package static let byteLimit = 16_384

  nonisolated(unsafe) private let raw: OpaquePointer
  /// What it signs with.
  package let algorithm: Algorithm
  /// The DER SubjectPublicKeyInfo: 44 bytes for Ed25519, 91 for P-256.
  package let publicKey: [UInt8]

  /// Reads the first private key of a PEM text (PEM_read_bio_PrivateKey(3)): PKCS #8 or, for P-256, SEC 1.
  ///
  /// Throws `unreadable` for encrypted keys, other algorithms, other curves.
  package init(pem: Span<UInt8>) throws(TLSError) {
    ErrorQueue.clear()
    defer { ErrorQueue.clear() }
    guard let count = Int32(exactly: pem.count), count <= Self.byteLimit else {
      throw .tooLarge("more than \(Self.byteLimit) bytes")
    }
    let memory = unsafe pem.withUnsafeBufferPointer { unsafe BIO_new_mem_buf($0.baseAddress, count) }
    guard let memory = unsafe memory else { throw .drained("BIO_new_mem_buf") }
    defer { unsafe BIO_free(memory) }
    // Without an answer of its own OpenSSL would ask the terminal for a password.
    let key = unsafe PEM_read_bio_PrivateKey(memory, nil, { _, _, _, _ in -1 }, nil)
    guard let key = unsafe key else {
      throw .unreadable("no private key in PEM that is not encrypted; openssl genpkey -algorithm ed25519 makes one")
    }
    var encoded: UnsafeMutablePointer<UInt8>?
    let length = unsafe i2d_PUBKEY(key, &encoded)
    defer { unsafe pinfold_free(encoded) }
    let publicKey = unsafe Array(UnsafeBufferPointer(start: encoded, count: Int(max(0, length))))
    let isEd25519 = unsafe EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 && publicKey.count == 44
    guard isEd25519 || (try? ES256PublicKey(subjectPublicKeyInfo: publicKey)) != nil else {
      unsafe EVP_PKEY_free(key)
      throw .unreadable("a private key that is neither Ed25519 nor on P-256 with an uncompressed point")
    }
    unsafe raw = key
    algorithm = isEd25519 ? .ed25519 : .es256
    self.publicKey = publicKey
  }

  deinit { unsafe EVP_PKEY_free(raw) }

  /// The 64 bytes of a signature (EVP_DigestSign(3)): as of RFC 8032, or of RFC 7518 §3.4.
  package func sign(_ message: [UInt8]) throws(TLSError) -> [UInt8] {
    ErrorQueue.clear()
    defer { ErrorQueue.clear() }
    guard let context = unsafe EVP_MD_CTX_new() else { throw .drained("EVP_MD_CTX_new") }
    defer { unsafe EVP_MD_CTX_free(context) }
    let digest: String? = algorithm == .es256 ? "SHA256" : nil
    guard unsafe EVP_DigestSignInit_ex(context, nil, digest, nil, nil, raw, nil) == 1 else {
      throw .drained("EVP_DigestSignInit_ex")
    }
    var signature = [UInt8](repeating: 0, count: 128)
    var length = signature.count
    guard unsafe EVP_DigestSign(context, &signature, &length, message, message.count) == 1, length <= signature.count
    else { throw .drained("EVP_DigestSign") }
    signature = Array(signature[..<length])
    guard algorithm == .es256 else { return signature }
    guard let (r, s) = P256Verifier.numbers(signature) else {
      throw .failed(call: "EVP_DigestSign", detail: "a signature in another form than DER")
    }
    return r.digits + s.digits
  }
}
