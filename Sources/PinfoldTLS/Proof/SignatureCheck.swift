import COpenSSL

/// How a signature is made: the digest and, for RSA, the padding.
struct SignatureMethod: Hashable, Sendable {
  enum Padding: Sendable { case none, pkcs1, pss }
  enum Hash: Sendable { case none, sha1, md5sha1, sha224, sha256, sha384, sha512 }

  let hash: Hash
  let padding: Padding

  /// The fetched digest; `nil` where the algorithm hashes for itself (EdDSA).
  var digest: Digest? {
    switch hash {
    case .none: nil
    case .sha1: .sha1
    case .md5sha1: .md5sha1
    case .sha224: .sha224
    case .sha256: .sha256
    case .sha384: .sha384
    case .sha512: .sha512
    }
  }
}

/// A context that is ready to verify by one key and method. Owns an `EVP_PKEY_CTX` or, for EdDSA, which has no
/// verification of a digest alone, an `EVP_MD_CTX` that is set up anew each time.
///
/// Kept and used again: setting one up costs about a fifth of a P-256 verification.
///
/// Sendable: `LeafKey` lends each to one thread at a time.
@safe final class SignatureCheck: Sendable {
  let method: SignatureMethod
  private let key: Unmanaged<LeafKey>
  nonisolated(unsafe) private let prepared: OpaquePointer?

  /// `nil` when OpenSSL refuses the combination. The key must outlive the check; `LeafKey`, which owns its checks,
  /// lends them for the length of its own method only.
  init?(_ key: LeafKey, _ method: SignatureMethod) {
    self.method = method
    unsafe self.key = Unmanaged.passUnretained(key)
    guard let digest = method.digest else {
      unsafe prepared = nil
      return
    }
    ErrorQueue.clear()
    defer { ErrorQueue.clear() }
    guard let digest = unsafe digest.raw, let raw = unsafe key.raw,
      let context = unsafe EVP_PKEY_CTX_new_from_pkey(nil, raw, nil)
    else {
      unsafe prepared = nil
      return nil
    }
    unsafe prepared = context
    guard unsafe EVP_PKEY_verify_init(context) == 1 else { return nil }
    switch method.padding {
    case .none: break
    case .pkcs1: guard unsafe pinfold_use_pkcs1(context) == 1 else { return nil }
    case .pss: guard unsafe pinfold_use_pss(context) == 1 else { return nil }
    }
    guard unsafe EVP_PKEY_CTX_set_signature_md(context, digest) == 1 else { return nil }
  }

  deinit { unsafe EVP_PKEY_CTX_free(prepared) }

  /// EVP_PKEY_verify(3) over the digest of `content`, or EVP_DigestVerify(3). Errors count as no.
  func verifies(_ signature: [UInt8], over content: [UInt8]) -> Bool {
    ErrorQueue.clear()
    defer { ErrorQueue.clear() }
    guard let digest = method.digest else { return verifiesWhole(signature, content) }
    guard let prepared = unsafe prepared, let hash = try? digest.hash(content) else { return false }
    return unsafe EVP_PKEY_verify(prepared, signature, signature.count, hash, hash.count) == 1
  }

  private func verifiesWhole(_ signature: [UInt8], _ content: [UInt8]) -> Bool {
    guard let context = unsafe EVP_MD_CTX_new() else { return false }
    defer { unsafe EVP_MD_CTX_free(context) }
    return unsafe key._withUnsafeGuaranteedRef { key in
      guard unsafe EVP_DigestVerifyInit_ex(context, nil, nil, nil, nil, key.raw, nil) == 1 else { return false }
      return unsafe EVP_DigestVerify(context, signature, signature.count, content, content.count) == 1
    }
  }
}
