import PinfoldLoop
import Testing

@Suite struct DeadlineTests {
  @Test func `so much later is so many nanoseconds more`() {
    let start = Deadline(nanoseconds: 5)
    #expect(start.advanced(by: .seconds(2)).nanoseconds == 2_000_000_005)
    #expect(start.advanced(by: .microseconds(3)).nanoseconds == 3005)
    #expect(start.advanced(by: .seconds(-2)) == start)
    #expect(start.advanced(by: .milliseconds(-1)) == start)
  }

  @Test func `beyond the clock's range lies never`() {
    #expect(Deadline(nanoseconds: .max - 1).advanced(by: .seconds(1)) == .never)
    #expect(Deadline.now.advanced(by: .seconds(Int64.max)) == .never)
    #expect(Deadline.never.advanced(by: .seconds(1)) == .never)
  }

  @Test func `a span of time has no sign`() {
    #expect(Deadline(nanoseconds: 900).duration(since: Deadline(nanoseconds: 400)) == .nanoseconds(500))
    #expect(Deadline(nanoseconds: 400).duration(since: Deadline(nanoseconds: 900)) == .zero)
    #expect(Deadline.never.duration(since: Deadline(nanoseconds: 0)) == .nanoseconds(Int64.max))
  }
}
