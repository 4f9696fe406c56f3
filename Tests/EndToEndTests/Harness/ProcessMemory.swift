import Foundation
import Glibc

/// What lies in the memory of a process that the tests started.
enum ProcessMemory {
  /// Whether the text stands anywhere in what the process may write (proc_pid_mem(5)).
  static func holds(_ text: String, _ pid: pid_t) throws -> Bool {
    let maps = try String(contentsOfFile: "/proc/\(pid)/maps", encoding: .utf8)
    let memory = unsafe open("/proc/\(pid)/mem", O_RDONLY | O_CLOEXEC)
    guard memory >= 0 else { throw HarnessError("cannot read the memory of \(pid): error \(errno)") }
    defer { close(memory) }
    for line in maps.split(separator: "\n") {
      guard let match = line.firstMatch(of: /^([0-9a-f]+)-([0-9a-f]+) rw/), let start = UInt(match.1, radix: 16),
        let end = UInt(match.2, radix: 16)
      else { continue }
      if try holds(Data(text.utf8), memory, start..<end) { return true }
    }
    return false
  }

  /// Looks through it piece by piece, each a little longer than the step, so that no cut hides the text.
  private static func holds(_ text: Data, _ memory: Int32, _ range: Range<UInt>) throws -> Bool {
    let step = 1 << 20
    var piece = [UInt8](repeating: 0, count: step + text.count)
    for start in stride(from: range.lowerBound, to: range.upperBound, by: step) {
      let wanted = min(piece.count, Int(range.upperBound - start))
      let count = unsafe pread(memory, &piece, wanted, off_t(start))
      // A mapping may be gone by now, or have pages that nobody can read.
      guard count > 0 else { continue }
      if Data(piece[..<count]).range(of: text) != nil { return true }
    }
    return false
  }
}
