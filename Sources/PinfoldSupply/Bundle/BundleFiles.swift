import PinfoldCrypto

/// What the files of `policy.bundles` held at one moment, as read and not believed.
package struct BundleFiles: Sendable {
  private var entries: [String: Result<[UInt8], FileError>] = [:]

  /// Of no file.
  init() {}

  /// Reads these files, of which each may have so many bytes.
  init(_ paths: [String], limit: Int) {
    for path in paths {
      entries[path] = Result { () throws(FileError) in try PrivateFile.read(path, limit: limit).bytes }
    }
  }

  /// What a file held, or why it could not be read; `nil` for one that was not looked at.
  subscript(path: String) -> Result<[UInt8], FileError>? { entries[path] }
}
