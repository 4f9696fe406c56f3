import CSodium

/// Why a file could not be read or written.
package enum FileError: Error, Equatable, Sendable, CustomStringConvertible {
  /// A system call failed with this `errno`.
  case system(call: String, path: String, code: Int32)
  /// The file is longer than the limit, in bytes. It was not read.
  case tooLarge(path: String, limit: Int)
  /// A directory, pipe, socket or device stands where a regular file should.
  case notRegular(path: String)

  /// Whether the file, or a directory on the way to it, does not exist.
  package var isMissing: Bool {
    if case .system(_, _, let code) = self { code == ENOENT || code == ENOTDIR } else { false }
  }

  /// Whether a file stands already where a new one was to be made.
  package var isOccupied: Bool {
    if case .system(_, _, let code) = self { code == EEXIST } else { false }
  }

  /// One line: path, what failed, why.
  package var description: String {
    switch self {
    case .system(let call, let path, let code): "\(path): \(call): \(Self.text(of: code))"
    case .tooLarge(let path, let limit): "\(path): larger than the limit of \(limit) bytes"
    case .notRegular(let path): "\(path): not a regular file"
    }
  }

  /// strerror_r(3) with a buffer of our own, since strerror(3) is not safe across threads.
  private static func text(of code: Int32) -> String {
    var buffer = [CChar](repeating: 0, count: 128)
    return unsafe buffer.withUnsafeMutableBufferPointer { buffer in
      guard let base = buffer.baseAddress else { return "error \(code)" }
      return unsafe String(cString: pinfold_error_text(code, base, buffer.count))
    }
  }
}
