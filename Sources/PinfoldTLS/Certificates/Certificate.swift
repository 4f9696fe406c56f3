import COpenSSL
package import PinfoldModel

/// One X.509 certificate. Owns one reference to an `X509` (X509_free(3)) and gives it back in `deinit`.
///
/// Sendable: an `X509` is not changed after it was read here, its reference count is atomic, and the extension cache
/// that OpenSSL fills on first use is filled under the object's own lock.
@safe package final class Certificate: Sendable {
  /// Largest certificate taken, in bytes. Real ones have 1–5 KB, the largest that clients take is about 100 KB.
  package static let byteLimit = 102_400

  nonisolated(unsafe) let raw: OpaquePointer
  /// SHA-256 over the whole DER certificate.
  package let digest: Digest256
  /// SHA-256 over the DER SubjectPublicKeyInfo (RFC 7469 §2.4).
  package let keyDigest: Digest256

  /// Reads exactly one DER certificate; bytes behind it are an error, as is a SubjectPublicKeyInfo that is not
  /// written in DER: two readers would hash it differently.
  package init(der: [UInt8]) throws(TLSError) {
    guard der.count <= Self.byteLimit else {
      throw .tooLarge("certificate of \(der.count) bytes; at most \(Self.byteLimit)")
    }
    ErrorQueue.clear()
    let (parsed, consumed) = unsafe der.withUnsafeBufferPointer { bytes in
      var cursor = bytes.baseAddress
      let certificate = unsafe d2i_X509(nil, &cursor, bytes.count)
      guard let start = bytes.baseAddress, let end = unsafe cursor else { return unsafe (certificate, 0) }
      return unsafe (certificate, start.distance(to: end))
    }
    guard let raw = unsafe parsed else {
      throw .unreadable("not a DER certificate: \(ErrorQueue.drain())")
    }
    guard consumed == der.count else {
      unsafe X509_free(raw)
      throw .unreadable("\(der.count - consumed) bytes behind a certificate")
    }
    do throws(TLSError) {
      digest = try Digest.sha256(der)
      let key = try unsafe Self.publicKeyInfo(of: raw)
      guard der.holds(key) else { throw .unreadable("the public key of a certificate is not written in DER") }
      keyDigest = try Digest.sha256(key)
    } catch {
      unsafe X509_free(raw)
      throw error
    }
    unsafe self.raw = raw
  }

  /// Takes the bytes of a certificate OpenSSL holds; its own reference stays with it. See X509_get0_pubkey(3).
  convenience init(copying certificate: OpaquePointer) throws(TLSError) {
    let der = try unsafe Self.encoding(of: certificate)
    try self.init(der: der)
  }

  deinit { unsafe X509_free(raw) }

  /// The DER encoding, i2d_X509(3).
  package func der() throws(TLSError) -> [UInt8] { try unsafe Self.encoding(of: raw) }

  static func encoding(of certificate: OpaquePointer) throws(TLSError) -> [UInt8] {
    var bytes: UnsafeMutablePointer<UInt8>?
    ErrorQueue.clear()
    let count = unsafe i2d_X509(certificate, &bytes)
    return try unsafe taking(bytes, Int(count), "i2d_X509")
  }

  private static func publicKeyInfo(of certificate: OpaquePointer) throws(TLSError) -> [UInt8] {
    var bytes: UnsafeMutablePointer<UInt8>?
    ErrorQueue.clear()
    let count = unsafe i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &bytes)
    return try unsafe taking(bytes, Int(count), "i2d_X509_PUBKEY")
  }

  /// Copies what an `i2d` function allocated and frees it.
  static func taking(
    _ bytes: UnsafeMutablePointer<UInt8>?, _ count: Int, _ call: String
  ) throws(TLSError) -> [UInt8] {
    guard count > 0, let bytes = unsafe bytes else { throw .drained(call) }
    defer { unsafe pinfold_free(bytes) }
    return unsafe Array(UnsafeBufferPointer(start: bytes, count: count))
  }
}

extension [UInt8] {
  /// Whether `part` stands somewhere in these bytes. The peer chooses both; memmem(3) takes time that grows as their
  /// length does.
  fileprivate func holds(_ part: [UInt8]) -> Bool {
    unsafe withUnsafeBytes { all in
      unsafe part.withUnsafeBytes { part in
        guard let start = all.baseAddress, let first = part.baseAddress else { return false }
        return unsafe pinfold_holds(start, all.count, first, part.count) != 0
      }
    }
  }
}
