import PinfoldModel

/// The names of the daily files: `audit.file` with the day (UTC) in front of its ending, so that
/// `/var/log/audit.jsonl` becomes `/var/log/audit-2026-11-21.jsonl`.
package struct AuditFileName: Equatable, Sendable {
  /// The directory that holds the files, without a slash at its end; `.` where the path names none.
  package let directory: String
  private let stem: String
  private let ending: String

  /// Takes the path of `audit.file`; `nil` when it ends in a slash and so names no file.
  package init?(_ path: String) {
    let slash = path.lastIndex(of: "/")
    let name = slash.map { path[path.index(after: $0)...] } ?? path[...]
    guard !name.isEmpty else { return nil }
    directory = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    // A dot in front makes a hidden file, not an ending.
    let dot = name.dropFirst().lastIndex(of: ".") ?? name.endIndex
    stem = name[..<dot] + "-"
    ending = String(name[dot...])
  }

  /// The file's name on a day, counted from 1970-01-01.
  package func name(on day: Int64) -> String { stem + AuditDay.text(day) + ending }

  /// The file's path on a day.
  package func path(on day: Int64) -> String { "\(directory == "/" ? "" : directory)/\(name(on: day))" }

  /// The day that a file of the directory is for; `nil` for every name that is not exactly one of ours.
  package func day(of name: String) -> Int64? {
    guard name.hasPrefix(stem), name.hasSuffix(ending), name.utf8.count == stem.utf8.count + 10 + ending.utf8.count
    else { return nil }
    let start = name.utf8.index(name.startIndex, offsetBy: stem.utf8.count)
    let text = name[start..<name.utf8.index(start, offsetBy: 10)]
    guard let day = Timestamp("\(text)T00:00:00Z").map({ AuditDay.day(of: $0.seconds) }), self.name(on: day) == name
    else { return nil }
    return day
  }
}

/// Days of UTC, counted from 1970-01-01.
package enum AuditDay {
  /// The day of a moment in seconds since 1970.
  package static func day(of seconds: Int64) -> Int64 {
    let (quotient, remainder) = seconds.quotientAndRemainder(dividingBy: 86_400)
    return remainder < 0 ? quotient - 1 : quotient
  }

  /// The day of a moment.
  package static func day(of time: LogTime) -> Int64 {
    let (seconds, rest) = time.milliseconds.quotientAndRemainder(dividingBy: 1000)
    return day(of: rest < 0 ? seconds - 1 : seconds)
  }

  /// `2026-11-21`.
  static func text(_ day: Int64) -> String {
    String(Timestamp(seconds: day.multipliedReportingOverflow(by: 86_400).partialValue).text.dropLast(10))
  }
}
