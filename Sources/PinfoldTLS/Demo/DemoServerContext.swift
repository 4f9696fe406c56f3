import COpenSSL

/// The TLS side of a demo upstream. Owns an `SSL_CTX`.
///
/// Sendable: the `SSL_CTX` is not changed after `init`; its session cache has a lock of its own.
@safe final class DemoServerContext: Sendable {
  nonisolated(unsafe) private let raw: OpaquePointer
  /// Longest request head, in bytes, and most reads it may take.
  private static let requestLimit = 8192
  private static let readLimit = 64

  init(_ identity: DemoIdentity, _ versions: ClosedRange<UInt16>) throws(TLSError) {
    ErrorQueue.clear()
    guard let raw = unsafe SSL_CTX_new(TLS_server_method()) else { throw .drained("SSL_CTX_new") }
    unsafe SSL_CTX_set_security_level(raw, versions.lowerBound < 0x0303 ? 0 : 1)
    var complete = unsafe pinfold_ctx_set_versions(raw, Int32(versions.lowerBound), Int32(versions.upperBound)) == 1
    for (index, certificate) in identity.chain.enumerated() {
      let added =
        index == 0
        ? unsafe SSL_CTX_use_certificate(raw, certificate.raw) == 1
        : unsafe pinfold_ctx_add_chain(raw, certificate.raw) == 1
      complete = complete && added
    }
    guard complete, unsafe SSL_CTX_use_PrivateKey(raw, identity.key) == 1 else {
      unsafe SSL_CTX_free(raw)
      throw .drained("SSL_CTX_use_PrivateKey")
    }
    unsafe self.raw = raw
  }

  deinit { unsafe SSL_CTX_free(raw) }

  /// Reads one request head from a blocking socket, writes `answer`, says goodbye. Gives up silently: whatever went
  /// wrong is the client's to tell.
  func answer(on descriptor: Int32, with answer: [UInt8]) {
    ErrorQueue.clear()
    defer { ErrorQueue.clear() }
    guard let connection = unsafe SSL_new(raw) else { return }
    defer { unsafe SSL_free(connection) }
    guard unsafe SSL_set_fd(connection, descriptor) == 1, unsafe SSL_accept(connection) == 1 else { return }
    var request: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    for _ in 0..<Self.readLimit {
      let count = Int(unsafe SSL_read(connection, &chunk, Int32(chunk.count)))
      guard count > 0 else { return }
      request += chunk[..<count]
      if request.count > Self.requestLimit { return }
      if request.suffix(4).elementsEqual([13, 10, 13, 10]) {
        unsafe SSL_write(connection, answer, Int32(clamping: answer.count))
        unsafe SSL_shutdown(connection)
        return
      }
    }
  }
}
