import PinfoldLoop
import PinfoldModel
import PinfoldTelemetry

/// What lies on the audit's own thread: the writer, its clocks, and the days by which it is cleared up.
///
/// `@unchecked Sendable`: its variables are touched on the loop's thread only, or after that thread has ended.
final class AuditDesk: @unchecked Sendable {
  let loop: EventLoop
  private let disk: AuditDisk
  private var writer: AuditWriter?
  private var passedTime = PassedTime()
  /// The day that has passed for certain; `nil` in the first minutes.
  private var certainDay: Int64?
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

  /// Writes to this file from now on, opened anew. What is old is looked for anew too.
  func use(_ file: AuditFileName?) {
    writer = file.map { AuditWriter($0, disk: disk) }
    clearedDay = nil
  }

  /// Looks at the clock, and removes what is older than `retention` days, once a day; to be called every minute. What is
  /// removed is gone for good, so that only a time counts that has passed for certain: a clock that is ahead for less than
  /// `PassedTime.trial` makes nothing old, at a start neither.
  func purge(at now: Timestamp, _ moment: Deadline, retention: Int) -> AuditWriter.Purge {
    if let time = passedTime.look(at: now, moment) { certainDay = AuditDay.day(of: time.seconds) }
    guard let writer, let certainDay, certainDay != clearedDay else { return AuditWriter.Purge() }
    clearedDay = certainDay
    return writer.purge(today: certainDay, retention: retention)
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
