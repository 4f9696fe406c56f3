import Glibc
import Synchronization
import Testing

@testable import PinfoldCommand

/// Runs the command line inside the test and keeps what it says.
struct Tool {
  var status: ExitCode
  /// Lines of standard output.
  var output: [String]
  /// Lines of standard error, with their `pinfold: `.
  var errors: [String]

  init(_ words: String...) { self.init(words) }

  init(_ words: [String]) {
    let said = Said()
    let console = Console(
      line: { line in said.output.withLock { $0 += line.lines } },
      complain: { line in said.errors.withLock { $0 += Console.prefixed(line).dropLast().description.lines } })
    status = CommandLineTool.run(words, console: console)
    output = said.output.withLock(\.self)
    errors = said.errors.withLock(\.self)
  }

  private final class Said: Sendable {
    let output = Mutex<[String]>([])
    let errors = Mutex<[String]>([])
  }
}

extension String {
  fileprivate var lines: [String] { split(separator: "\n", omittingEmptySubsequences: false).map(String.init) }
}

/// A directory of its own for a test, gone with the last reference.
final class Scratch {
  let path: String

  init() throws {
    var template = Array("/tmp/pinfold-test-XXXXXX".utf8CString)
    let made = unsafe mkdtemp(&template)
    try #require(unsafe made != nil)
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// The path of a file in it.
  subscript(name: String) -> String { "\(path)/\(name)" }

  /// Writes a file and returns its path.
  @discardableResult func write(_ name: String, _ text: String) throws -> String {
    try FileAccess.replace(self[name], Array(text.utf8), mode: 0o644)
    return self[name]
  }

  func read(_ name: String) throws -> String {
    String(decoding: try FileAccess.read(self[name], limit: 1 << 24), as: UTF8.self)
  }

  func mode(_ name: String) -> mode_t {
    var status = stat()
    guard unsafe stat(self[name], &status) == 0 else { return 0 }
    return status.st_mode & 0o7777
  }

  var names: [String] {
    var result: [String] = []
    guard let directory = unsafe opendir(path) else { return [] }
    defer { unsafe closedir(directory) }
    while let entry = unsafe readdir(directory) {
      let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name != ".", name != ".." { result.append(name) }
    }
    return result.sorted()
  }

  deinit {
    for name in names { unsafe unlink(self[name]) }
    unsafe rmdir(path)
  }
}
