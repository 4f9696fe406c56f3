import Dispatch
import PinfoldLoop
import Synchronization
import Testing

@testable import PinfoldCommand

/// What anybody can cause is said in few lines.
@Suite struct MeasuredComplaintsTests {
  private final class Said: Sendable { let lines = Mutex<[String]>([]) }

  /// Runs `body` on a loop of its own, and answers what was said.
  private static func said(
    window: Duration, _ body: @escaping @Sendable (EventLoop, MeasuredComplaints) async -> Void
  ) async throws -> [String] {
    let loop = try EventLoop()
    let thread = try LoopThread(name: "test", loop: loop)
    defer { thread.stop() }
    let said = Said()
    let complaints = MeasuredComplaints(loop: loop, window: window) { line in said.lines.withLock { $0.append(line) } }
    await Task(executorPreference: loop) { await body(loop, complaints) }.value
    return said.lines.withLock(\.self)
  }

  @Test func `the same line is said once within a window, and again after it`() async throws {
    let lines = try await Self.said(window: .milliseconds(80)) { loop, complaints in
      for _ in 0..<5 { complaints.say("a: no pins") }
      await loop.sleep(for: .milliseconds(200))
      for _ in 0..<5 { complaints.say("a: no pins") }
    }
    #expect(lines == ["a: no pins", "a: no pins"])
  }

  @Test func `beyond the limit lines are counted, and the number is said at the end of the window`() async throws {
    let limit = MeasuredComplaints.lineLimit
    let lines = try await Self.said(window: .seconds(1)) { loop, complaints in
      for number in 0..<limit + 480 { complaints.say("h\(number): no pins") }
      await loop.sleep(for: .milliseconds(1300))
      complaints.say("h1: no pins")
    }
    #expect(lines.count == limit + 2)
    #expect(lines.prefix(limit) == (0..<limit).map { "h\($0): no pins" }[...])
    #expect(lines.suffix(2) == ["480 more complaints like these within 1 s", "h1: no pins"])
  }

  @Test func `a window in which nothing was left out ends without a word`() async throws {
    let lines = try await Self.said(window: .milliseconds(50)) { loop, complaints in
      complaints.say("a: no pins")
      complaints.say("b: no pins")
      await loop.sleep(for: .milliseconds(150))
    }
    #expect(lines == ["a: no pins", "b: no pins"])
  }

  @Test func `lines may come from any thread`() async throws {
    let lines = try await Self.said(window: .seconds(3600)) { _, complaints in
      DispatchQueue.concurrentPerform(iterations: 200) { complaints.say("h\($0 % 50): no pins") }
    }
    #expect(lines.count == MeasuredComplaints.lineLimit && Set(lines).count == lines.count)
  }
}
