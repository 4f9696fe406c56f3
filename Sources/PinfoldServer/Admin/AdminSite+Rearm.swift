import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldTelemetry

extension AdminSite {
  /// The one path that changes something.
  static let rearmPath = "/rearm"
  /// Time for the disk: less than `pinfold status` gives a request.
  private static let diskPatience = Duration.seconds(2)

  /// `POST /rearm?host=HOST[:PORT]`: ends the suspensions of the rule that speaks for the host, and says so when they are
  /// off the disk too: a start after a crash would take them up again.
  func rearm(_ request: HTTPRequest, _ responder: HTTPResponder) {
    let rule: RuleReference
    do throws(Refused) { rule = try permitted(request) } catch { return responder.send(error.response) }
    let kept = LoopWaiter<Bool>(loop: responder.loop)
    let count = services.breaker.rearm(rule) { kept.wake($0) }
    let said = count == 0 ? "nothing was suspended" : count == 1 ? "1 suspension ended" : "\(count) suspensions ended"
    responder.loop.spawn {
      let isKept = await kept.wait(until: responder.loop.deadline(after: Self.diskPatience)) ?? false
      guard isKept else {
        let lack = "the disk has not taken it, and a crash would undo it; ask again"
        return responder.send(HTTPResponse(status: 503, text: "armed for now: \(said), but \(lack)\n"))
      }
      responder.send(HTTPResponse(text: "\(rule.pattern) is armed: \(said)\n"))
    }
  }

  private struct Refused: Error {
    let response: HTTPResponse

    init(response: HTTPResponse) { self.response = response }

    init(_ status: Int, _ text: String) { response = HTTPResponse(status: status, text: text) }
  }

  /// The rule that this request may re-arm. Throws the answer to one that may not.
  private func permitted(_ request: HTTPRequest) throws(Refused) -> RuleReference {
    guard request.isPost else {
      var response = HTTPResponse(status: 405, text: "re-arming needs POST and the token\n")
      response.fields.append(("Allow", "POST"))
      throw Refused(response: response)
    }
    guard let token else {
      throw Refused(503, "there is no token: the state directory cannot be written\n")
    }
    guard token.admits(request.authorization) else {
      services.log.write(
        .warning, "admin request refused: no token, or a wrong one", [.init("path", .text(Self.rearmPath))])
      var response = HTTPResponse(status: 401, text: "a token is needed: admin.token of the state directory\n")
      response.fields.append(("WWW-Authenticate", "Bearer"))
      throw Refused(response: response)
    }
    guard let host = Self.host(of: request.query), let authority = Authority(host, defaultPort: 443) else {
      throw Refused(400, "which host? POST /rearm?host=api.example.com\n")
    }
    guard let rule = services.rules.current.policy.document?.table.rule(for: authority) else {
      throw Refused(404, "no rule names \(authority.text)\n")
    }
    return rule
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
