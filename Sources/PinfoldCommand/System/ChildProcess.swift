import Glibc

/// Runs a program to its end: for the demonstration, which needs a real HTTPS client.
struct ChildProcess {
  /// Exit code; 128 and the signal's number when a signal ended it.
  let status: Int
  let output: String
  let errors: String

  /// Finds a program the way execvp(3) does.
  static func find(_ name: String) -> String? {
    for directory in (Environment["PATH"] ?? "/usr/bin:/bin").split(separator: ":") {
      let path = "\(directory)/\(name)"
      if unsafe access(path, X_OK) == 0 { return path }
    }
    return nil
  }

  /// Runs `path` with standard input closed and the process's environment. It must end by itself, and write less
  /// than a pipe holds (64 KiB) to each of its outputs: they are read when it has ended.
  init(_ path: String, _ arguments: [String]) throws(FileFailure) {
    let output = try Pipe()
    let errors = try Pipe()
    var actions = unsafe posix_spawn_file_actions_t()
    unsafe posix_spawn_file_actions_init(&actions)
    defer { unsafe posix_spawn_file_actions_destroy(&actions) }
    unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
    unsafe posix_spawn_file_actions_adddup2(&actions, output.writeEnd, STDOUT_FILENO)
    unsafe posix_spawn_file_actions_adddup2(&actions, errors.writeEnd, STDERR_FILENO)
    // Signals that wait here until somebody hears them must reach the child.
    var attributes = posix_spawnattr_t()
    unsafe posix_spawnattr_init(&attributes)
    defer { unsafe posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    unsafe sigemptyset(&none)
    unsafe posix_spawnattr_setsigmask(&attributes, &none)
    unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    var words = unsafe ([path] + arguments).map { unsafe strdup($0) } + [nil]
    defer { unsafe words.forEach { unsafe free($0) } }
    var child: pid_t = 0
    let code = unsafe posix_spawn(&child, path, &actions, &attributes, &words, environ)
    guard code == 0 else { throw FileFailure("run", path, code: code) }
    var status: Int32 = 0
    while unsafe waitpid(child, &status, 0) < 0, errno == EINTR {}
    // WIFSIGNALED and WEXITSTATUS are macros: the low seven bits are the signal, the next eight the exit code.
    let signal = Int(status & 0x7f)
    self.status = signal == 0 ? Int(status >> 8 & 0xff) : 128 + signal
    self.output = output.drained()
    self.errors = errors.drained()
  }

  /// Both ends of pipe(2), closed on exec and when this goes away.
  private struct Pipe: ~Copyable {
    let readEnd: Int32
    let writeEnd: Int32

    init() throws(FileFailure) {
      var ends: [Int32] = [0, 0]
      guard unsafe pipe(&ends) == 0 else { throw FileFailure("open", "pipe", code: errno) }
      readEnd = ends[0]
      writeEnd = ends[1]
      for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
      _ = fcntl(readEnd, F_SETFL, O_NONBLOCK)
    }

    deinit {
      close(readEnd)
      close(writeEnd)
    }

    borrowing func drained() -> String {
      var text: [UInt8] = []
      var chunk = [UInt8](repeating: 0, count: 65_536)
      while true {
        let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(readEnd, $0.baseAddress, $0.count) }
        guard count > 0 else { return String(decoding: text, as: UTF8.self) }
        text += chunk[..<count]
      }
    }
  }
}
