import PinfoldModel

/// The exact bytes of an answer to CONNECT.
package struct ProxyReply: Equatable, Sendable {
  /// What a client reads when its tunnel is open (RFC 9110 §9.3.6). A tunnel has no Content-Length.
  package static let established: [UInt8] = Array("HTTP/1.1 200 Connection established\r\n\r\n".utf8)

  /// The HTTP status.
  package let status: Int
  /// Error type of RFC 9209 §2.3.
  package let error: String
  /// The `details` parameter: a reason word where there is one, else the sentence of the body.
  package let details: String
  /// The one line of the body.
  package let body: String
  /// Further header fields, in order.
  package let fields: [String]

  /// The answer to a failure before the 200.
  package init(_ failure: TunnelFailure) {
    var fields: [String] = []
    var details = failure.reason.rawValue
    switch failure {
    case .head(let refusal):
      (status, error, body) = (refusal.status, "http_request_error", refusal.sentence)
      details = refusal.sentence
      if refusal.status == 405 { fields = ["Allow: CONNECT"] }
    case .headTimedOut:
      (status, error) = (400, "http_request_error")
      body = "The request head did not come in time."
      details = body
    case .clientDenied:
      (status, error, body) = (403, "http_request_denied", "This client is not served here.")
    case .credentialsNeeded:
      (status, error, body) = (407, "http_request_denied", "This proxy wants credentials.")
      fields = ["Proxy-Authenticate: Basic realm=\"pinfold\", charset=\"UTF-8\""]
    case .clientLimit(let seconds):
      (status, error, body) = (429, "connection_limit_reached", "This client gave wrong credentials too often.")
      fields = ["Retry-After: \(max(0, seconds))"]
    case .tunnelLimit(let seconds):
      (status, error, body) = (503, "connection_limit_reached", "The proxy has no room for another tunnel.")
      fields = ["Retry-After: \(max(0, seconds))"]
    case .draining:
      (status, error, body) = (503, "connection_limit_reached", "The proxy is shutting down.")
      fields = ["Retry-After: 1"]
    case .portDenied:
      (status, error, body) = (403, "http_request_denied", "This port is not opened.")
    case .policy(.destinationDenied):
      (status, error, body) = (403, "destination_ip_prohibited", "This destination is not allowed.")
    case .policy(.pinsUnavailable):
      (status, error, body) = (502, "http_request_denied", "There are no pins for this host just now.")
    case .policy(.limitReached):
      (status, error, body) = (503, "connection_limit_reached", "The proxy has no room for another tunnel.")
      fields = ["Retry-After: 1"]
    case .policy(let reason):
      (status, error, body) = (403, "http_request_denied", "The policy does not allow this host: \(reason.rawValue).")
    case .dnsError: (status, error, body) = (502, "dns_error", "The host name does not resolve.")
    case .dnsTimeout: (status, error, body) = (504, "dns_timeout", "The host name did not resolve in time.")
    case .connectionRefused: (status, error, body) = (502, "connection_refused", "The host refused the connection.")
    case .unreachable: (status, error, body) = (502, "destination_unavailable", "The host cannot be reached.")
    case .connectTimeout: (status, error, body) = (504, "connection_timeout", "The host did not answer in time.")
    case .internalError: (status, error, body) = (500, "proxy_internal_error", "The proxy could not do its work.")
    }
    self.details = details
    self.fields = fields
  }

  /// Status line, fields, and body, ready to be written.
  package var bytes: [UInt8] {
    var text = "HTTP/1.1 \(status) \(phrase)\r\n"
    text += "Proxy-Status: pinfold; error=\(error); details=\(Self.quoted(details))\r\n"
    text += "Content-Type: text/plain\r\nContent-Length: \(body.utf8.count + 1)\r\nConnection: close\r\n"
    for field in fields { text += "\(field)\r\n" }
    text += "\r\n\(body)\n"
    return Array(text.utf8)
  }

  /// A String of a structured field (RFC 8941 §3.3.3): printable ASCII, `"` and `\` escaped. What cannot stand there
  /// becomes `?`.
  package static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 0x22, 0x5c: result += "\\\(scalar)"
      case 0x20...0x7e: result.unicodeScalars.append(scalar)
      default: result += "?"
      }
    }
    return result + "\""
  }

  private var phrase: String {
    switch status {
    case 400: "Bad Request"
    case 403: "Forbidden"
    case 405: "Method Not Allowed"
    case 407: "Proxy Authentication Required"
    case 429: "Too Many Requests"
    case 502: "Bad Gateway"
    case 503: "Service Unavailable"
    case 504: "Gateway Timeout"
    default: "Internal Server Error"
    }
  }
}
