import Glibc
import PinfoldLoop
import Synchronization
import Testing

private final class Seen: Sendable {
  private let senders = Mutex<[Int: [Int]]>([:])

  func add(_ number: Int, of sender: Int) { senders.withLock { $0[sender, default: []].append(number) } }

  func numbers(of sender: Int) -> [Int]? { senders.withLock { $0[sender] } }
}

@Suite struct EventLoopTests {
  @Test func `a task with the loop as its executor stays on the loop's thread across every wait`() async throws {
    try await onLoop { loop in
      #expect(loop.isOnLoop)
      await loop.sleep(for: .milliseconds(1))
      #expect(loop.isOnLoop)
      await Task.yield()
      #expect(loop.isOnLoop)
      let child = Task(executorPreference: loop) { loop.isOnLoop }
      #expect(await child.value)
      #expect(loop.isOnLoop)
      await withTaskGroup(of: Bool.self) { group in
        for _ in 0..<4 { group.addTask { loop.isOnLoop } }
        for await isOnLoop in group { #expect(isOnLoop) }
      }
    }
  }

  @Test func `other threads are not on the loop`() async throws {
    let loop = try EventLoop()
    #expect(loop.isOnLoop)
    let thread = try LoopThread(name: "other", loop: loop)
    #expect(!loop.isOnLoop)
    thread.stop()
  }

  @Test func `closures from many threads run once each, in the order of their thread`() async throws {
    let loop = try EventLoop()
    let thread = try LoopThread(name: "target", loop: loop)
    let seen = Seen()
    await withTaskGroup(of: Void.self) { group in
      for sender in 0..<8 {
        group.addTask {
          for number in 0..<2000 {
            loop.execute {
              loop.preconditionOnLoop()
              seen.add(number, of: sender)
            }
          }
        }
      }
    }
    await Task(executorPreference: loop) {}.value
    thread.stop()
    for sender in 0..<8 { #expect(seen.numbers(of: sender) == Array(0..<2000)) }
  }

  @Test func `a task that always has more to do lets events have their turn`() async throws {
    try await onLoop { loop in
      final class Flag { var isSet = false }
      let flag = Flag()
      let timer = LoopTimer(loop: loop, after: .milliseconds(1)) { flag.isSet = true }
      let deadline = loop.soon
      while !flag.isSet, Deadline.now < deadline { await Task.yield() }
      #expect(flag.isSet)
      timer.cancel()
    }
  }

  @Test func `stop ends a loop that waits for nothing`() async throws {
    let thread = try LoopThread(name: "idle", loop: try EventLoop())
    thread.stop()
  }

  @Test func `loops come and go without leaving descriptors behind`() async throws {
    await #expect(processExitsWith: .success) {
      _ = try await onLoop { _ in 0 }
      // What is leaked is leaked by each loop: fewer than one a loop are the runtime's own, opened when it likes.
      let loops = 20
      let limit = (Descriptors.openCount ?? 0) + loops
      for _ in 0..<loops { _ = try await onLoop { _ in 0 } }
      // A thread lets its loop go at its very end, a little after it was told to stop.
      for _ in 0..<500 where (Descriptors.openCount ?? .max) >= limit { usleep(10_000) }
      #expect((Descriptors.openCount ?? .max) < limit)
    }
  }
}
