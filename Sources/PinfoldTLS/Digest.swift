import COpenSSL
import PinfoldModel

/// A digest algorithm, fetched once. EVP_sha256(3) and its like are looked up anew by every use; a fetched `EVP_MD`
/// is not (EVP_MD_fetch(3), "Performance").
///
/// Sendable: an `EVP_MD` never changes after it was fetched; it lives as long as the process.
@safe struct Digest: Sendable {
  nonisolated(unsafe) let raw: OpaquePointer?
  let byteCount: Int

  private init(_ name: String, _ byteCount: Int) {
    unsafe raw = EVP_MD_fetch(nil, name, nil)
    self.byteCount = byteCount
    ErrorQueue.clear()
  }

  static let sha1 = Digest("SHA1", 20)
  static let sha256 = Digest("SHA256", 32)
  static let sha384 = Digest("SHA384", 48)
  static let sha512 = Digest("SHA512", 64)
  static let sha224 = Digest("SHA224", 28)
  /// MD5 and SHA-1 side by side: what TLS 1.0 and 1.1 sign with RSA (RFC 4346 §7.4.3).
  static let md5sha1 = Digest("MD5-SHA1", 36)

  /// The digest of all bytes, EVP_Digest(3).
  func hash(_ bytes: [UInt8]) throws(TLSError) -> [UInt8] {
    guard let raw = unsafe raw else { throw .failed(call: "EVP_MD_fetch", detail: "digest not available") }
    ErrorQueue.clear()
    var succeeded = false
    let output = unsafe [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { output, count in
      var length: UInt32 = 0
      succeeded = unsafe EVP_Digest(bytes, bytes.count, output.baseAddress, &length, raw, nil) == 1
      count = succeeded ? Int(length) : 0
    }
    guard succeeded else { throw .drained("EVP_Digest") }
    return output
  }

  /// SHA-256 as the model's value type.
  static func sha256(_ bytes: [UInt8]) throws(TLSError) -> Digest256 {
    guard let digest = Digest256(try sha256.hash(bytes)[...]) else {
      throw .failed(call: "EVP_Digest", detail: "SHA-256 of a wrong length")
    }
    return digest
  }
}

/// A SHA-256 in parts. Owns an `EVP_MD_CTX` (EVP_MD_CTX_free(3)); for one thread.
@safe struct RunningDigest: ~Copyable {
  private let raw: OpaquePointer

  init() throws(TLSError) {
    ErrorQueue.clear()
    guard let raw = unsafe EVP_MD_CTX_new() else { throw .drained("EVP_MD_CTX_new") }
    guard let digest = unsafe Digest.sha256.raw, unsafe EVP_DigestInit_ex2(raw, digest, nil) == 1 else {
      unsafe EVP_MD_CTX_free(raw)
      throw .drained("EVP_DigestInit_ex2")
    }
    unsafe self.raw = raw
  }

  deinit { unsafe EVP_MD_CTX_free(raw) }

  /// Adds bytes; `false` when OpenSSL failed, after which the digest is worthless.
  func add(_ bytes: UnsafeRawBufferPointer) -> Bool {
    unsafe EVP_DigestUpdate(raw, bytes.baseAddress, bytes.count) == 1
  }

  /// The digest of all bytes added.
  consuming func finish() -> Digest256? {
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: Digest256.byteCount) { output, count in
      count = unsafe EVP_DigestFinal_ex(raw, output.baseAddress, nil) == 1 ? Digest256.byteCount : 0
    }
    return Digest256(bytes[...])
  }
}
