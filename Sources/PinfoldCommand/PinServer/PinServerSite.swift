import PinfoldLoop
import PinfoldModel
import PinfoldSupply
import PinfoldTLS

/// The pages of a pin server, with the statuses and bodies of the family's servers.
struct PinServerSite: Sendable {
  /// Bytes of a domain name.
  static let domainLimit = 253

  let domains: DomainAllowList
  let source: any PinLookUp
  let writer: PinRecordWriter
  /// Hears, in words for the operator, why a domain that is allowed got no record.
  let complain: @Sendable (String) -> Void

  /// Answers one request; on the loop's thread.
  func answer(_ request: HTTPRequest) async -> HTTPResponse {
    switch request.path {
    case "/health":
      return request.method == .get ? Self.json(200, "{\"status\":\"healthy\"}") : Self.json(405, "")
    case "/readiness":
      guard request.method == .get else { return Self.json(405, "") }
      return Self.json(
        200,
        "{\"allowed_domains\":\(domains.patterns.count),\"key_id\":\"\(writer.key.id)\",\"status\":\"ready\"}")
    case "/v1/pins":
      guard request.method == .get else { return Self.error(405, "Method not allowed") }
      return await pins(QueryString(request.query))
    default: return Self.error(404, "Not found")
    }
  }

  private func pins(_ query: QueryString) async -> HTTPResponse {
    guard let domain = query["domain"], !domain.isEmpty else {
      return Self.error(400, "Missing required query parameter: domain")
    }
    guard domain.utf8.count <= Self.domainLimit else { return Self.error(400, "Invalid domain parameter") }
    guard domains.allows(domain) else { return Self.error(403, "Domain not found in whitelist") }
    let failed = Self.error(422, "Failed to retrieve certificate for domain")
    guard let host = HostName(domain) else { return failed }
    switch await source.pins(of: host) {
    case .failure(.busy): return Self.error(503, "Too many domains are being looked up")
    case .failure(.unknown(let why)):
      complain("\(host.text): no pins: \(why)")
      return failed
    case .success(let pins):
      // Only a JWS has a way to ask for the others; their clients of the other records take what is there.
      let asksForAll = query["include-backup-pins"] == "true"
      let keys = writer.format == .jws && !asksForAll ? Array(pins.keys.prefix(1)) : pins.keys
      do throws(TLSError) {
        return HTTPResponse(
          status: 200, contentType: Self.type, body: try writer.write(domain, pins: keys, at: WallClock.now))
      } catch {
        complain("\(host.text): no record: \(error.description)")
        return Self.error(500, "Failed to sign")
      }
    }
  }

  private static let type = "application/json"

  private static func json(_ status: Int, _ text: String) -> HTTPResponse {
    HTTPResponse(status: status, contentType: type, body: Array(text.utf8))
  }

  private static func error(_ status: Int, _ text: String) -> HTTPResponse {
    json(status, "{\"error\":\"\(text)\",\"code\":\(status)}")
  }
}
