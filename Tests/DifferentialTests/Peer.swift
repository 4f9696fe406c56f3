import COpenSSL

/// One end of a handshake in memory: OpenSSL's own, with its settings as they come but for those named.
///
/// Owns an `SSL`, which owns its two memory BIOs. For one thread.
@safe final class Peer {
  private let raw: OpaquePointer
  private let input: OpaquePointer
  private let output: OpaquePointer

  init(_ context: PeerContext) throws {
    ERR_clear_error()
    guard let raw = unsafe SSL_new(context.raw), let input = unsafe BIO_new(BIO_s_mem()),
      let output = unsafe BIO_new(BIO_s_mem())
    else { throw Unexpected("SSL_new") }
    unsafe SSL_set_bio(raw, input, output)
    if context.isServer { unsafe SSL_set_accept_state(raw) } else { unsafe SSL_set_connect_state(raw) }
    unsafe self.raw = raw
    unsafe self.input = input
    unsafe self.output = output
    if !context.isServer {
      unsafe pinfold_set_server_name(raw, "api.pinfold.test")
      unsafe pinfold_request_status(raw)
      let names: [UInt8] = [8] + Array("http/1.1".utf8)
      unsafe SSL_set_alpn_protos(raw, names, 9)
    }
  }

  deinit { unsafe SSL_free(raw) }

  /// Takes bytes, goes on as far as they lead, and answers what is to be sent.
  func receive(_ bytes: [UInt8]) -> [UInt8] {
    ERR_clear_error()
    if !bytes.isEmpty { unsafe BIO_write(input, bytes, Int32(bytes.count)) }
    unsafe SSL_do_handshake(raw)
    ERR_clear_error()
    var answer = [UInt8](repeating: 0, count: unsafe pinfold_bio_pending(output))
    let count = unsafe answer.isEmpty ? 0 : BIO_read(output, &answer, Int32(answer.count))
    return Array(answer.prefix(Int(max(0, count))))
  }

  /// The leaf the peer showed, in DER; nil before one was taken.
  var leaf: [UInt8]? {
    guard let leaf = unsafe SSL_get0_peer_certificate(raw) else { return nil }
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = unsafe i2d_X509(leaf, &bytes)
    defer { unsafe pinfold_free(bytes) }
    return unsafe Array(UnsafeBufferPointer(start: bytes, count: Int(max(0, count))))
  }
}

/// Settings of one side. Owns an `SSL_CTX`. No session is kept.
@safe final class PeerContext {
  let raw: OpaquePointer
  let isServer: Bool

  /// A client that takes what it is shown, as one does that leaves the judgement to Pinfold; or a server with an identity.
  init(_ server: (Identity, chain: Identity)?, version: Int32, suites: String, asksForCertificate: Bool = false) throws
  {
    isServer = server != nil
    guard let raw = unsafe SSL_CTX_new(isServer ? TLS_server_method() : TLS_client_method()) else {
      throw Unexpected("SSL_CTX_new")
    }
    unsafe self.raw = raw
    unsafe SSL_CTX_set_security_level(raw, 0)
    unsafe pinfold_ctx_forget_sessions(raw)
    let asks = server == nil || !asksForCertificate ? SSL_VERIFY_NONE : SSL_VERIFY_PEER
    unsafe SSL_CTX_set_verify(raw, asks, nil)
    guard unsafe pinfold_ctx_set_versions(raw, version, version) == 1, unsafe SSL_CTX_set_cipher_list(raw, suites) == 1
    else { throw Unexpected("settings") }
    guard let (identity, other) = server else { return }
    guard unsafe SSL_CTX_use_certificate_file(raw, identity.certificatePath, SSL_FILETYPE_PEM) == 1,
      unsafe SSL_CTX_use_PrivateKey_file(raw, identity.keyPath, SSL_FILETYPE_PEM) == 1
    else { throw Unexpected("identity") }
    let added = unsafe other.der.withUnsafeBufferPointer { bytes in
      var cursor = bytes.baseAddress
      guard let certificate = unsafe d2i_X509(nil, &cursor, bytes.count) else { return false }
      defer { unsafe X509_free(certificate) }
      return unsafe pinfold_ctx_add_chain(raw, certificate) == 1
    }
    guard added else { throw Unexpected("chain") }
  }

  deinit { unsafe SSL_CTX_free(raw) }
}
