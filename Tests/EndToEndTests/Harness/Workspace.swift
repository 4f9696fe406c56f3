import Foundation
import Glibc
import Synchronization

/// What went wrong outside the thing under test, or a wait that ended without what it waited for.
struct HarnessError: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// What a process must not leave behind, for owners that live in constants and so to its very end.
enum Leftovers {
  private static let all = Mutex<(groups: Set<pid_t>, folders: Set<String>)>(([], []))
  private static let registered: Void = { _ = atexit { Leftovers.clear() } }()

  static func add(group: pid_t) { change { $0.groups.insert(group) } }
  static func remove(group: pid_t) { change { $0.groups.remove(group) } }
  static func add(folder: String) { change { $0.folders.insert(folder) } }
  static func remove(folder: String) { change { $0.folders.remove(folder) } }

  private static func change(_ body: (inout (groups: Set<pid_t>, folders: Set<String>)) -> Void) {
    registered
    all.withLock { body(&$0) }
  }

  private static func clear() {
    let (groups, folders) = all.withLock { $0 }
    for group in groups { kill(-group, SIGKILL) }
    for folder in folders { try? FileManager.default.removeItem(atPath: folder) }
  }
}

/// A temporary folder that is removed with its owner.
final class Workspace: Sendable {
  let folder: URL

  init(_ name: String = "test") throws {
    folder = FileManager.default.temporaryDirectory.appending(path: "pinfold-\(name)-\(UUID().uuidString.prefix(8))")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    Leftovers.add(folder: folder.path)
  }

  deinit {
    try? FileManager.default.removeItem(at: folder)
    Leftovers.remove(folder: folder.path)
  }

  /// The path of a file inside, whether it exists or not.
  func path(_ name: String) -> String { folder.appending(path: name).path }

  /// Writes a file inside and returns its path.
  @discardableResult func write(_ name: String, _ text: String) throws -> String {
    try text.write(to: folder.appending(path: name), atomically: true, encoding: .utf8)
    return path(name)
  }

  func read(_ name: String) -> String { (try? String(contentsOfFile: path(name), encoding: .utf8)) ?? "" }
}

/// Waiting with an end.
enum Wait {
  /// Asks until the answer is there, every few milliseconds; throws with the given words after so many seconds.
  static func until<Value>(_ what: String, seconds: Double = 10, _ ask: () throws -> Value?) throws -> Value {
    let end = ContinuousClock.now + .seconds(seconds)
    while true {
      if let value = try ask() { return value }
      guard ContinuousClock.now < end else { throw HarnessError("gave up waiting for \(what)") }
      Thread.sleep(forTimeInterval: 0.005)
    }
  }

  /// The same for a condition.
  static func untilTrue(_ what: String, seconds: Double = 10, _ holds: () throws -> Bool) throws {
    _ = try until(what, seconds: seconds) { try holds() ? true : nil }
  }
}
