import PinfoldModel

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
  static func time(of moment: Int64) -> Timestamp {
    let (distance, over) = moment.subtractingReportingOverflow(self.moment)
    return Timestamp(seconds: Timestamp.now.seconds + (over ? Int64.min : distance) / 1000)
  }

  /// The moment of a time of day; the earliest of all where it cannot be counted, so that nothing lasts until then.
  static func moment(of time: Timestamp) -> Int64 {
    let (seconds, over) = time.seconds.subtractingReportingOverflow(Timestamp.now.seconds)
    let (milliseconds, overAgain) = seconds.multipliedReportingOverflow(by: 1000)
    let (sum, overAtLast) = moment.addingReportingOverflow(milliseconds)
    return over || overAgain || overAtLast ? .min : sum
  }
}
