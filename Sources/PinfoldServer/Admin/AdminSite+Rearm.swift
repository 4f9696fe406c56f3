import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldTelemetry

extension AdminSite {
  /// The one path that changes something.
  static let rearmPath = "/rearm"

  /// `POST /rearm?host=HOST[:PORT]`: ends the suspensions of the rule that speaks for the host.
  func rearm(_ request: HTTPRequest) -> HTTPResponse {
    guard request.isPost else {
      var response = HTTPResponse(status: 405, text: "re-arming needs POST and the token\n")
      response.fields.append(("Allow", "POST"))
      return response
    }
    guard let token else {
      return HTTPResponse(status: 503, text: "there is no token: the state directory cannot be written\n")
    }
    guard token.admits(request.authorization) else {
      services.log.write(
        .warning, "admin request refused: no token, or a wrong one", [.init("path", .text(Self.rearmPath))])
      var response = HTTPResponse(status: 401, text: "a token is needed: admin.token of the state directory\n")
      response.fields.append(("WWW-Authenticate", "Bearer"))
      return response
    }
    guard let host = Self.host(of: request.query), let authority = Authority(host, defaultPort: 443) else {
      return HTTPResponse(status: 400, text: "which host? POST /rearm?host=api.example.com\n")
    }
    guard let rule = services.rules.current.policy.document?.table.rule(for: authority) else {
      return HTTPResponse(status: 404, text: "no rule names \(authority.text)\n")
    }
    let count = services.breaker.rearm(rule)
    let said = count == 0 ? "nothing was suspended" : count == 1 ? "1 suspension ended" : "\(count) suspensions ended"
    return HTTPResponse(text: "\(rule.pattern) is armed: \(said)\n")
  }

  /// The one value of `host=`; `nil` for any other query.
  private static func host(of query: String?) -> String? {
    guard let query, query.hasPrefix("host="), !query.contains("&") else { return nil }
    return decoded(query.dropFirst(5))
  }

  /// Percent-encoding undone (RFC 3986 §2.1); `nil` where a `%` has no two digits behind it.
  static func decoded(_ text: some StringProtocol) -> String? {
    var bytes: [UInt8] = []
    var rest = text.utf8[...]
    while let byte = rest.popFirst() {
      guard byte == 0x25 else {
        bytes.append(byte)
        continue
      }
      guard let pair = Hex.decode(String(decoding: rest.prefix(2), as: UTF8.self)), pair.count == 1 else { return nil }
      bytes += pair
      rest = rest.dropFirst(2)
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
