import FoundationEssentials

/// `/status` for people: `key: value` lines, alerts and suspensions at the end. Keys it does not know are left out.
struct StatusReport {
  private struct Answer: Decodable {
    var version: String
    var state: String
    var detail: String?
    var startedAt: String
    var listen: [String]
    var workers: Int
    var unpinned: String
    var policy: Policy?
    var tunnels: Tunnels
    var lastReload: Reload?
    var breaker: Breaker?
  }

  private struct Policy: Decodable {
    var version: UInt64
    var expiresAt: String
    var enabled: Bool
    var rules: Int
  }

  private struct Tunnels: Decodable {
    var active: Int
    var limit: Int
  }

  private struct Reload: Decodable {
    var at: String
    var result: String
    var error: String?
  }

  private struct Breaker: Decodable {
    var enabled: Bool
    var autoDisable: Bool
    var alerts: [Trip]
    var suspensions: [Trip]
  }

  private struct Trip: Decodable {
    var rule: String
    var client: String?
    var since: String
    var until: String?
    var failures: Int
    var samples: Int

    var line: String {
      let who = client.map { "client \($0)" } ?? "all clients"
      let end = until.map { " until \($0)" } ?? ""
      return "\(rule) for \(who)\(end): \(failures) of \(samples) failed, since \(since)"
    }
  }

  /// Without control characters, whatever the answer holds.
  let lines: [String]

  /// `nil` when the answer is no status.
  init?(json: String) {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    guard let answer = try? decoder.decode(Answer.self, from: Data(json.utf8)) else { return nil }
    lines = Self.lines(answer).map { escaped($0) }
  }

  private static func lines(_ answer: Answer) -> [String] {
    var lines = ["state: \(answer.state)"]
    if let detail = answer.detail { lines.append("why: \(detail)") }
    lines += [
      "version: \(answer.version)", "started: \(answer.startedAt)", "listen: \(answer.listen.joined(separator: " "))",
      "workers: \(answer.workers)", "tunnels: \(answer.tunnels.active) of \(answer.tunnels.limit)",
      "unpinned: \(answer.unpinned)",
    ]
    if let policy = answer.policy {
      let off = policy.enabled ? "" : ", switched off"
      lines.append("policy: version \(policy.version), \(policy.rules) rules, expires \(policy.expiresAt)\(off)")
    } else {
      lines.append("policy: none")
    }
    if let reload = answer.lastReload {
      lines.append("reload: \(reload.result) at \(reload.at)" + (reload.error.map { ": \($0)" } ?? ""))
    }
    guard let breaker = answer.breaker else { return lines }
    lines.append("breaker: \(!breaker.enabled ? "off" : breaker.autoDisable ? "suspends" : "alerts")")
    return lines + breaker.suspensions.map { "suspended: \($0.line)" } + breaker.alerts.map { "alert: \($0.line)" }
  }
}
