import PinfoldLoop
import PinfoldModel
import Testing

@testable import PinfoldServer

/// Which time of day has passed for certain, by looks at a clock two seconds apart.
@Suite struct PassedTimeTests {
  private static let start: Int64 = 1_795_219_200

  /// What is certain after so many seconds, each with the time the clock showed then.
  private static func certain(after seconds: Int64, clock: (Int64) -> Int64) -> [Int64] {
    var time = PassedTime()
    return stride(from: Int64(0), through: seconds, by: 2).compactMap { second in
      let moment = Deadline(nanoseconds: 1 + UInt64(second) * 1_000_000_000)
      return time.look(at: Timestamp(seconds: start + clock(second)), moment).map { $0.seconds - start }
    }
  }

  @Test func `a clock that is right is believed once in ten minutes, ten minutes late`() {
    #expect(Self.certain(after: 598) { $0 }.isEmpty)
    #expect(Self.certain(after: 1800) { $0 } == [0, 600, 1200])
  }

  @Test(arguments: [2, 300, 598]) func `a clock that runs ahead for less is never believed`(length: Int64) {
    for begin in stride(from: Int64(0), through: 1200, by: 100) {
      let times = Self.certain(after: 4000) { (begin..<begin + length).contains($0) ? $0 + 86_400 : $0 }
      #expect(!times.isEmpty && times.allSatisfy { $0 <= 4000 }, "from \(begin): \(times)")
    }
  }

  @Test func `a clock that stays ahead is believed`() {
    #expect(Self.certain(after: 1800) { $0 < 100 ? $0 : $0 + 86_400 } == [0, 87_000, 87_600])
  }

  @Test func `a clock that was set back is believed from there on`() {
    #expect(Self.certain(after: 1800) { $0 < 900 ? $0 : $0 - 86_400 } == [0, -85_500])
  }
}
