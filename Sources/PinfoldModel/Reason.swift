/// Why a tunnel was allowed or refused.
///
/// The raw value is one word for all readers: the decision line, the metric label, the audit record, the
/// `Proxy-Status` details and the documentation.
package enum Reason: String, CaseIterable, Sendable {
  // Allowed.
  case pinMatch = "pin_match"
  case chainVerified = "chain_verified"
  case unpinnedTunnel = "unpinned_tunnel"
  case reportedMismatch = "reported_mismatch"
  case suspendedMismatch = "suspended_mismatch"

  // Refused by policy.
  case unpinnedBlocked = "unpinned_blocked"
  case pinMismatch = "pin_mismatch"
  case pinsExpired = "pins_expired"
  case pinsUnavailable = "pins_unavailable"
  case tls13Denied = "tls13_denied"

  // Refused for what the upstream showed.
  case chainInvalid = "chain_invalid"
  case nameMismatch = "name_mismatch"
  case keyNotProven = "key_not_proven"
  case anonymousSuite = "anonymous_suite"
  case resumptionUnverified = "resumption_unverified"
  case pskDeclined = "psk_declined"
  case probeFailed = "probe_failed"
  case upstreamUnreachable = "upstream_unreachable"

  // Refused for what the client sent, or for bytes that cannot be read in one way only.
  case sniMismatch = "sni_mismatch"
  case sniMissing = "sni_missing"
  case notTLS = "not_tls"
  case malformedHandshake = "malformed_handshake"
  case handshakeTimeout = "handshake_timeout"
  case helloTooLarge = "hello_too_large"

  // Refused before any handshake.
  case destinationDenied = "destination_denied"
  case clientDenied = "client_denied"
  case limitReached = "limit_reached"
  case internalError = "internal_error"

  /// Whether a verdict with this reason lets the tunnel through. Everything not listed here is a refusal.
  package var allows: Bool {
    switch self {
    case .pinMatch, .chainVerified, .unpinnedTunnel, .reportedMismatch, .suspendedMismatch: true
    default: false
    }
  }

  /// Whether the verification behind it succeeded: a reported or suspended mismatch is a failure although the
  /// tunnel is allowed.
  package var isSuccess: Bool {
    switch self {
    case .pinMatch, .chainVerified, .unpinnedTunnel: true
    default: false
    }
  }
}
