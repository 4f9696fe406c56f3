import COpenSSL

/// The settings of many probes. Owns an `SSL_CTX` (SSL_CTX_free(3)), never changed after `init`.
///
/// Sendable: an `SSL_CTX` that is only read may serve all threads, and sessions, which would be written, are off.
@safe final class ProbeContext: Sendable {
  nonisolated(unsafe) let raw: OpaquePointer

  /// No chain is verified here (`ChainVerifier` judges it), no session is kept, and suites without a certificate are
  /// out. Security level 0: any other leaves SHA-1 and the versions before 1.2 out of the hello, and what the
  /// application accepts is the application's choice. What it is shown is what the probe has to see.
  init(_ profile: ProbeOffer.Profile) throws(TLSError) {
    ErrorQueue.clear()
    guard let raw = unsafe SSL_CTX_new(TLS_client_method()) else { throw .drained("SSL_CTX_new") }
    do throws(TLSError) {
      try unsafe Self.configure(raw, profile)
    } catch {
      unsafe SSL_CTX_free(raw)
      throw error
    }
    unsafe self.raw = raw
  }

  deinit { unsafe SSL_CTX_free(raw) }

  private static func configure(_ raw: OpaquePointer, _ profile: ProbeOffer.Profile) throws(TLSError) {
    unsafe SSL_CTX_set_verify(raw, SSL_VERIFY_NONE, nil)
    unsafe SSL_CTX_set_security_level(raw, 0)
    unsafe pinfold_ctx_forget_sessions(raw)
    unsafe pinfold_ctx_never_renegotiate(raw)

    let suites = try unsafe suiteNames(raw, profile.cipherSuites)
    var lowest = max(profile.lowest, 0x0301)
    var highest = min(profile.highest, 0x0304)
    if !profile.cipherSuites.isEmpty {
      if suites.modern.isEmpty { highest = min(highest, 0x0303) }
      if suites.classic.isEmpty { lowest = max(lowest, 0x0304) }
    }
    guard lowest <= highest else {
      throw .failed(call: "probe", detail: "no version and suite of the application's offer is known to OpenSSL")
    }
    guard unsafe pinfold_ctx_set_versions(raw, Int32(lowest), Int32(highest)) == 1 else {
      throw .drained("SSL_CTX_set_min_proto_version")
    }
    if !suites.classic.isEmpty {
      guard unsafe SSL_CTX_set_cipher_list(raw, suites.classic.joined(separator: ":")) == 1 else {
        throw .drained("SSL_CTX_set_cipher_list")
      }
    }
    if !suites.modern.isEmpty, unsafe SSL_CTX_set_ciphersuites(raw, suites.modern.joined(separator: ":")) != 1 {
      throw .drained("SSL_CTX_set_ciphersuites")
    }
    let groups = ProbeNames.groups(profile.groups)
    if !groups.isEmpty, unsafe pinfold_ctx_set_groups(raw, groups.joined(separator: ":")) != 1 {
      throw .drained("SSL_CTX_set1_groups_list")
    }
    let schemes = ProbeNames.schemes(profile.signatureSchemes)
    if !schemes.isEmpty, unsafe pinfold_ctx_set_schemes(raw, schemes.joined(separator: ":")) != 1 {
      throw .drained("SSL_CTX_set1_sigalgs_list")
    }
  }

  /// Names of the known suites in which the server proves a certificate's key: those of TLS 1.3 and those of older
  /// versions. Signalling suites are no suites, and OpenSSL sends its own.
  private static func suiteNames(
    _ raw: OpaquePointer, _ codes: [UInt16]
  ) throws(TLSError) -> (modern: [String], classic: [String]) {
    guard let connection = unsafe SSL_new(raw) else { throw .drained("SSL_new") }
    defer { unsafe SSL_free(connection) }
    var modern: [String] = []
    var classic: [String] = []
    for code in codes {
      let bytes = [UInt8(code >> 8), UInt8(code & 0xff)]
      guard let suite = unsafe SSL_CIPHER_find(connection, bytes), let name = unsafe SSL_CIPHER_get_name(suite) else {
        continue
      }
      let text = unsafe String(cString: name)
      if code >> 8 == 0x13 {
        modern.append(text)
      } else if unsafe provesKey(suite) {
        classic.append(text)
      }
    }
    ErrorQueue.clear()
    return (modern, classic)
  }

  private static func provesKey(_ suite: OpaquePointer) -> Bool {
    let isSigned = unsafe [NID_auth_rsa, NID_auth_ecdsa].contains(SSL_CIPHER_get_auth_nid(suite))
    return unsafe isSigned && [NID_kx_rsa, NID_kx_ecdhe, NID_kx_dhe].contains(SSL_CIPHER_get_kx_nid(suite))
  }
}
