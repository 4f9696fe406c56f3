/// A moment of UTC in whole seconds since 1970-01-01T00:00:00Z.
package struct Timestamp: Hashable, Comparable, Sendable {
  /// Seconds since 1970-01-01T00:00:00Z, negative before.
  package var seconds: Int64

  /// Takes seconds since 1970-01-01T00:00:00Z.
  package init(seconds: Int64) { self.seconds = seconds }

  /// Reads an RFC 3339 §5.6 date-time: `2026-11-21T00:00:00Z`, with optional fraction (dropped) and numeric offset.
  /// Leap seconds (`:60`) count as the following second.
  package init?(_ text: some StringProtocol) {
    let bytes = Array(text.utf8)
    guard bytes.count >= 20, bytes[4] == 0x2d, bytes[7] == 0x2d, bytes[10] | 0x20 == 0x74, bytes[13] == 0x3a,
      bytes[16] == 0x3a, let year = Self.number(bytes[0..<4]), let month = Self.number(bytes[5..<7]),
      let day = Self.number(bytes[8..<10]), let hour = Self.number(bytes[11..<13]),
      let minute = Self.number(bytes[14..<16]), let second = Self.number(bytes[17..<19]),
      (1...12).contains(month), (1...Self.days(in: month, of: year)).contains(day), hour < 24, minute < 60,
      second <= 60
    else { return nil }
    var rest = bytes[19...]
    if rest.first == 0x2e {
      rest = rest.dropFirst()
      let fraction = rest.prefix { $0 >= 0x30 && $0 <= 0x39 }
      guard !fraction.isEmpty else { return nil }
      rest = rest.dropFirst(fraction.count)
    }
    guard let offset = Self.offset(rest) else { return nil }
    let days = Self.daysFromEpoch(year: year, month: month, day: day)
    seconds = Int64(days) * 86_400 + Int64(hour * 3600 + minute * 60 + second) - Int64(offset)
  }

  private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
    var value = 0
    for digit in digits {
      guard digit >= 0x30, digit <= 0x39 else { return nil }
      value = value * 10 + Int(digit - 0x30)
    }
    return value
  }

  private static func offset(_ text: ArraySlice<UInt8>) -> Int? {
    let bytes = Array(text)
    if bytes.count == 1, bytes[0] | 0x20 == 0x7a { return 0 }
    guard bytes.count == 6, bytes[3] == 0x3a, let hours = number(bytes[1..<3]), let minutes = number(bytes[4..<6]),
      hours < 24, minutes < 60
    else { return nil }
    switch bytes[0] {
    case 0x2b: return hours * 3600 + minutes * 60
    case 0x2d: return -(hours * 3600 + minutes * 60)
    default: return nil
    }
  }

  private static func days(in month: Int, of year: Int) -> Int {
    switch month {
    case 4, 6, 9, 11: 30
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    default: 31
    }
  }

  /// Days of the proleptic Gregorian calendar; years begin in March here, so that the leap day comes last.
  private static func daysFromEpoch(year: Int, month: Int, day: Int) -> Int {
    let shifted = month <= 2 ? year - 1 : year
    let era = shifted / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * ((month + 9) % 12) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  /// `2026-11-21T00:00:00Z`.
  package var text: String {
    let days = seconds >= 0 ? seconds / 86_400 : (seconds - 86_399) / 86_400
    let time = seconds - days * 86_400
    let (year, month, day) = Self.civil(days: days)
    return "\(Self.padded(year, 4))-\(Self.padded(month))-\(Self.padded(day))"
      + "T\(Self.padded(time / 3600)):\(Self.padded(time / 60 % 60)):\(Self.padded(time % 60))Z"
  }

  private static func civil(days: Int64) -> (Int64, Int64, Int64) {
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
  }

  private static func padded(_ value: Int64, _ width: Int = 2) -> String {
    let digits = String(value)
    return String(repeating: "0", count: max(0, width - digits.count)) + digits
  }

  package static func < (left: Self, right: Self) -> Bool { left.seconds < right.seconds }
}
