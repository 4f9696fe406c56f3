import PinfoldModel
import PinfoldTelemetry

/// The breaker's clock: milliseconds since the process began to use it. It never goes back, and goes on while the
/// machine sleeps; a time of day that is set anew makes no suspension longer.
enum BreakerClock {
  private static let origin = ContinuousClock.now

  /// The moment now, not negative.
  static var moment: Int64 {
    let (seconds, attoseconds) = (ContinuousClock.now - origin).components
    return seconds &* 1000 &+ attoseconds / 1_000_000_000_000_000
  }

  /// The time of day of a moment, by the time of day now.
  static func time(of moment: Int64) -> LogTime {
    LogTime(milliseconds: shifted(moment, by: LogTime.now.milliseconds, minus: self.moment))
  }

  /// The moment of a time of day.
  static func moment(of time: LogTime) -> Int64 {
    shifted(time.milliseconds, by: self.moment, minus: LogTime.now.milliseconds)
  }

  /// The earliest of all where it cannot be counted, so that nothing lasts until then.
  private static func shifted(_ value: Int64, by forward: Int64, minus back: Int64) -> Int64 {
    let (difference, over) = forward.subtractingReportingOverflow(back)
    let (sum, overAgain) = value.addingReportingOverflow(difference)
    return over || overAgain ? .min : sum
  }

  /// A time of day as text, to the second.
  static func text(of moment: Int64) -> String {
    Timestamp(seconds: time(of: moment).milliseconds / 1000).text
  }
}
