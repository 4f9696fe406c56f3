import CSodium

extension SecretBytes {
  /// Reads a whole regular file of at most `limit` bytes, adding to `warnings` when its mode lets others in.
  package convenience init(file path: String, limit: Int, warnings: inout [String]) throws(CryptoError) {
    let opened = try Self.open(path, limit)
    let count = opened.size
    try unsafe self.init(count: count) { output throws(CryptoError) in
      // A regular file of this size comes in one read; a shorter answer means that it is being changed.
      guard unsafe CSodium.read(opened.file.number, output, count) == count else {
        throw .keyFile(path: path, problem: "it changed while it was read")
      }
    }
    let mode = opened.mode & 0o777
    if mode & 0o077 != 0 {
      warnings.append("\(path): others may use this secret (mode 0\(String(mode, radix: 8))); chmod 600 it")
    }
  }

  private static func open(_ path: String, _ limit: Int) throws(CryptoError) -> RegularFile {
    do throws(FileError) { return try PrivateFile.openRegular(path, limit: limit) } catch { throw .file(error) }
  }
}
