import COpenSSL
package import PinfoldModel

/// The settings of Pinfold's own HTTPS requests: TLS 1.2 or newer, the server's chain and name verified, no session kept.
///
/// Sendable: an `SSL_CTX` that is only read may serve all threads, and sessions, which would be written, are off.
@safe package final class ClientContext: TLSSessionSource {
  nonisolated(unsafe) private let raw: OpaquePointer

  /// Servers are to chain to one of the authorities of `store`.
  package init(trusting store: TrustStore) throws(TLSError) {
    ErrorQueue.clear()
    guard let raw = unsafe SSL_CTX_new(TLS_client_method()) else { throw .drained("SSL_CTX_new") }
    unsafe SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nil)
    // Takes a reference of its own to the store.
    unsafe SSL_CTX_set1_cert_store(raw, store.raw)
    unsafe SSL_CTX_set_verify_depth(raw, Int32(ChainVerifier.depthLimit))
    unsafe pinfold_ctx_forget_sessions(raw)
    let protocols: [UInt8] = [8] + Array("http/1.1".utf8)
    // SSL_CTX_set_alpn_protos(3) is the one call that answers 0 on success.
    guard unsafe SSL_CTX_set_purpose(raw, X509_PURPOSE_SSL_SERVER) == 1,
      unsafe pinfold_ctx_set_versions(raw, TLS1_2_VERSION, 0) == 1,
      unsafe SSL_CTX_set_alpn_protos(raw, protocols, UInt32(protocols.count)) == 0
    else {
      unsafe SSL_CTX_free(raw)
      throw .drained("setting up a TLS client")
    }
    unsafe pinfold_ctx_strict_client(raw)
    unsafe self.raw = raw
  }

  deinit { unsafe SSL_CTX_free(raw) }

  /// A session whose peer has to show a valid chain for `host`: by SSL_set1_host(3) and SNI for a name, by
  /// X509_VERIFY_PARAM_set1_ip(3) and without SNI for an address.
  package func session(for host: HostName) throws(TLSSessionError) -> TLSSessionHandle {
    ErrorQueue.clear()
    guard let session = unsafe SSL_new(raw) else { throw TLSSessionError("SSL_new: \(ErrorQueue.drain())") }
    let handle = unsafe TLSSessionHandle(owning: session, release: SSL_free)
    unsafe SSL_set_connect_state(session)
    let flags = UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS)
    unsafe SSL_set_hostflags(session, flags)
    let isBound: Bool
    switch host {
    case .name(let name):
      isBound = unsafe SSL_set1_host(session, name) == 1 && pinfold_set_server_name(session, name) == 1
    case .address(let address):
      let bytes = address.bytes
      isBound = unsafe X509_VERIFY_PARAM_set1_ip(SSL_get0_param(session), bytes, bytes.count) == 1
    }
    guard isBound else { throw TLSSessionError("binding a session to \(host.text): \(ErrorQueue.drain())") }
    return handle
  }

  /// `certificate verify failed: …` with what is wrong with the certificate, or the reason of an OpenSSL error code.
  package func failure(of session: OpaquePointer, code: UInt) -> String {
    let verdict = unsafe SSL_get_verify_result(session)
    guard verdict == Int(X509_V_OK) else {
      return "certificate verify failed: \(unsafe String(cString: X509_verify_cert_error_string(verdict)))"
    }
    guard code != 0 else { return "connection closed in the handshake" }
    return unsafe ERR_reason_error_string(code).map { unsafe String(cString: $0) } ?? "error \(code & 0x7fff_ffff)"
  }
}
