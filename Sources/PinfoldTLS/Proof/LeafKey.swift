import COpenSSL
package import PinfoldModel
import Synchronization

/// A server's public key. Owns one reference to an `EVP_PKEY` (EVP_PKEY_free(3)), and contexts that are ready to
/// verify with it.
///
/// Sendable: an `EVP_PKEY` is not changed after it was read and its reference count is atomic; contexts, which are
/// for one thread at a time, are lent out one by one under the `Mutex`.
@safe package final class LeafKey: Sendable {
  /// What the key is, as far as signatures care.
  package enum Kind: Hashable, Sendable {
    /// `rsaEncryption`: PKCS #1 v1.5 signatures, PSS ("rsae"), and static RSA key exchange.
    case rsa
    /// `id-RSASSA-PSS`: PSS only.
    case rsaPSS
    /// On a named curve, by OpenSSL's name for it.
    case ellipticCurve(String)
    case ed25519
    case ed448
    /// DSA, ML-DSA, or anything this OpenSSL cannot use: never proven.
    case unusable
  }

  nonisolated(unsafe) let raw: OpaquePointer?
  /// SHA-256 over the DER SubjectPublicKeyInfo (RFC 7469 §2.4).
  package let digest: Digest256
  /// What the key is.
  package let kind: Kind

  let hot = HotKey()
  private let idle = Mutex<[SignatureCheck]>([])
  /// Contexts kept per key: as many as there are likely to be threads.
  private static let idleLimit = 16

  /// The key of a certificate. One that this OpenSSL cannot read is `unusable`, not an error: its hash is known all
  /// the same.
  init(of certificate: Certificate) throws(TLSError) {
    ErrorQueue.clear()
    unsafe raw = X509_get_pubkey(certificate.raw)
    digest = certificate.keyDigest
    kind = unsafe Self.kind(of: raw)
    ErrorQueue.clear()
  }

  /// A key by itself: exactly one DER SubjectPublicKeyInfo (RFC 7250 §3).
  package init(subjectPublicKeyInfo der: [UInt8]) throws(TLSError) {
    digest = try Digest.sha256(der)
    ErrorQueue.clear()
    let key = unsafe der.withUnsafeBufferPointer { bytes -> OpaquePointer? in
      var cursor = bytes.baseAddress
      guard let start = unsafe cursor, let key = unsafe d2i_PUBKEY(nil, &cursor, bytes.count) else { return nil }
      if let end = unsafe cursor, unsafe start.distance(to: end) == bytes.count { return unsafe key }
      unsafe EVP_PKEY_free(key)
      return nil
    }
    guard let key = unsafe key else { throw .unreadable("not a DER public key: \(ErrorQueue.drain())") }
    unsafe raw = key
    kind = unsafe Self.kind(of: key)
  }

  deinit { unsafe EVP_PKEY_free(raw) }

  private static func kind(of key: OpaquePointer?) -> Kind {
    guard let key = unsafe key else { return .unusable }
    switch unsafe EVP_PKEY_get_base_id(key) {
    case EVP_PKEY_RSA: return .rsa
    case EVP_PKEY_RSA_PSS: return .rsaPSS
    case EVP_PKEY_ED25519: return .ed25519
    case EVP_PKEY_ED448: return .ed448
    case EVP_PKEY_EC:
      var name = [CChar](repeating: 0, count: 64)
      var length = 0
      guard unsafe EVP_PKEY_get_group_name(key, &name, name.count, &length) == 1, (1..<64).contains(length) else {
        return .unusable
      }
      return .ellipticCurve(String(decoding: name[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self))
    default: return .unusable
    }
  }

  /// Whether `signature` over `content` was made by this key with `method`. Errors count as no.
  func verifies(_ signature: [UInt8], over content: [UInt8], _ method: SignatureMethod) -> Bool {
    if method.padding == .none, let digest = method.digest, kind == .ellipticCurve("prime256v1"),
      let verifier = hot.verifier(for: self), let hash = try? digest.hash(content),
      verifier.accepts(signature, hash: hash)
    {
      return true
    }
    let lent = idle.withLock { checks in
      checks.lastIndex { $0.method == method }.map { checks.remove(at: $0) }
    }
    guard let check = lent ?? SignatureCheck(self, method) else { return false }
    let result = check.verifies(signature, over: content)
    // One that failed is thrown away: a context is reused only after it did its work.
    if result { idle.withLock { if $0.count < Self.idleLimit { $0.append(check) } } }
    return result
  }
}
