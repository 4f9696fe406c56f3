import Dispatch
import PinfoldLoop
import Synchronization
import Testing

@testable import PinfoldCommand

/// What anybody can cause is said in few lines.
@Suite struct MeasuredComplaintsTests {
  private final class Said: Sendable {
    let lines = Mutex<[String]>([])
    var count: Int { lines.withLock { $0.count } }

    /// Waits for so many lines, calling `meanwhile` again and again; some ten seconds at most.
    func wait(for count: Int, on loop: EventLoop, meanwhile: () -> Void = {}) async {
      for _ in 0..<500 where self.count < count {
        await loop.sleep(for: .milliseconds(20))
        meanwhile()
      }
    }
  }

  /// Runs `body` on a loop of its own, and answers what was said.
  private static func said(
    window: Duration, _ body: @escaping @Sendable (EventLoop, MeasuredComplaints, Said) async -> Void
  ) async throws -> [String] {
    let loop = try EventLoop()
    let thread = try LoopThread(name: "test", loop: loop)
    defer { thread.stop() }
    let said = Said()
    let complaints = MeasuredComplaints(loop: loop, window: window) { line in said.lines.withLock { $0.append(line) } }
    await Task(executorPreference: loop) { await body(loop, complaints, said) }.value
    return said.lines.withLock(\.self)
  }

  @Test func `the same line is said once within a window, and again after it`() async throws {
    let lines = try await Self.said(window: .milliseconds(80)) { loop, complaints, said in
      // A window ends on this loop, and so not between these.
      for _ in 0..<5 { complaints.say("a: no pins") }
      #expect(said.count == 1)
      await said.wait(for: 2, on: loop) { for _ in 0..<5 { complaints.say("a: no pins") } }
    }
    #expect(lines == ["a: no pins", "a: no pins"])
  }

  @Test func `beyond the limit lines are counted, and the number is said at the end of the window`() async throws {
    let limit = MeasuredComplaints.lineLimit
    let lines = try await Self.said(window: .seconds(1)) { loop, complaints, said in
      for number in 0..<limit + 480 { complaints.say("h\(number): no pins") }
      await said.wait(for: limit + 1, on: loop)
      complaints.say("h1: no pins")
    }
    #expect(lines.count == limit + 2)
    #expect(lines.prefix(limit) == (0..<limit).map { "h\($0): no pins" }[...])
    #expect(lines.suffix(2) == ["480 more complaints like these within 1 s", "h1: no pins"])
  }

  @Test func `a window in which nothing was left out ends without a word`() async throws {
    let lines = try await Self.said(window: .milliseconds(50)) { loop, complaints, said in
      complaints.say("a: no pins")
      complaints.say("b: no pins")
      await said.wait(for: 3, on: loop) { complaints.say("b: no pins") }
    }
    #expect(lines == ["a: no pins", "b: no pins", "b: no pins"])
  }

  @Test func `lines may come from any thread`() async throws {
    let lines = try await Self.said(window: .seconds(3600)) { _, complaints, _ in
      DispatchQueue.concurrentPerform(iterations: 200) { complaints.say("h\($0 % 50): no pins") }
    }
    #expect(lines.count == MeasuredComplaints.lineLimit && Set(lines).count == lines.count)
  }
}
