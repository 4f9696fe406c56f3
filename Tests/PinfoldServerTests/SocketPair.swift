import PinfoldLoop
import PinfoldModel
import Testing

/// Two ends of a loopback connection, both on one loop.
enum SocketPair {
  private final class Box { var socket: StreamSocket? }

  /// The connecting end, and the accepted one.
  static func make(_ loop: EventLoop) async throws -> (far: StreamSocket, near: StreamSocket) {
    let box = Box()
    let endpoint = Endpoint.tcp(SocketAddress(.v4(0x7f00_0001), port: 0))
    let listener = try Listener(try ListeningSocket(endpoint), loop: loop) { box.socket = $0 }
    defer { listener.close() }
    let far = try await StreamSocket.connect(
      to: listener.endpoint, loop: loop, deadline: loop.deadline(after: .seconds(10)))
    while box.socket == nil { await loop.sleep(for: .milliseconds(1)) }
    return (far, try #require(box.socket))
  }
}

/// Runs `body` on a loop of its own.
func onLoop(_ body: @escaping @Sendable (EventLoop) async throws -> Void) async throws {
  let loop = try EventLoop()
  let thread = try LoopThread(name: "test", loop: loop)
  defer { thread.stop() }
  try await Task(executorPreference: loop) { try await body(loop) }.value
}
