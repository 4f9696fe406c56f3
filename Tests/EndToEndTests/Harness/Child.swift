import Foundation
import Glibc
import Synchronization

/// A process with its output in files, so that no pipe can fill up; killed with its group and reaped with its owner.
final class Child: Sendable {
  /// How a process ended.
  enum Ending: Equatable {
    case exited(Int32)
    case signalled(Int32)
  }

  let pid: pid_t
  let outputPath: String
  let errorsPath: String
  private let workspace: Workspace
  private let ending = Mutex<Ending?>(nil)

  /// Starts the command found in PATH, with the given variables added to a small environment.
  init(_ arguments: [String], environment: [String: String] = [:], input: String = "") throws {
    workspace = try Workspace("child")
    outputPath = workspace.path("stdout")
    errorsPath = workspace.path("stderr")
    let inputPath = try workspace.write("stdin", input)
    guard let name = arguments.first, let executable = Self.find(name) else {
      throw HarnessError("no command \(arguments.first ?? "")")
    }
    let inherited = ProcessInfo.processInfo.environment
    var variables = ["PATH": Self.searchPath, "LANG": "C.UTF-8", "HOME": inherited["HOME"] ?? "/"]
    // A sanitizer is told by these what to do, the one in the program under test too.
    for name in ["TSAN_OPTIONS", "LD_PRELOAD"] { variables[name] = inherited[name] }
    variables.merge(environment) { $1 }
    pid = try Self.spawn(
      executable, arguments, variables.map { "\($0)=\($1)" }, files: [inputPath, outputPath, errorsPath])
    Leftovers.add(group: pid)
  }

  deinit {
    if ending.withLock({ $0 }) == nil {
      kill(-pid, SIGKILL)
      var status: Int32 = 0
      _ = unsafe waitpid(pid, &status, 0)
    }
    Leftovers.remove(group: pid)
  }

  private static let searchPath = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin") + ":/usr/sbin:/sbin"

  private static func find(_ name: String) -> String? {
    if name.contains("/") { return name }
    return searchPath.split(separator: ":").map { "\($0)/\(name)" }.first {
      FileManager.default.isExecutableFile(atPath: $0)
    }
  }

  private static func spawn(
    _ executable: String, _ arguments: [String], _ environment: [String], files: [String]
  ) throws -> pid_t {
    var actions = unsafe posix_spawn_file_actions_t()
    var attributes = posix_spawnattr_t()
    unsafe posix_spawn_file_actions_init(&actions)
    unsafe posix_spawnattr_init(&attributes)
    defer {
      unsafe posix_spawn_file_actions_destroy(&actions)
      unsafe posix_spawnattr_destroy(&attributes)
    }
    for (descriptor, path) in files.enumerated() {
      let flags = descriptor == 0 ? O_RDONLY : O_WRONLY | O_CREAT | O_APPEND
      unsafe posix_spawn_file_actions_addopen(&actions, Int32(descriptor), path, flags, 0o600)
    }
    // What other tests of this process have open must not live on in a server.
    // Closing a number that is not open is no error here.
    for descriptor in Int32(3)..<256 { unsafe posix_spawn_file_actions_addclose(&actions, descriptor) }
    // Dispatch blocks all signals on its threads, and a child inherits that.
    var none = sigset_t()
    var all = sigset_t()
    unsafe sigemptyset(&none)
    unsafe sigfillset(&all)
    unsafe posix_spawnattr_setsigmask(&attributes, &none)
    unsafe posix_spawnattr_setsigdefault(&attributes, &all)
    unsafe posix_spawnattr_setpgroup(&attributes, 0)
    let flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
    unsafe posix_spawnattr_setflags(&attributes, Int16(flags))
    var pid: pid_t = 0
    let argv = unsafe arguments.map { unsafe strdup($0) } + [nil]
    let envp = unsafe environment.map { unsafe strdup($0) } + [nil]
    defer { unsafe (argv + envp).forEach { unsafe free($0) } }
    let result = unsafe posix_spawn(&pid, executable, &actions, &attributes, argv, envp)
    guard result == 0 else { throw HarnessError("cannot start \(executable): error \(result)") }
    return pid
  }

  /// Sends a signal to the process alone.
  func signal(_ number: Int32) { kill(pid, number) }

  /// The ending, once there is one.
  func poll() -> Ending? {
    ending.withLock { ending in
      guard ending == nil else { return ending }
      var status: Int32 = 0
      guard unsafe waitpid(pid, &status, WNOHANG) == pid else { return nil }
      let signal = status & 0x7f
      ending = signal == 0 ? .exited(status >> 8 & 0xff) : .signalled(signal)
      return ending
    }
  }

  /// Waits for the ending; kills the process and throws when it takes longer.
  @discardableResult func wait(seconds: Double = 20) throws -> Ending {
    do {
      return try Wait.until("the end of process \(pid)", seconds: seconds) { poll() }
    } catch {
      kill(-pid, SIGKILL)
      throw HarnessError("\(error)\n\(output)\n\(errors)")
    }
  }

  var output: String { (try? String(contentsOfFile: outputPath, encoding: .utf8)) ?? "" }
  var errors: String { (try? String(contentsOfFile: errorsPath, encoding: .utf8)) ?? "" }
}

/// A command run to its end.
struct Command: CustomStringConvertible {
  let arguments: [String]
  let ending: Child.Ending
  let output: String
  let errors: String

  init(_ arguments: [String], environment: [String: String] = [:], input: String = "", seconds: Double = 20) throws {
    let child = try Child(arguments, environment: environment, input: input)
    self.arguments = arguments
    ending = try child.wait(seconds: seconds)
    output = child.output
    errors = child.errors
  }

  var succeeded: Bool { ending == .exited(0) }
  var description: String { "\(arguments.joined(separator: " ")) \(ending)\n\(output)\(errors)" }

  /// Runs a command that has to succeed, and returns what it wrote.
  @discardableResult static func output(_ arguments: [String], input: String = "") throws -> String {
    let command = try Command(arguments, input: input)
    guard command.succeeded else { throw HarnessError("\(command)") }
    return command.output
  }
}
