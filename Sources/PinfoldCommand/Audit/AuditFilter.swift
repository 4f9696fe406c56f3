import FoundationEssentials
import PinfoldModel
import PinfoldPolicy
import PinfoldTelemetry

/// Which records of the audit are wanted.
struct AuditFilter {
  /// What is to happen with a line.
  enum Verdict {
    case matches
    case differs
    /// No record: what a crash or a full disk left of one, or somebody else's line.
    case unreadable
  }

  private struct Record: Decodable {
    let time: String
    let event: String
    let host: String?
    let rule: String?
    let reason: String?
  }

  private let since: Timestamp?
  private let host: String?
  private let reason: Reason?

  /// What is `nil` is not asked for. `host` is in its normal form.
  init(since: Timestamp? = nil, host: String? = nil, reason: Reason? = nil) {
    self.since = since
    self.reason = reason
    self.host = host
  }

  /// A host, with or without its port, or the pattern of a rule in its normal form; `nil` for anything else.
  static func normalHost(_ text: String) -> String? {
    let name = text.lowercased()
    if let host = HostName(name, bracketed: name.hasPrefix("[")) { return host.text }
    return Authority(name)?.text ?? (try? HostPattern(name))?.text
  }

  /// Whether the file of this day can hold what is wanted.
  func takes(day: Int64) -> Bool { since.map { day >= AuditDay.day(of: $0.seconds) } ?? true }

  /// Reads one line, without its newline.
  func verdict(on line: [UInt8]) -> Verdict {
    guard let record = try? JSONDecoder().decode(Record.self, from: Data(line)), let time = Timestamp(record.time)
    else { return .unreadable }
    // The written fraction counts from the whole second on that `since` names.
    if let since, time < since { return .differs }
    if let reason, record.reason != reason.rawValue { return .differs }
    if let host, !Self.names(host, record) { return .differs }
    return .matches
  }

  /// Whether the record's host, with or without its port, or its rule is this one.
  private static func names(_ host: String, _ record: Record) -> Bool {
    if record.host == host || record.rule == host { return true }
    return record.host.flatMap { Authority($0) }?.host.text == host
  }
}
