import PinfoldModel
import PinfoldWire
import Testing

/// A failure, and the answer byte for byte.
struct ReplyRow: CustomTestStringConvertible, Sendable {
  let testDescription: String
  let failure: TunnelFailure
  let status: String
  let proxyStatus: String
  let field: String?
  let body: String

  init(
    _ name: String, _ failure: TunnelFailure, _ status: String, _ proxyStatus: String,
    field: String? = nil,
    _ body: String
  ) {
    testDescription = name
    self.failure = failure
    self.status = status
    self.proxyStatus = proxyStatus
    self.field = field
    self.body = body
  }
}

@Suite struct ProxyReplyTests {
  static let rows = [
    ReplyRow(
      "an unpinned host that is blocked", .policy(.unpinnedBlocked), "403 Forbidden",
      "error=http_request_denied; details=\"unpinned_blocked\"",
      "The policy does not allow this host: unpinned_blocked."),
    ReplyRow(
      "a port that is not opened", .portDenied, "403 Forbidden",
      "error=http_request_denied; details=\"destination_denied\"", "This port is not opened."),
    ReplyRow(
      "a private address", .policy(.destinationDenied), "403 Forbidden",
      "error=destination_ip_prohibited; details=\"destination_denied\"", "This destination is not allowed."),
    ReplyRow(
      "a client that is not served", .clientDenied, "403 Forbidden",
      "error=http_request_denied; details=\"client_denied\"", "This client is not served here."),
    ReplyRow(
      "missing credentials", .credentialsNeeded, "407 Proxy Authentication Required",
      "error=http_request_denied; details=\"client_denied\"",
      field: "Proxy-Authenticate: Basic realm=\"pinfold\", charset=\"UTF-8\"", "This proxy wants credentials."),
    ReplyRow(
      "a client that tries too often", .clientLimit(retryAfterSeconds: 7), "429 Too Many Requests",
      "error=connection_limit_reached; details=\"limit_reached\"", field: "Retry-After: 7",
      "This client gave wrong credentials too often."),
    ReplyRow(
      "a full house", .tunnelLimit(retryAfterSeconds: 1), "503 Service Unavailable",
      "error=connection_limit_reached; details=\"limit_reached\"", field: "Retry-After: 1",
      "The proxy has no room for another tunnel."),
    ReplyRow(
      "draining", .draining, "503 Service Unavailable", "error=connection_limit_reached; details=\"limit_reached\"",
      field: "Retry-After: 1", "The proxy is shutting down."),
    ReplyRow(
      "no pins", .policy(.pinsUnavailable), "502 Bad Gateway",
      "error=http_request_denied; details=\"pins_unavailable\"", "There are no pins for this host just now."),
    ReplyRow(
      "a name that does not resolve", .dnsError, "502 Bad Gateway",
      "error=dns_error; details=\"upstream_unreachable\"", "The host name does not resolve."),
    ReplyRow(
      "a name that does not resolve in time", .dnsTimeout, "504 Gateway Timeout",
      "error=dns_timeout; details=\"upstream_unreachable\"", "The host name did not resolve in time."),
    ReplyRow(
      "a refused connection", .connectionRefused, "502 Bad Gateway",
      "error=connection_refused; details=\"upstream_unreachable\"", "The host refused the connection."),
    ReplyRow(
      "a host that is unreachable", .unreachable, "502 Bad Gateway",
      "error=destination_unavailable; details=\"upstream_unreachable\"", "The host cannot be reached."),
    ReplyRow(
      "a host that does not answer", .connectTimeout, "504 Gateway Timeout",
      "error=connection_timeout; details=\"upstream_unreachable\"", "The host did not answer in time."),
    ReplyRow(
      "a fault of our own", .internalError, "500 Internal Server Error",
      "error=proxy_internal_error; details=\"internal_error\"", "The proxy could not do its work."),
    ReplyRow(
      "a head that comes too slowly", .headTimedOut, "400 Bad Request",
      "error=http_request_error; details=\"The request head did not come in time.\"",
      "The request head did not come in time."),
  ]

  @Test(arguments: rows)
  func `an answer is these bytes and no others`(_ row: ReplyRow) {
    let field = row.field.map { "\($0)\r\n" } ?? ""
    let expected =
      "HTTP/1.1 \(row.status)\r\nProxy-Status: pinfold; \(row.proxyStatus)\r\nContent-Type: text/plain\r\n"
      + "Content-Length: \(row.body.utf8.count + 1)\r\nConnection: close\r\n\(field)\r\n\(row.body)\n"
    #expect(String(decoding: ProxyReply(row.failure).bytes, as: UTF8.self) == expected)
  }

  @Test func `an open tunnel is answered without fields`() {
    #expect(String(decoding: ProxyReply.established, as: UTF8.self) == "HTTP/1.1 200 Connection established\r\n\r\n")
  }

  @Test func `details escape what a structured field must escape`() {
    #expect(ProxyReply.quoted(#"a "b" \c"#) == #""a \"b\" \\c""#)
    #expect(ProxyReply.quoted("a\r\nX: é") == #""a??X: ?""#)
  }

  @Test(arguments: Reason.allCases.filter { !$0.allows })
  func `every reason has an answer of 4xx or 5xx that names it`(_ reason: Reason) {
    let reply = ProxyReply(.policy(reason))
    #expect((400...599).contains(reply.status))
    #expect(reply.details == reason.rawValue)
  }

  @Test func `a fatal alert is seven bytes`() {
    #expect(TLSAlert.fatal(TLSAlert.accessDenied, version: 0x0301) == [21, 3, 1, 0, 2, 2, 49])
  }
}
