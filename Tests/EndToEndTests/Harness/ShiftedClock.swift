import Foundation

/// A time of day for one process, as far from the machine's as a test says; `Tests/Clock/clock.c` shows it.
final class ShiftedClock: Sendable {
  private let workspace: Workspace

  init() throws {
    workspace = try Workspace("clock")
    let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    try Command.output(
      ["clang", "-shared", "-fPIC", "-O1", tests.appending(path: "Clock/clock.c").path, "-o", library])
    try shift(by: 0)
  }

  private var library: String { workspace.path("clock.so") }

  /// From now on the process sees a time so many seconds from the machine's.
  func shift(by seconds: Int) throws { try workspace.write("shift", "\(seconds)") }

  /// What a process needs to see it, beside what a sanitizer has loaded already.
  var environment: [String: String] {
    let loaded = ProcessInfo.processInfo.environment["LD_PRELOAD"].map { [$0] } ?? []
    return ["LD_PRELOAD": (loaded + [library]).joined(separator: ":"), "CLOCK_SHIFT": workspace.path("shift")]
  }
}
