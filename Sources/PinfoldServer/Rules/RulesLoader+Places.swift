import FoundationEssentials
package import PinfoldConfig
import PinfoldTelemetry
package import PinfoldTLS

extension RulesLoader {
  /// Throws for places that the configuration names and that are not there.
  package func requirePlaces(_ configuration: Configuration) throws(FileErrors) {
    guard let located = configuration.audit.file, let file = AuditFileName(located.text) else { return }
    var isDirectory = false
    guard FileManager.default.fileExists(atPath: file.directory, isDirectory: &isDirectory), isDirectory else {
      throw FileErrors(
        file: path,
        [Complaint(at: located.place, path: located.path, "no such directory: \(file.directory)")])
    }
  }

  /// The authorities that the configuration trusts. Throws where they cannot be read.
  package func authorities(_ configuration: Configuration) throws(FileErrors) -> TrustStore {
    let file = configuration.tls.caFile
    do throws(TLSError) {
      return if let file { try TrustStore(caFile: file.text) } else { try TrustStore() }
    } catch {
      throw FileErrors(file: path, [Complaint(at: file?.place, path: "tls.ca_file", error.description)])
    }
  }
}
