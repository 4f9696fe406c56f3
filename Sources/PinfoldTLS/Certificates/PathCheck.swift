import COpenSSL
import PinfoldModel

/// Builds and verifies one path with OpenSSL. Everything here is done once per cached chain.
struct PathCheck {
  let store: TrustStore
  let host: HostName
  let now: Timestamp
  let leaves: LeafMemory

  func judge(_ encoded: [ArraySlice<UInt8>]) throws(TLSError) -> ChainJudgement {
    var certificates: [Certificate] = []
    var key: LeafKey?
    for (index, der) in encoded.enumerated() {
      do throws(TLSError) {
        guard index == 0 else {
          certificates.append(try Certificate(der: Array(der)))
          continue
        }
        let leaf = try leaves.leaf(Array(der))
        certificates.append(leaf.certificate)
        key = leaf.key
      } catch .unreadable(let what) {
        throw .unreadable("certificate \(index + 1) of \(encoded.count): \(what)")
      }
    }
    guard let leaf = certificates.first, let key else { throw .unreadable("a chain without certificates") }
    let (error, path) = try build(leaf, helpers: certificates.dropFirst())
    let ends = (path.isEmpty ? [leaf] : path).compactMap(\.notAfter)
    return ChainJudgement(
      leafKey: key, leafCertificateDigest: leaf.digest, chainError: error,
      nameMatches: matches(leaf),
      builtChain: path.map { ChainJudgement.Link(key: $0.keyDigest, certificate: $0.digest) },
      validUntil: ends.min() ?? now)
  }

  /// X509_verify_cert(3). The path is empty unless there is no error.
  private func build(
    _ leaf: Certificate, helpers: ArraySlice<Certificate>
  ) throws(TLSError) -> (error: String?, path: [Certificate]) {
    ErrorQueue.clear()
    guard let untrusted = unsafe pinfold_x509_stack_new() else { throw .drained("sk_X509_new_null") }
    defer { unsafe pinfold_x509_stack_free(untrusted) }
    for helper in helpers {
      guard unsafe pinfold_x509_stack_push(untrusted, helper.raw) == 1 else { throw .drained("sk_X509_push") }
    }
    guard let context = unsafe X509_STORE_CTX_new() else { throw .drained("X509_STORE_CTX_new") }
    defer { unsafe X509_STORE_CTX_free(context) }
    guard unsafe X509_STORE_CTX_init(context, store.raw, leaf.raw, untrusted) == 1,
      unsafe X509_STORE_CTX_set_default(context, "ssl_server") == 1,
      let parameters = unsafe X509_STORE_CTX_get0_param(context)
    else { throw .drained("X509_STORE_CTX_init") }
    unsafe X509_VERIFY_PARAM_set_flags(parameters, UInt(X509_V_FLAG_TRUSTED_FIRST))
    unsafe X509_VERIFY_PARAM_set_depth(parameters, Int32(ChainVerifier.depthLimit))
    unsafe X509_VERIFY_PARAM_set_auth_level(parameters, 1)
    unsafe X509_VERIFY_PARAM_set_time(parameters, time_t(now.seconds))

    let result = unsafe X509_verify_cert(context)
    let code = unsafe X509_STORE_CTX_get_error(context)
    ErrorQueue.clear()
    guard result == 1, code == X509_V_OK, let chain = unsafe X509_STORE_CTX_get0_chain(context) else {
      let reason = code == X509_V_OK ? X509_V_ERR_UNSPECIFIED : code
      return (unsafe String(cString: X509_verify_cert_error_string(Int(reason))), [])
    }
    var path: [Certificate] = []
    let count = unsafe pinfold_x509_stack_count(chain)
    for index in 0..<max(0, count) {
      guard let certificate = unsafe pinfold_x509_stack_at(chain, index) else { break }
      path.append(try unsafe Certificate(copying: certificate))
    }
    guard !path.isEmpty else { return ("empty path", []) }
    return (nil, path)
  }

  /// X509_check_host(3) and X509_check_ip(3), as present-day clients decide: the subject's common name never counts,
  /// and a wildcard stands for one whole label.
  private func matches(_ leaf: Certificate) -> Bool {
    let flags = UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS)
    ErrorQueue.clear()
    defer { ErrorQueue.clear() }
    switch host {
    case .name(let name):
      return unsafe X509_check_host(leaf.raw, name, name.utf8.count, flags, nil) == 1
    case .address(let address):
      let bytes = address.bytes
      return unsafe X509_check_ip(leaf.raw, bytes, bytes.count, flags) == 1
    }
  }
}
