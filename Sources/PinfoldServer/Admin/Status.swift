import FoundationEssentials
import PinfoldLoop
import PinfoldModel
import PinfoldPolicy

/// What `/status` shows, as JSON: the state of the process for people and scripts. Keys are part of the interface.
struct Status: Encodable {
  struct Policy: Encodable {
    let version: UInt64
    let issuedAt: String
    let expiresAt: String
    let expired: Bool
    let enabled: Bool
    let rules: Int
  }

  struct Tunnels: Encodable {
    let active: Int
    let limit: Int
  }

  struct Reload: Encodable {
    let at: String
    let result: String
    let error: String?
  }

  struct Service: Encodable {
    /// Without user, path and query.
    let urls: [URL]
    let domains: [String]
  }

  struct URL: Encodable {
    let url: String
    /// The label of `pinfold_pin_fetches_total`; absent before the first try.
    let lastResult: String?
    let lastAt: String?
    let lastError: String?
  }

  let version: String
  /// `serving`, `not_ready` or `draining`.
  let state: String
  /// Why it is not ready.
  let detail: String?
  let startedAt: String
  let now: String
  let listen: [String]
  let workers: Int
  let unpinned: String
  let policy: Policy?
  let tunnels: Tunnels
  let lastReload: Reload?
  let pinServices: [Service]
  /// Records of pin services in memory.
  let pinRecords: Int
  /// Absent without `audit.file`.
  var audit: AuditFigures?
  /// Absent without a policy.
  var breaker: Breaker?

  /// The JSON text, keys sorted.
  var json: [UInt8] {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(self) else { return Array("{}".utf8) }
    return Array(data) + [0x0a]
  }
}

extension Status.Policy {
  init?(_ snapshot: PolicySnapshot, at now: Timestamp) {
    guard let document = snapshot.document else { return nil }
    self.init(
      version: document.version, issuedAt: document.issuedAt.text, expiresAt: document.expiresAt.text,
      expired: now >= document.expiresAt, enabled: document.enabled, rules: document.table.count)
  }
}
