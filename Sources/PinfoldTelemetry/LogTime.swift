import PinfoldModel

/// A moment of UTC in whole milliseconds since 1970-01-01T00:00:00Z, as log lines show it.
package struct LogTime: Hashable, Comparable, Sendable {
  /// Negative before 1970.
  package var milliseconds: Int64

  /// The moment this many milliseconds after 1970.
  package init(milliseconds: Int64) { self.milliseconds = milliseconds }

  /// `2026-11-21T00:00:00.123Z` (RFC 3339).
  package var text: String {
    let (quotient, remainder) = milliseconds.quotientAndRemainder(dividingBy: 1000)
    let seconds = remainder < 0 ? quotient - 1 : quotient
    let fraction = String(remainder < 0 ? remainder + 1000 : remainder)
    let padded = String(repeating: "0", count: 3 - fraction.count) + fraction
    return "\(Timestamp(seconds: seconds).text.dropLast()).\(padded)Z"
  }

  package static func < (left: Self, right: Self) -> Bool { left.milliseconds < right.milliseconds }
}
