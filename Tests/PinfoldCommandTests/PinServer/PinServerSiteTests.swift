import PinfoldConfig
import PinfoldCrypto
import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply
import Synchronization
import Testing

@testable import PinfoldCommand

/// Statuses and bodies as the family's servers have them.
@Suite struct PinServerSiteTests {
  /// Knows the hosts below `lab.test`.
  private struct Known: PinLookUp {
    func pins(of host: HostName) async -> Result<HostPins, PinLookUpFailure> {
      switch host.text {
      case "busy.lab.test": .failure(.busy)
      case let text where text.hasSuffix("lab.test"): .success(HostPins(keys: PinServerSiteTests.keys))
      default: .failure(.unknown("its certificate is for other names"))
      }
    }
  }

  static let keys = [UInt8(1), 2].compactMap { Digest256([UInt8](repeating: $0, count: 32)) }
  private let key: Ed25519SecretKey
  private let said = Said()

  private final class Said: Sendable { let lines = Mutex<[String]>([]) }

  init() throws { key = try Ed25519SecretKey() }

  private func site(_ format: PinRecord.Format = .ed25519, allowsAddresses: Bool = false) throws -> PinServerSite {
    let names = ["lab.test", "*.lab.test", "127.0.0.1", "other.test", "nohost.test"]
    let said = said
    return PinServerSite(
      domains: DomainAllowList(
        patterns: try names.map { try DomainNames.pattern($0) }, allowsAddresses: allowsAddresses),
      source: Known(), writer: try #require(PinRecordWriter(format, key: .keygen(key), ttlSeconds: 600)),
      complain: { line in said.lines.withLock { $0.append(line) } })
  }

  struct Row: CustomTestStringConvertible {
    let method: HTTPRequest.Method
    let target: String
    let status: Int
    let body: String?

    init(_ target: String, _ status: Int, _ body: String? = nil, method: HTTPRequest.Method = .get) {
      self.method = method
      self.target = target
      self.status = status
      self.body = body
    }

    var testDescription: String { "\(method) \(target.prefix(60)): \(status)" }
    var request: HTTPRequest {
      let parts = target.split(separator: "?", maxSplits: 1).map(String.init)
      return HTTPRequest(method: method, path: parts[0], query: parts.count > 1 ? parts[1] : nil)
    }
  }

  private static let missing = "{\"error\":\"Missing required query parameter: domain\",\"code\":400}"
  private static let unlisted = "{\"error\":\"Domain not found in whitelist\",\"code\":403}"
  private static let failed = "{\"error\":\"Failed to retrieve certificate for domain\",\"code\":422}"

  @Test(arguments: [
    Row("/health", 200, "{\"status\":\"healthy\"}"), Row("/health", 405, "", method: .other),
    Row("/health", 405, "", method: .head), Row("/readiness", 405, "", method: .other), Row("/v1/pins", 400, missing),
    Row("/v1/pins?domain=", 400, missing), Row("/v1/pins?name=lab.test", 400, missing),
    Row(
      "/v1/pins?domain=\(String(repeating: "a", count: 254))", 400,
      "{\"error\":\"Invalid domain parameter\",\"code\":400}"),
    Row("/v1/pins?domain=\(String(repeating: "a", count: 253))", 403, unlisted),
    Row("/v1/pins?domain=lab.test", 405, "{\"error\":\"Method not allowed\",\"code\":405}", method: .other),
    Row("/v1/pins?domain=evil.example", 403, unlisted), Row("/v1/pins?domain=deep.api.lab.test", 403, unlisted),
    Row("/v1/pins?domain=api.lab.test.", 403, unlisted),
    Row("/v1/pins?domain=evil.example&domain=lab.test", 403, unlisted),
    Row("/v1/pins?domain=other.test", 422, failed), Row("/v1/pins?domain=nohost.test", 422, failed),
    Row("/v1/pins?domain=*.lab.test", 422, failed), Row("/v1/pins?domain=%20api.lab.test%20", 422, failed),
    Row("/v1/pins?domain=127.0.0.1", 403, unlisted), Row("/v1/pins?domain=[::1]", 403, unlisted),
    Row("/v1/pins?domain=busy.lab.test", 503), Row("/v1/pins?domain=lab.test%00", 403, unlisted), Row("/v1/pins/", 404),
    Row("/metrics", 404), Row("/", 404), Row("/v1/pins?domain=lab.test", 200), Row("/readiness", 200),
  ]) func answers(_ row: Row) async throws {
    let answer = try await site().answer(row.request)
    #expect(answer.status == row.status)
    #expect(answer.contentType == "application/json")
    if let body = row.body { #expect(String(decoding: answer.body, as: UTF8.self) == body) }
  }

  @Test func `readiness names the key and counts the domains`() async throws {
    let answer = try await site().answer(HTTPRequest(path: "/readiness"))
    let id = key.publicKey.keyID.prefix(8)
    #expect(
      String(decoding: answer.body, as: UTF8.self)
        == "{\"allowed_domains\":5,\"key_id\":\"\(id)\",\"status\":\"ready\"}")
  }

  @Test(
    arguments: [
      (.jws, nil, 1), (.jws, "true", 2), (.jws, "false", 1), (.jws, "TRUE", 1), (.jws, "1", 1), (.ed25519, nil, 2),
      (.ed25519, "true", 2), (.fingerprint, "true", 1),
    ] as [(PinRecord.Format, String?, Int)])
  func `a JWS has its other pins on request`(_ format: PinRecord.Format, _ parameter: String?, _ count: Int)
    async throws
  {
    let query = "domain=api.lab.test" + (parameter.map { "&include-backup-pins=\($0)" } ?? "")
    let answer = try await site(format).answer(HTTPRequest(path: "/v1/pins", query: query))
    var service = PinServiceSection()
    service.allowUnboundSignatures = true
    let terms = PinRecordTerms(host: .name("api.lab.test"), now: WallClock.now, service: service)
    let record = try PinRecord(parsing: answer.body, keys: PinServiceKeys(ed25519: [key.publicKey]), terms: terms)
    #expect(record.format == format)
    #expect(record.pins == Self.keys.prefix(count).map(Pin.publicKey))
  }

  @Test func `a domain is echoed as it was asked for`() async throws {
    let answer = try await site().answer(HTTPRequest(path: "/v1/pins", query: "domain=API.Lab.Test"))
    #expect(String(decoding: answer.body, as: UTF8.self).hasPrefix("{\"domain\":\"API.Lab.Test\","))
  }

  @Test func `addresses are served when that is allowed, and known`() async throws {
    let answer = try await site(allowsAddresses: true).answer(HTTPRequest(path: "/v1/pins", query: "domain=127.0.0.1"))
    #expect(answer.status == 422)
  }

  @Test func `the operator hears why, the asker does not`() async throws {
    _ = try await site().answer(HTTPRequest(path: "/v1/pins", query: "domain=other.test"))
    #expect(said.lines.withLock(\.self) == ["other.test: no pins: its certificate is for other names"])
  }
}
