/// What a finished probe saw. That it finished proves that the peer owns the leaf's key.
package struct ProbeResult: Equatable, Sendable {
  /// The certificates in DER, leaf first, as sent; never empty. For `ChainVerifier`.
  package let certificates: [[UInt8]]
  /// The negotiated version as on the wire.
  package let version: UInt16
  /// The negotiated suite as on the wire.
  package let cipherSuite: UInt16
  /// The protocol the server chose by ALPN.
  package let alpn: [UInt8]?
}

/// What to do next in a probe.
package enum ProbeStep: Equatable, Sendable {
  /// Send these bytes, then read.
  case send([UInt8])
  /// Read; there is nothing to send.
  case needMore
  /// The handshake is done: send `farewell` (the client's last flight and close_notify) and close.
  case finished(ProbeResult, farewell: [UInt8])
  /// The handshake failed; `detail` is in constant words. `farewell` may hold an alert.
  case failed(detail: String, farewell: [UInt8])
}
