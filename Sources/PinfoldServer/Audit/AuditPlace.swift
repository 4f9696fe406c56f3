package import PinfoldConfig
import PinfoldTelemetry

/// The directory of `audit.file`, as it is found.
package enum AuditPlace {
  /// What would keep records from the file, one line each: for `check`.
  package static func warnings(_ configuration: Configuration) -> [String] {
    guard let file = configuration.audit.file.flatMap({ AuditFileName($0.text) }),
      let code = WritableDirectory.problem(file.directory)
    else { return [] }
    return ["audit.file: records would be lost: cannot write in \(file.directory): \(SystemError.text(code))"]
  }
}
