/// Why a document could not be fetched, by the step that failed.
package enum HTTPFetchError: Error, Hashable, Sendable {
  /// The steps of a fetch, in their order.
  package enum Step: String, Hashable, Sendable {
    /// Name to addresses.
    case resolve
    /// TCP.
    case connect
    /// The handshake.
    case tls
    /// Status line, fields and body.
    case reply
  }

  /// The host has no address.
  case resolve(ResolveError)
  /// None of the addresses took the connection; the last one's error.
  case connect(IOError)
  /// No TLS session with that host, in OpenSSL's words: a chain that does not verify, another name, no common version.
  case tls(String)
  /// A status that is of no use. `HTTPClient` never throws it; for those who accept some only.
  case status(Int)
  /// The body is larger than the caller allowed, in bytes, or its chunks are broken: evhttp does not tell which.
  case tooLarge(limit: Int)
  /// The connection ended before the reply did.
  case truncated
  /// No HTTP/1.x reply, one whose head is larger than `HTTPClient.maximalHeadSize`, or a request that cannot be written.
  case malformed
  /// The deadline passed in that step.
  case timedOut(Step)
  /// The task was cancelled.
  case cancelled

  /// The step that failed, for messages and metrics.
  package var step: Step {
    switch self {
    case .resolve: .resolve
    case .connect: .connect
    case .tls: .tls
    case .timedOut(let step): step
    case .status, .tooLarge, .truncated, .malformed, .cancelled: .reply
    }
  }

  /// One line for a log; nothing in it is the server's own words.
  package var text: String {
    switch self {
    case .resolve(let error): error.text
    case .connect(let error): "cannot connect: \(error.text)"
    case .tls(let words): "TLS: \(words)"
    case .status(let code): "status \(code)"
    case .tooLarge(let limit): "reply larger than \(limit) bytes, or in broken chunks"
    case .truncated: "connection closed before the end of the reply"
    case .malformed: "no valid HTTP/1.1 reply"
    case .timedOut(.resolve): "name resolution timed out"
    case .timedOut(.connect): "timed out while connecting"
    case .timedOut(.tls): "timed out in the TLS handshake"
    case .timedOut(.reply): "timed out waiting for the reply"
    case .cancelled: "cancelled"
    }
  }
}
