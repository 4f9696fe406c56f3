import PinfoldLoop
import PinfoldModel
import Testing

/// Runs an async body on a fresh loop with a thread of its own, and ends both.
func onLoop<Result: Sendable>(_ body: sending @escaping (EventLoop) async throws -> Result) async throws -> Result {
  let loop = try EventLoop()
  let thread = try LoopThread(name: "test-loop", loop: loop)
  defer { thread.stop() }
  return try await Task(executorPreference: loop) { try await body(loop) }.value
}

extension EventLoop {
  /// A deadline no test that works reaches.
  var soon: Deadline { deadline(after: .seconds(20)) }
}

/// Accepted sockets, handed to a test task on the same loop.
final class Accepted {
  private var queue: [StreamSocket] = []
  private let loop: EventLoop
  let listener: Listener

  init(_ loop: EventLoop, _ endpoint: Endpoint = .tcp(SocketAddress(.v4(0x7f00_0001), port: 0))) throws {
    self.loop = loop
    let box = Box()
    listener = try Listener(try ListeningSocket(endpoint), loop: loop) { box.queue.append($0) }
    self.box = box
  }

  private let box: Box
  private final class Box { var queue: [StreamSocket] = [] }

  var endpoint: Endpoint { listener.endpoint }

  func next() async throws -> StreamSocket {
    let deadline = loop.soon
    while box.queue.isEmpty {
      guard loop.now < deadline else { throw IOError.timedOut }
      await loop.sleep(for: .milliseconds(1))
    }
    return box.queue.removeFirst()
  }
}
