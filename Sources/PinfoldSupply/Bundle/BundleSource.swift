package import PinfoldConfig
import PinfoldCrypto
package import PinfoldModel
import PinfoldPolicy

/// The bundles of the configuration: which files, believed on whose word, up to which size.
package struct BundleSource: Sendable {
  private let bundles: [Located]
  private let configurationFile: String
  private let maxBytes: Int
  /// Whose signatures count.
  package let trust: TrustedKeys

  /// Takes the configuration's `policy` section; `file` names the configuration in complaints about its keys. Throws
  /// for keys that are none and for a threshold that cannot be met.
  package init(_ section: PolicySection, file: String) throws(FileErrors) {
    trust = try TrustedKeys(section, file: file)
    bundles = section.bundles
    configurationFile = file
    maxBytes = section.maxBundleBytes
  }

  /// Throws for each bundle whose file does not exist: at start that is a mistake of the configuration, later it is a
  /// refusal like any other.
  package func requireFiles() throws(FileErrors) {
    var complaints: [Complaint] = []
    for bundle in bundles where !Self.isRemote(bundle.text) {
      do throws(FileError) { try PrivateFile.requireRegular(bundle.text) } catch  where error.isMissing {
        complaints.append(
          Complaint(at: bundle.place, path: bundle.path, "no such file: \(bundle.text); sign one with pinfold sign"))
      } catch {
        // What is there and cannot be used is refused with its reason when it is loaded.
        continue
      }
    }
    guard complaints.isEmpty else { throw FileErrors(file: configurationFile, complaints) }
  }

  /// Reads all bundles in their order. The acceptable one with the highest version is the newest, the first of equals.
  package func newest(at now: Timestamp, highest: UInt64) -> (bundle: PolicyBundle?, refusals: [BundleRefusal]) {
    var newest: PolicyBundle?
    var refusals: [BundleRefusal] = []
    for bundle in bundles {
      do throws(BundleRefusal) {
        let candidate = try load(bundle.text)
        try candidate.requireAcceptable(at: now, highest: highest)
        if candidate.document.version > newest?.document.version ?? 0 { newest = candidate }
      } catch {
        refusals.append(error)
      }
    }
    return (newest, refusals)
  }

  private func load(_ path: String) throws(BundleRefusal) -> PolicyBundle {
    guard !Self.isRemote(path) else { throw BundleRefusal(file: path, cause: .notLocal) }
    let bytes: [UInt8]
    do throws(FileError) { bytes = try PrivateFile.read(path, limit: maxBytes).bytes } catch {
      throw BundleRefusal(file: path, cause: .file(error))
    }
    return try PolicyBundle(envelope: bytes, trust: trust, file: path)
  }

  private static func isRemote(_ path: String) -> Bool { path.hasPrefix("https://") }
}
