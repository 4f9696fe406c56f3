import PinfoldLoop
import Testing

@testable import PinfoldServer

@Suite struct NewcomerTests {
  private static func moment(_ milliseconds: UInt64) -> Deadline { Deadline(nanoseconds: milliseconds * 1_000_000) }

  @Test("Who waited longest goes first, and nobody before a second is over") func order() {
    var newcomers = Newcomers<String>()
    _ = newcomers.enter("first", now: Self.moment(0))
    _ = newcomers.enter("second", now: Self.moment(500))
    #expect(newcomers.removeDawdler(now: Self.moment(999)) == nil)
    #expect(newcomers.removeDawdler(now: Self.moment(1000)) == "first")
    #expect(newcomers.removeDawdler(now: Self.moment(1499)) == nil)
    #expect(newcomers.removeDawdler(now: Self.moment(1500)) == "second")
    #expect(newcomers.removeDawdler(now: Self.moment(9999)) == nil)
  }

  /// Would catch a client that sent its head and is ended for those that did not.
  @Test("Who left is not ended, and leaves once") func leaves() {
    var newcomers = Newcomers<Int>()
    let tickets = (0..<5).map { newcomers.enter($0, now: Self.moment(0)) }
    #expect(newcomers.leave(tickets[0]) == true)
    #expect(newcomers.leave(tickets[2]) == true)
    #expect(newcomers.leave(tickets[0]) == false)
    #expect(newcomers.removeDawdler(now: Self.moment(2000)) == 1)
    #expect(newcomers.leave(tickets[1]) == false)
    let late = newcomers.enter(5, now: Self.moment(3000))
    #expect(newcomers.removeDawdler(now: Self.moment(3000)) == 3)
    #expect(newcomers.removeDawdler(now: Self.moment(3000)) == 4)
    #expect(newcomers.removeDawdler(now: Self.moment(3000)) == nil)
    #expect(newcomers.leave(late) == true)
    #expect(newcomers.removeDawdler(now: Self.moment(9000)) == nil)
  }
}
