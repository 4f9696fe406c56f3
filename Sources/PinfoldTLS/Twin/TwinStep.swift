package import PinfoldWire

/// What a finished twin saw. The key of the leaf, or the raw public key, is proven: by a signature over this very
/// handshake, and in TLS 1.3 by the Finished as well.
package struct TwinResult: Sendable {
  /// The certificates in DER, leaf first, as sent. For `ChainVerifier`. Empty exactly when `rawPublicKey` is there.
  package let certificates: [[UInt8]]
  /// The SubjectPublicKeyInfo of a raw public key (RFC 7250).
  package let rawPublicKey: [UInt8]?
  /// The ServerHello: version, suite and group.
  package let serverHello: ServerHello
  /// The protocol the server chose by ALPN.
  package let alpn: [UInt8]?
  /// Whether there was a HelloRetryRequest.
  package let wasRetried: Bool
  /// What the encrypted flight held; nil for TLS 1.2 and older.
  package let flight: Flight13?
}

/// Why a twin came to no result.
package enum TwinFailure: Error, Sendable {
  /// No twin can be made of this hello.
  case impossible(TwinImpossible)
  /// The server ended the handshake with this fatal alert, in the clear.
  case alert(UInt8)
  /// The server took a session of the app, TLS 1.2 or older: nothing is shown.
  case resumed
  /// The server showed no certificate at all.
  case noCertificate
  /// What the server sent is refused, by the rules the tunnel's own server flight is read by.
  case refused(HandshakeRefusal)
  /// The connection ended, or a call came out of turn.
  case ended
  /// OpenSSL could not do its work.
  case openSSL(TLSError)
}

/// What to do next with a twin's connection.
package enum TwinStep: Sendable {
  /// Send these bytes in one write, then read.
  case send([UInt8])
  /// Read; there is nothing to send.
  case needMore
  /// A HelloRetryRequest came. Go on with `TwinSession.secondHello(_:)` once the app has sent its second hello; if the
  /// app's connection got no such request, the two were treated differently and nothing is proven.
  case retry(ServerHello)
  /// Judged: send `farewell` in one write and close.
  case finished(TwinResult, farewell: [UInt8])
  /// No result. `farewell` may be empty.
  case failed(TwinFailure, farewell: [UInt8])
}
