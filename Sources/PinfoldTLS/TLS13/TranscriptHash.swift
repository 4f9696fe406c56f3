import COpenSSL

/// The running hash over all handshake messages (RFC 8446 §4.4.1). Owns an `EVP_MD_CTX`.
///
/// Not Sendable: for one handshake on one thread.
@safe final class TranscriptHash {
  private let context: OpaquePointer
  private let digest: Digest

  /// Begins with the client's hello; after a HelloRetryRequest with the substitute for the first hello, the request
  /// and the second hello.
  init(
    _ suite: Suite13, firstHello: [UInt8], retry: (request: [UInt8], secondHello: [UInt8])?
  ) throws(TLSError) {
    digest = suite.digest
    ErrorQueue.clear()
    guard let context = unsafe EVP_MD_CTX_new() else { throw .drained("EVP_MD_CTX_new") }
    unsafe self.context = context
    guard let algorithm = unsafe digest.raw, unsafe EVP_DigestInit_ex(context, algorithm, nil) == 1 else {
      throw .drained("EVP_DigestInit_ex")
    }
    guard let retry else {
      try add(firstHello[...])
      return
    }
    // message_hash: type 254, a 24-bit length, the hash of the first hello.
    try add([254, 0, 0, UInt8(truncatingIfNeeded: suite.hashCount)])
    try add(try digest.hash(firstHello)[...])
    try add(retry.request[...])
    try add(retry.secondHello[...])
  }

  deinit { unsafe EVP_MD_CTX_free(context) }

  /// Adds whole messages, headers included, exactly as they were sent.
  func add(_ messages: ArraySlice<UInt8>) throws(TLSError) {
    let added = unsafe messages.withUnsafeBufferPointer { bytes in
      unsafe EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1
    }
    guard added else { throw .drained("EVP_DigestUpdate") }
  }

  /// The hash over everything so far.
  func current() throws(TLSError) -> [UInt8] {
    ErrorQueue.clear()
    guard let copy = unsafe EVP_MD_CTX_new() else { throw .drained("EVP_MD_CTX_new") }
    defer { unsafe EVP_MD_CTX_free(copy) }
    var output = [UInt8](repeating: 0, count: digest.byteCount)
    guard unsafe EVP_MD_CTX_copy_ex(copy, context) == 1, unsafe EVP_DigestFinal_ex(copy, &output, nil) == 1 else {
      throw .drained("EVP_DigestFinal_ex")
    }
    return output
  }
}
