import Dispatch
import Testing

/// The tests here block: they wait for processes and sockets. Each lane runs its tests one after another on threads
/// of their own, so that two run at a time and the tests of other targets keep the threads they share. The limit ends
/// what hangs; it is no measure of what a busy machine may take.
@Suite("Handshakes, end to end", .serialized, .blocking, .timeLimit(.minutes(5))) enum Handshakes {}

/// The second lane: what is not about handshakes.
@Suite("Operation, end to end", .serialized, .blocking, .timeLimit(.minutes(5))) enum Operation {}

/// Runs the test on a thread that may block.
struct BlockingTrait: SuiteTrait, TestTrait, TestScoping {
  let isRecursive = true

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    try await withTaskExecutorPreference(BlockingExecutor.shared) { try await function() }
  }
}

extension Trait where Self == BlockingTrait {
  /// For tests that wait in system calls.
  static var blocking: BlockingTrait { BlockingTrait() }
}

/// A task executor whose threads may block, since Dispatch adds others.
final class BlockingExecutor: TaskExecutor {
  static let shared = BlockingExecutor()
  private let queue = DispatchQueue(label: "pinfold.end-to-end", attributes: .concurrent)

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let executor = unsafe asUnownedTaskExecutor()
    queue.async { unsafe job.runSynchronously(on: executor) }
  }
}
