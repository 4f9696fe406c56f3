import PinfoldLoop
import Synchronization
import Testing

@testable import PinfoldServer

/// One task's wait for another thread, which ends early when nobody needs it any more.
@Suite struct LoopWaiterTests {
  /// What ends the wait.
  enum End: String, CaseIterable {
    case valueBefore = "a value that is there already"
    case value = "a value"
    case deadline = "the deadline"
    case leaving = "the client closes its side"
    case leavingBefore = "the client left before"
    case leavingWithBytes = "the client leaves behind bytes that nobody read"
    case reset = "the client resets the connection"
    case cancel = "the tunnel is cancelled"
    case cancelBefore = "the tunnel was cancelled before"
    case close = "the tunnel is closed"

    var expected: Int? { self == .value || self == .valueBefore ? 7 : nil }
  }

  /// Would catch a tunnel that keeps its place for as long as somebody else takes, though its client is gone.
  @Test(arguments: End.allCases) func `a wait ends at once by what comes first`(_ end: End) async throws {
    try await onLoop { loop in
      let (far, near) = try await SocketPair.make(loop)
      let waiter = LoopWaiter<Int>(loop: loop)
      let act: () -> Void = {
        switch end {
        case .value, .valueBefore: waiter.wake(7)
        case .deadline: break
        case .leaving, .leavingBefore: far.close()
        case .leavingWithBytes:
          _ = try? far.trySend([1, 2, 3].span)
          far.close()
        case .reset: far.abort()
        case .cancel, .cancelBefore: near.cancel()
        case .close: near.close()
        }
      }
      if [.valueBefore, .leavingBefore, .cancelBefore].contains(end) {
        act()
        await loop.sleep(for: .milliseconds(20))
      }
      let timer = LoopTimer(loop: loop, after: .milliseconds(20), act)
      let start = loop.now
      let value = await waiter.wait(
        until: loop.deadline(after: end == .deadline ? .milliseconds(100) : .seconds(30)), for: near)
      timer.cancel()
      #expect(value == end.expected)
      #expect(loop.now.duration(since: start) < .seconds(5))
      // What comes too late wakes nobody twice.
      waiter.wake(8)
      far.close()
      near.close()
      await loop.sleep(for: .milliseconds(20))
    }
  }

  @Test func `bytes of a client that stays end no wait, and are read afterwards`() async throws {
    try await onLoop { loop in
      let (far, near) = try await SocketPair.make(loop)
      let waiter = LoopWaiter<Int>(loop: loop)
      try await far.send([1], deadline: loop.deadline(after: .seconds(5)))
      loop.spawn {
        await loop.sleep(for: .milliseconds(20))
        try? await far.send([2], deadline: loop.deadline(after: .seconds(5)))
        await loop.sleep(for: .milliseconds(20))
        waiter.wake(7)
      }
      #expect(await waiter.wait(until: loop.deadline(after: .seconds(30)), for: near) == 7)
      #expect(!near.hasHungUp)
      var bytes: [UInt8] = []
      while bytes.count < 2 { bytes += try await near.receive(max: 2, deadline: loop.deadline(after: .seconds(5))) }
      #expect(bytes == [1, 2])
      far.close()
      #expect(try await near.receive(max: 2, deadline: loop.deadline(after: .seconds(5))).isEmpty)
    }
  }
}

/// Tests use a socket from several tasks, all of them on its loop: on one thread, one after the other.
extension StreamSocket: @unchecked Sendable {}
