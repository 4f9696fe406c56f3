import PinfoldLoop
import PinfoldModel
import Testing

@testable import PinfoldServer

@Suite struct AttemptLimiterTests {
  private static func moment(_ seconds: Double) -> Deadline { Deadline(nanoseconds: UInt64(1e12 + seconds * 1e9)) }
  private static let alice = IPAddress("192.0.2.1")
  private static let bob = IPAddress("192.0.2.2")

  @Test("Ten attempts at once, then one in six seconds") func rate() {
    var limiter = AttemptLimiter()
    for _ in 0..<10 { #expect(limiter.take(Self.alice, now: Self.moment(0)) == nil) }
    #expect(limiter.take(Self.alice, now: Self.moment(0)) == 7)
    #expect(limiter.take(Self.alice, now: Self.moment(5)) == 2)
    #expect(limiter.take(Self.alice, now: Self.moment(6)) == nil)
    #expect(limiter.take(Self.alice, now: Self.moment(6)) == 7)
    for second in 2...20 { #expect(limiter.take(Self.alice, now: Self.moment(Double(second) * 6)) == nil) }
    for _ in 0..<10 { #expect(limiter.take(Self.alice, now: Self.moment(1000)) == nil) }
  }

  @Test("One client's attempts are no other client's") func others() {
    var limiter = AttemptLimiter()
    for _ in 0..<20 { _ = limiter.take(Self.alice, now: Self.moment(0)) }
    #expect(limiter.take(Self.bob, now: Self.moment(0)) == nil)
    #expect(limiter.take(nil, now: Self.moment(0)) == nil)
  }

  @Test("What was right is given back") func givesBack() {
    var limiter = AttemptLimiter()
    for _ in 0..<100 {
      #expect(limiter.take(Self.alice, now: Self.moment(0)) == nil)
      limiter.giveBack(Self.alice)
    }
    limiter.giveBack(Self.bob)
  }

  @Test("The addresses of one IPv6 network, and the spellings of one address, are one client") func networks() {
    var limiter = AttemptLimiter()
    for number in 0..<10 { #expect(limiter.take(IPAddress("2001:db8::\(number)"), now: Self.moment(0)) == nil) }
    #expect(limiter.take(IPAddress("2001:db8::ffff:1"), now: Self.moment(0)) != nil)
    #expect(limiter.take(IPAddress("2001:db8:0:1::1"), now: Self.moment(0)) == nil)
    for _ in 0..<10 { _ = limiter.take(IPAddress("::ffff:192.0.2.9"), now: Self.moment(0)) }
    #expect(limiter.take(IPAddress("192.0.2.9"), now: Self.moment(0)) != nil)
  }

  @Test("A clock at its end traps nothing") func end() {
    var limiter = AttemptLimiter()
    for _ in 0..<30 { _ = limiter.take(Self.alice, now: Deadline(nanoseconds: .max)) }
    limiter.giveBack(Self.alice)
  }
}
