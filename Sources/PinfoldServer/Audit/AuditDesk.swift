import PinfoldLoop
import PinfoldTelemetry

/// What lies on the audit's own thread: the writer, its clocks, and the day that was cleared up last.
///
/// `@unchecked Sendable`: its variables are touched on the loop's thread only, or after that thread has ended.
final class AuditDesk: @unchecked Sendable {
  let loop: EventLoop
  private let disk: AuditDisk
  private var writer: AuditWriter?
  private var clearedDay: Int64?
  private var retry: LoopTimer?
  private var daily: LoopTimer?

  init(loop: EventLoop, disk: AuditDisk) {
    self.loop = loop
    self.disk = disk
  }

  /// Writes to the file that was named last.
  func write(_ entries: [AuditEntry]) -> AuditWriter.Outcome {
    writer?.write(entries) ?? AuditWriter.Outcome(written: entries.count, error: nil)
  }

  /// Writes to this file from now on, opened anew.
  func use(_ file: AuditFileName?) { writer = file.map { AuditWriter($0, disk: disk) } }

  /// Removes old files: once a day, or `always`. Returns what went wrong.
  func purge(today: Int64, retention: Int, always: Bool) -> [String] {
    guard let writer, always || today != clearedDay else { return [] }
    clearedDay = today
    return writer.purge(today: today, retention: retention)
  }

  /// Calls `body` once.
  func after(_ delay: Duration, _ body: @escaping () -> Void) {
    retry = LoopTimer(loop: loop, after: delay, body)
  }

  /// Calls `body` again and again.
  func every(_ interval: Duration, _ body: @escaping () -> Void) {
    daily = LoopTimer(loop: loop, after: interval, every: interval, body)
  }
}
