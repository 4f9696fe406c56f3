import COpenSSL

/// A certificate with its private key. Owns one reference to an `EVP_PKEY`.
///
/// Sendable: the key is not changed after it was made.
@safe package final class DemoIdentity: Sendable {
  nonisolated(unsafe) let key: OpaquePointer
  /// Leaf first, then the authorities between it and the root, without the root.
  package let chain: [Certificate]

  /// Takes over one reference to `key`.
  init(takingOwnership key: OpaquePointer, chain: [Certificate]) {
    unsafe self.key = key
    self.chain = chain
  }

  deinit { unsafe EVP_PKEY_free(key) }
}

extension Certificate {
  /// The certificate as PEM text, for a `ca_file`.
  package func pem() throws(TLSError) -> String {
    ErrorQueue.clear()
    guard let memory = unsafe BIO_new(BIO_s_mem()) else { throw .drained("BIO_new") }
    defer { unsafe BIO_free(memory) }
    guard unsafe PEM_write_bio_X509(memory, raw) == 1 else { throw .drained("PEM_write_bio_X509") }
    var bytes = [UInt8](repeating: 0, count: unsafe pinfold_bio_pending(memory))
    let count = unsafe BIO_read(memory, &bytes, Int32(clamping: bytes.count))
    guard count == bytes.count else { throw .drained("BIO_read") }
    return String(decoding: bytes, as: UTF8.self)
  }
}
