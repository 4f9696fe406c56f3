import Glibc
import PinfoldCrypto
import PinfoldServer

/// Reads a password from standard input: one line, or, from a person at a terminal, typed twice without being shown.
enum PasswordPrompt {
  /// Bytes of a password: more fits into no request head.
  static let limit = 1024

  /// The password. Whoever gets it has it in guarded memory; what it was read through is erased.
  static func read() throws(CommandFailure) -> SecretBytes {
    var first: [UInt8] = []
    var second: [UInt8] = []
    defer {
      erase(&first)
      erase(&second)
    }
    guard isatty(STDIN_FILENO) == 1 else {
      try readLine(&first)
      return try checked(first)
    }
    try typed("Password: ", &first)
    try typed("Again: ", &second)
    guard constantTimeEqual(first, second) else {
      throw CommandFailure(.failed, "the two passwords differ; nothing was changed")
    }
    return try checked(first)
  }

  private static func checked(_ line: [UInt8]) throws(CommandFailure) -> SecretBytes {
    guard !line.isEmpty else { throw CommandFailure(.failed, "the password is empty; nothing was changed") }
    guard CredentialText.isPassword(line) else {
      throw CommandFailure(.failed, "a password is UTF-8 without control characters; nothing was changed")
    }
    do throws(CryptoError) {
      return try SecretBytes(copying: line)
    } catch {
      throw CommandFailure(.failed, error.description)
    }
  }

  /// Everything up to the end, which has to be one line; its newline is no part of it.
  private static func readLine(_ line: inout [UInt8]) throws(CommandFailure) {
    // Room from the start: a buffer that grew would leave copies behind.
    line.reserveCapacity(limit + 2)
    while line.count <= limit + 1, let byte = try nextByte() { line.append(byte) }
    if line.last == 0x0a { line.removeLast() }
    guard !line.contains(0x0a) else {
      throw CommandFailure(.failed, "standard input has more than one line; nothing was changed")
    }
    guard line.count <= limit else {
      throw CommandFailure(.failed, "a password has at most \(limit) bytes; nothing was changed")
    }
  }

  private static func nextByte() throws(CommandFailure) -> UInt8? {
    var byte: UInt8 = 0
    while true {
      let count = unsafe Glibc.read(STDIN_FILENO, &byte, 1)
      if count == 1 { return byte }
      if count == 0 { return nil }
      guard errno == EINTR else {
        throw CommandFailure(.failed, "cannot read standard input: \(FileFailure.text(errno))")
      }
    }
  }

  /// One line from the terminal, which shows nothing of it (termios(3)). The terminal gives single bytes and sends no
  /// signals meanwhile, so that nothing can leave it silent.
  private static func typed(_ prompt: String, _ line: inout [UInt8]) throws(CommandFailure) {
    line.reserveCapacity(limit + 2)
    var before = termios()
    guard unsafe tcgetattr(STDIN_FILENO, &before) == 0 else {
      throw CommandFailure(.failed, "cannot keep the terminal from showing the password: \(FileFailure.text(errno))")
    }
    var silent = before
    silent.c_lflag &= ~tcflag_t(ECHO | ISIG | ICANON)
    guard unsafe tcsetattr(STDIN_FILENO, TCSAFLUSH, &silent) == 0 else {
      throw CommandFailure(.failed, "cannot keep the terminal from showing the password: \(FileFailure.text(errno))")
    }
    say(prompt)
    defer {
      unsafe tcsetattr(STDIN_FILENO, TCSAFLUSH, &before)
      say("\n")
    }
    while let byte = try nextByte() {
      switch byte {
      case 0x0a, 0x0d: return
      case 0x03, 0x04: throw CommandFailure(.failed, "interrupted; nothing was changed")
      case 0x15:
        erase(&line)
        line.removeAll(keepingCapacity: true)
      case 0x08, 0x7f:
        // The last character may have several bytes.
        while let last = line.last {
          line[line.count - 1] = 0
          line.removeLast()
          if last & 0xc0 != 0x80 { break }
        }
      default:
        guard line.count < limit else {
          throw CommandFailure(.failed, "a password has at most \(limit) bytes; nothing was changed")
        }
        line.append(byte)
      }
    }
  }

  private static func say(_ text: String) {
    let bytes = Array(text.utf8)
    _ = unsafe bytes.withUnsafeBytes { unsafe write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}
