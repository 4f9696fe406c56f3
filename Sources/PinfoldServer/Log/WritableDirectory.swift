import Glibc

/// Asks beforehand what would keep this process from making a file.
enum WritableDirectory {
  /// An errno, as faccessat(2) answers it for the effective user; `nil` where nothing speaks against it.
  static func problem(_ path: String) -> Int32? {
    unsafe faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) == 0 ? nil : errno
  }

  /// The same for the directory that a file has, or will have.
  static func problem(of file: String) -> Int32? {
    guard let slash = file.lastIndex(of: "/") else { return problem(".") }
    return problem(slash == file.startIndex ? "/" : String(file[..<slash]))
  }
}
