import Glibc

/// Where a command writes. Tests collect the lines; the process has its two descriptors.
struct Console: Sendable {
  /// Writes a line (the newline is added) to standard output.
  let line: @Sendable (String) -> Void
  /// Writes a message to standard error, every line led by `pinfold: `.
  let complain: @Sendable (String) -> Void
  /// Whether a person reads standard output.
  var isTerminal = false

  /// Standard output and standard error, unbuffered: what is said before a crash or a kill has been said.
  static let standard = Console(
    line: { write($0 + "\n", to: STDOUT_FILENO) },
    complain: { write(prefixed($0), to: STDERR_FILENO) }, isTerminal: isatty(STDOUT_FILENO) == 1)

  /// The form of every message on standard error.
  static func prefixed(_ message: String) -> String {
    message.split(separator: "\n", omittingEmptySubsequences: false).map { "pinfold: \($0)\n" }.joined()
  }

  /// Writes all of it, or what the descriptor takes: there is nowhere left to complain to.
  private static func write(_ text: String, to descriptor: Int32) {
    var bytes = Array(text.utf8)[...]
    while !bytes.isEmpty {
      let count = unsafe bytes.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
      guard count > 0 else {
        if count < 0, errno == EINTR { continue }
        return
      }
      bytes = bytes.dropFirst(count)
    }
  }
}
