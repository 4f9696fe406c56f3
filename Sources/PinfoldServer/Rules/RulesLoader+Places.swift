import FoundationEssentials
package import PinfoldConfig
import PinfoldTelemetry

extension RulesLoader {
  /// Throws for places that the configuration names and that are not there.
  package func requirePlaces(_ configuration: Configuration) throws(FileErrors) {
    guard let file = configuration.audit.file.flatMap({ AuditFileName($0) }) else { return }
    var isDirectory = false
    guard FileManager.default.fileExists(atPath: file.directory, isDirectory: &isDirectory), isDirectory else {
      throw FileErrors(file: path, [Complaint(at: nil, path: "audit.file", "no such directory: \(file.directory)")])
    }
  }
}
