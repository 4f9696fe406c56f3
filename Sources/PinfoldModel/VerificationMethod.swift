/// How the upstream's key became known. The raw value is the `method` label of metrics and decision lines.
package enum VerificationMethod: String, CaseIterable, Sendable {
  /// TLS 1.0–1.2 full handshake, read in the clear on the tunnel's own connection.
  case inBand = "in_band"
  /// A resumed session whose full handshake was judged before.
  case resumption
  /// TLS 1.3, decrypted with the application's own key-log line.
  case keyLog = "key_log"
  /// A handshake of Pinfold's own to the same address.
  case probe
  /// Refused, or let through unverified, before any method applied.
  case none
}
