import Glibc

/// The process's standard error, written whole or not at all as far as the system lets us.
enum StandardError {
  /// Writes all bytes (write(2)), waiting for the reader as long as it takes, also where whoever shares the descriptor
  /// made it non-blocking; gives up on any other error. Answers how many went out.
  static func write(_ bytes: [UInt8], to descriptor: Int32 = STDERR_FILENO) -> Int {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
      if count > 0 {
        rest = rest.dropFirst(count)
        continue
      }
      switch errno {
      case EINTR: continue
      case EAGAIN:
        var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        _ = unsafe poll(&waiting, 1, -1)
      default: return bytes.count - rest.count
      }
    }
    return bytes.count
  }

  /// Whether a person is looking (isatty(3)).
  static var isTerminal: Bool { isatty(STDERR_FILENO) == 1 }
}
