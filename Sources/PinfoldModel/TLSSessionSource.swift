/// Makes the TLS client sessions that an event loop's HTTP client runs, so that the layer with the loop needs to know
/// nothing of OpenSSL, nor the layer with OpenSSL of the loop.
package protocol TLSSessionSource: Sendable {
  /// A session, not yet started, that goes through with a server only if it proves to be `host`.
  func session(for host: HostName) throws(TLSSessionError) -> TLSSessionHandle

  /// What went wrong in a session: the peer's certificate if that is it, else the library's words for the error code.
  ///
  /// - Parameters:
  ///   - session: lent for the call.
  ///   - code: the library's error code, 0 for none.
  func failure(of session: OpaquePointer, code: UInt) -> String
}

/// Why no session could be made: the library's words.
package struct TLSSessionError: Error, Hashable, Sendable {
  /// One line for a log.
  package let text: String

  /// Says what failed.
  package init(_ text: String) {
    self.text = text
  }
}

/// Ownership of a TLS library's session on its way from the layer that made it to the one that uses it.
@safe
package struct TLSSessionHandle: ~Copyable {
  private let raw: OpaquePointer
  private let release: @convention(c) (OpaquePointer?) -> Void

  /// Owns `raw` from here on; `release` is what frees it if nobody takes it.
  package init(owning raw: OpaquePointer, release: @escaping @convention(c) (OpaquePointer?) -> Void) {
    unsafe self.raw = raw
    unsafe self.release = release
  }

  deinit { unsafe release(raw) }

  /// Gives the session away: whoever called this has to free it.
  package consuming func take() -> OpaquePointer {
    let taken = unsafe raw
    discard self
    return unsafe taken
  }
}
