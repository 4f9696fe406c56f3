import PinfoldConfig
import PinfoldModel
import PinfoldTelemetry

/// `pinfold audit`: reads the audit files.
enum AuditCommand: Subcommand {
  static let since = OptionSyntax(
    long: "--since", value: "ISO8601", help: "from this moment on, such as 2026-11-21 or 2026-11-21T08:00:00Z")
  static let host = OptionSyntax(
    long: "--host", value: "H", help: "of this host (with or without its port), or of the rule of\nexactly this pattern"
  )
  static let reason = OptionSyntax(long: "--reason", value: "R", help: "with this reason, such as pin_mismatch")

  static let syntax = CommandSyntax(
    name: "audit", summary: "Print records of the audit",
    usage: ["[-c FILE] [--since ISO8601] [--host H] [--reason R]"], options: [.config, since, host, reason],
    details: """
      Prints the records (JSON lines) of all days that are there, oldest file first, for which everything
      asked for holds. Lines that are no records, as a crash may leave them, are skipped and named on
      standard error. The exit status is 1 when a file cannot be read, and 78 when the configuration has
      no audit.file.

      Example:
        pinfold audit --since 2026-11-21T08:00:00Z --reason pin_mismatch
      """)

  static func run(_ arguments: Arguments, console: Console) throws(CommandFailure) -> ExitCode {
    let filter = try AuditFilter(
      since: arguments[since].map(moment), host: arguments[host].map(knownHost),
      reason: arguments[reason].map(knownReason))
    let file = try ConfigurationFile(arguments)
    guard let path = file.configuration.audit.file?.text, let name = AuditFileName(path) else {
      throw CommandFailure(.config, "\(file.path): audit.file: not set, so there is no audit to read")
    }
    var status = ExitCode.good
    for (day, path) in try AuditReader.days(name) where filter.takes(day: day) {
      do throws(FileFailure) {
        try AuditReader.lines(of: path) { line, number in
          switch filter.verdict(on: line) {
          case .matches: console.line(String(decoding: line, as: UTF8.self))
          case .differs: break
          case .unreadable: console.complain("\(escaped(path)):\(number): skipped: not a record")
          }
        }
      } catch {
        console.complain(error.message)
        status = .failed
      }
    }
    return status
  }

  private static func moment(_ text: String) throws(CommandFailure) -> Timestamp {
    if let time = Timestamp(text) ?? Timestamp("\(text)T00:00:00Z") { return time }
    throw .usage(
      "audit: --since \(quoted(text)) is no moment; right would be 2026-11-21 or 2026-11-21T08:00:00Z",
      help: "pinfold audit --help")
  }

  private static func knownHost(_ text: String) throws(CommandFailure) -> String {
    if let host = AuditFilter.normalHost(text) { return host }
    throw .usage(
      "audit: --host \(quoted(text)) is no host; right would be api.example.com, api.example.com:443 or *.example.com",
      help: "pinfold audit --help")
  }

  private static func knownReason(_ text: String) throws(CommandFailure) -> Reason {
    if let reason = Reason(rawValue: text) { return reason }
    let near = suggestion(for: text, among: Reason.allCases.map(\.rawValue))
    let right = near.isEmpty ? "; right would be one such as pin_mismatch" : near
    throw .usage("audit: --reason \(quoted(text)) is no reason\(right)", help: "pinfold audit --help")
  }
}
