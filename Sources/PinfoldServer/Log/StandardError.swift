import Glibc

/// The process's standard error, written whole or not at all as far as the system lets us.
enum StandardError {
  /// Writes all bytes (write(2)); gives up on an error, since there is nowhere left to report it.
  static func write(_ bytes: [UInt8]) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if errno != EINTR {
        return
      }
    }
  }

  /// Whether a person is looking (isatty(3)).
  static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }
}
