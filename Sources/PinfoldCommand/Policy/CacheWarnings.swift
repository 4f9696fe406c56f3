import FoundationEssentials
import PinfoldConfig
import PinfoldCrypto

/// What keeps the sealed cache from being used, or lets others in, as a start would find it; nothing is made.
enum CacheWarnings {
  /// One line each.
  static func list(_ configuration: Configuration) -> [String] {
    let path = configuration.cacheKeyFile ?? configuration.stateDirectory + "/cache.key"
    var warnings: [String] = []
    do throws(CryptoError) { _ = try SealingKey(path: path, warnings: &warnings) } catch {
      // A key that is missing is made at the start; of its own folder only where that is the state directory.
      guard case .file(let fault) = error, fault.isMissing else { return warnings + [text(error.description)] }
      if let file = configuration.cacheKeyFile, !hasFolder(file) {
        warnings.append(text("\(file): its folder has to be there, so that a key can be made"))
      }
    }
    return warnings
  }

  private static func text(_ reason: String) -> String { "the sealed cache cannot be used: \(reason)" }

  private static func hasFolder(_ file: String) -> Bool {
    let folder = file.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
    var isDirectory = false
    return FileManager.default.fileExists(atPath: folder.isEmpty ? "/" : folder, isDirectory: &isDirectory)
      && isDirectory
  }
}
