import COpenSSL

/// A key pair of a classical group, made for one handshake. Owns one reference to an `EVP_PKEY` (EVP_PKEY_free(3),
/// which zeroes the private half).
///
/// Sendable: the key is not changed after it was made, its reference count is atomic.
@safe final class EphemeralKey: Sendable {
  // Never changed after init; EVP_PKEY counts its references atomically.
  private nonisolated(unsafe) let raw: OpaquePointer
  /// The public half as it stands in a key_share: raw, an uncompressed point, or a number padded to the prime's length.
  let publicShare: [UInt8]
  private let isFiniteField: Bool

  /// Makes a key pair: EVP_PKEY_generate(3).
  init(algorithm: String, group: String?) throws(TLSError) {
    ErrorQueue.clear()
    guard let context = unsafe EVP_PKEY_CTX_new_from_name(nil, algorithm, nil) else {
      throw .drained("EVP_PKEY_CTX_new_from_name")
    }
    defer { unsafe EVP_PKEY_CTX_free(context) }
    guard unsafe EVP_PKEY_keygen_init(context) == 1 else { throw .drained("EVP_PKEY_keygen_init") }
    if let group {
      guard unsafe EVP_PKEY_CTX_set_group_name(context, group) == 1 else {
        throw .drained("EVP_PKEY_CTX_set_group_name")
      }
    }
    var key: OpaquePointer?
    guard unsafe EVP_PKEY_generate(context, &key) == 1, let key = unsafe key else {
      throw .drained("EVP_PKEY_generate")
    }
    var encoded: UnsafeMutablePointer<UInt8>?
    let count = unsafe EVP_PKEY_get1_encoded_public_key(key, &encoded)
    guard count > 0, let encoded = unsafe encoded else {
      unsafe EVP_PKEY_free(key)
      throw .drained("EVP_PKEY_get1_encoded_public_key")
    }
    publicShare = unsafe Array(UnsafeBufferPointer(start: encoded, count: count))
    unsafe pinfold_free_encoded(encoded)
    unsafe raw = key
    isFiniteField = algorithm == "DH"
  }

  deinit { unsafe EVP_PKEY_free(raw) }

  /// The secret shared with the owner of `peerShare`: EVP_PKEY_derive(3). A share of another length, off the curve, or
  /// of small order is an error.
  func derive(peerShare: [UInt8]) throws(TLSError) -> SecretBytes {
    guard peerShare.count == publicShare.count else { throw .unreadable("a key share of a wrong length") }
    ErrorQueue.clear()
    guard let peer = unsafe EVP_PKEY_new() else { throw .drained("EVP_PKEY_new") }
    defer { unsafe EVP_PKEY_free(peer) }
    guard unsafe EVP_PKEY_copy_parameters(peer, raw) == 1,
      unsafe EVP_PKEY_set1_encoded_public_key(peer, peerShare, peerShare.count) == 1
    else { throw .unreadable("not a key share of this group: \(ErrorQueue.drain())") }
    guard let context = unsafe EVP_PKEY_CTX_new_from_pkey(nil, raw, nil) else {
      throw .drained("EVP_PKEY_CTX_new_from_pkey")
    }
    defer { unsafe EVP_PKEY_CTX_free(context) }
    guard unsafe EVP_PKEY_derive_init(context) == 1, unsafe EVP_PKEY_derive_set_peer(context, peer) == 1 else {
      throw .unreadable("not a key share of this group: \(ErrorQueue.drain())")
    }
    // RFC 8446 §7.4.1: leading zeros of a finite-field secret count.
    if isFiniteField {
      guard unsafe EVP_PKEY_CTX_set_dh_pad(context, 1) == 1 else { throw .drained("EVP_PKEY_CTX_set_dh_pad") }
    }
    var count = 0
    guard unsafe EVP_PKEY_derive(context, nil, &count) == 1, count > 0 else { throw .drained("EVP_PKEY_derive") }
    let wanted = count
    let secret = unsafe SecretBytes(count: wanted) { output in
      unsafe EVP_PKEY_derive(context, output.baseAddress, &count) == 1 && count == wanted
    }
    guard let secret else { throw .drained("EVP_PKEY_derive") }
    return secret
  }
}
