import COpenSSL

/// The certificate authorities to trust. Owns an `X509_STORE` (X509_STORE_free(3)); never changed after it was loaded.
///
/// Sendable: OpenSSL takes the store's own lock around each look-up, and nothing here writes to it after `init`.
@safe package final class TrustStore: Sendable {
  nonisolated(unsafe) let raw: OpaquePointer

  /// The system's authorities: `SSL_CERT_FILE` and `SSL_CERT_DIR` where they are set, else the paths OpenSSL was
  /// built with (X509_STORE_set_default_paths(3)). Directory entries are read when first asked for.
  package init() throws(TLSError) {
    let raw = try unsafe Self.made()
    guard unsafe X509_STORE_set_default_paths(raw) == 1 else {
      unsafe X509_STORE_free(raw)
      throw .drained("X509_STORE_set_default_paths")
    }
    unsafe self.raw = raw
  }

  /// The authorities of one PEM file and no others (X509_STORE_load_file(3)). A file without a single certificate is
  /// an error.
  package init(caFile path: String) throws(TLSError) {
    let raw = try unsafe Self.made()
    guard unsafe X509_STORE_load_file(raw, path) == 1 else {
      unsafe X509_STORE_free(raw)
      throw .failed(
        call: "loading \(path)", detail: "\(ErrorQueue.drain()); expected a PEM file with at least one CA certificate")
    }
    unsafe self.raw = raw
  }

  /// These authorities and no others.
  package init(_ authorities: [Certificate]) throws(TLSError) {
    let raw = try unsafe Self.made()
    for authority in authorities {
      guard unsafe X509_STORE_add_cert(raw, authority.raw) == 1 else {
        unsafe X509_STORE_free(raw)
        throw .drained("X509_STORE_add_cert")
      }
    }
    unsafe self.raw = raw
  }

  /// Where the system's authorities are looked for in this environment: a file and directories, none of which need exist
  /// (X509_get_default_cert_file(3)).
  package static func systemPlaces(_ environment: [String: String]) -> (file: String, directories: [String]) {
    func place(_ variable: UnsafePointer<CChar>?, _ path: UnsafePointer<CChar>?) -> String {
      let chosen = unsafe variable.flatMap { unsafe environment[String(cString: $0)] }
      return unsafe chosen ?? path.map { unsafe String(cString: $0) } ?? ""
    }
    let directories = unsafe place(X509_get_default_cert_dir_env(), X509_get_default_cert_dir())
    return (
      unsafe place(X509_get_default_cert_file_env(), X509_get_default_cert_file()),
      directories.split(separator: ":").map(String.init)
    )
  }

  private static func made() throws(TLSError) -> OpaquePointer {
    ErrorQueue.clear()
    guard let raw = unsafe X509_STORE_new() else { throw .drained("X509_STORE_new") }
    return unsafe raw
  }

  deinit { unsafe X509_STORE_free(raw) }
}
