import PinfoldLoop
import PinfoldModel

/// Tells which time of day has passed for certain: one that the clock showed, with none earlier after it, for ten minutes.
/// What has passed for certain is never taken back, so that a clock that ran ahead for a moment must not make it.
struct PassedTime {
  /// Longer than it takes to set a clock right that was set wrong by mistake.
  static let trial = Duration.seconds(600)

  private var candidate: (time: Timestamp, since: Deadline)?

  /// One look at the clock; to be called every few seconds. Answers, once in ten minutes at most, a time that is certain.
  mutating func look(at now: Timestamp, _ moment: Deadline) -> Timestamp? {
    guard let (time, since) = candidate, now >= time else {
      candidate = (now, moment)
      return nil
    }
    guard moment.duration(since: since) >= Self.trial else { return nil }
    candidate = (now, moment)
    return time
  }
}
