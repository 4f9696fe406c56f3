internal import CLinux

/// A moment of the monotonic clock until which something may take.
///
/// Nanoseconds of `CLOCK_MONOTONIC` (clock_gettime(2)); not a time of day. Waits end at most 9 ms late, never early.
package struct Deadline: Hashable, Comparable, Sendable {
  /// Nanoseconds since a fixed, unspecified start.
  package let nanoseconds: UInt64

  /// A reading of the monotonic clock.
  package init(nanoseconds: UInt64) {
    self.nanoseconds = nanoseconds
  }

  /// Waits for ever. Meant for what another deadline bounds already.
  package static let never = Deadline(nanoseconds: .max)

  /// The clock, read now. On a loop `EventLoop.now` is cheaper.
  package static var now: Deadline { Deadline(nanoseconds: pinfold_monotonic_nanoseconds()) }

  /// So much later; `never` when that lies beyond the clock's range. A negative duration counts as zero.
  package func advanced(by duration: Duration) -> Deadline {
    let (seconds, attoseconds) = duration.components
    guard seconds >= 0, attoseconds >= 0 else { return self }
    let (whole, over) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000_000)
    let (sum, overAgain) = whole.addingReportingOverflow(UInt64(attoseconds) / 1_000_000_000)
    let (total, overAtLast) = nanoseconds.addingReportingOverflow(sum)
    return over || overAgain || overAtLast ? .never : Deadline(nanoseconds: total)
  }

  /// The time from another moment to this one; zero if that one is later.
  package func duration(since earlier: Deadline) -> Duration {
    guard nanoseconds > earlier.nanoseconds else { return .zero }
    return .nanoseconds(Int64(clamping: nanoseconds - earlier.nanoseconds))
  }

  package static func < (left: Deadline, right: Deadline) -> Bool { left.nanoseconds < right.nanoseconds }
}
