package import PinfoldModel

/// Why a CONNECT request gets another answer than 200.
package enum TunnelFailure: Error, Equatable, Sendable {
  /// The head could not be taken: 400 or 405.
  case head(HeadRefusal)
  /// The head did not come in time.
  case headTimedOut
  /// The client is not in the list of clients that are served.
  case clientDenied
  /// Credentials are wanted and were missing or wrong.
  case credentialsNeeded
  /// This client tried too often; it may come back after so many seconds.
  case clientLimit(retryAfterSeconds: Int)
  /// No more tunnels, or no more descriptors; the client may come back after so many seconds.
  case tunnelLimit(retryAfterSeconds: Int)
  /// The process is draining.
  case draining
  /// The port is not one of those that are opened.
  case portDenied
  /// The policy says no.
  case policy(Reason)
  /// The name did not resolve.
  case dnsError
  /// The name did not resolve in time.
  case dnsTimeout
  /// The upstream refused the connection.
  case connectionRefused
  /// The upstream could not be reached in another way.
  case unreachable
  /// The upstream did not answer in time.
  case connectTimeout
  /// Pinfold could not do its work.
  case internalError

  /// The reason that log, metric and audit give.
  package var reason: Reason {
    switch self {
    case .head, .clientDenied, .credentialsNeeded, .headTimedOut: .clientDenied
    case .clientLimit, .tunnelLimit, .draining: .limitReached
    case .portDenied: .destinationDenied
    case .policy(let reason): reason
    case .dnsError, .dnsTimeout, .connectionRefused, .unreachable, .connectTimeout: .upstreamUnreachable
    case .internalError: .internalError
    }
  }
}
