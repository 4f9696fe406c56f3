import Glibc
import PinfoldLoop
import PinfoldModel
import Testing

/// Tests use a socket from several tasks, all of them on its loop: on one thread, one after the other.
extension StreamSocket: @unchecked Sendable {}

/// Runs an async body on a fresh loop with a thread of its own, and ends both.
@discardableResult
func onLoop<Result: Sendable>(_ body: sending @escaping (EventLoop) async throws -> Result) async throws -> Result {
  let loop = try EventLoop()
  let thread = try LoopThread(name: "test-loop", loop: loop)
  defer { thread.stop() }
  return try await Task(executorPreference: loop) { try await body(loop) }.value
}

extension EventLoop {
  /// A deadline no test that works reaches.
  var soon: Deadline { deadline(after: .seconds(30)) }
}

extension Endpoint {
  /// A port of the system's choice on 127.0.0.1.
  static let loopback = Endpoint.tcp(SocketAddress(.v4(0x7f00_0001), port: 0))

  var port: UInt16 {
    if case .tcp(let address) = self { address.port } else { 0 }
  }
}

/// A listener whose connections are waited for one by one, on its loop.
final class Acceptor {
  private final class Queue {
    var sockets: [StreamSocket] = []
    var waiter: CheckedContinuation<Void, Never>?
  }

  let listener: Listener
  private let queue: Queue

  init(_ loop: EventLoop, _ endpoint: Endpoint = .loopback) throws {
    let queue = Queue()
    self.queue = queue
    listener = try Listener(try ListeningSocket(endpoint), loop: loop) { socket in
      queue.sockets.append(socket)
      queue.waiter?.resume()
      queue.waiter = nil
    }
  }

  var endpoint: Endpoint { listener.endpoint }

  func next() async -> StreamSocket {
    while queue.sockets.isEmpty { await withCheckedContinuation { queue.waiter = $0 } }
    return queue.sockets.removeFirst()
  }

  /// Both ends of a connection.
  func pair(_ loop: EventLoop) async throws -> (near: StreamSocket, far: StreamSocket) {
    let near = try await StreamSocket.connect(to: endpoint, loop: loop, deadline: loop.soon)
    return (near, await next())
  }
}

/// A repeatable stream of bytes that no shift, loss or repetition leaves the same.
struct Noise {
  private var state: UInt64

  init(seed: UInt64) {
    state = seed &* 0x9e37_79b9_7f4a_7c15 | 1
  }

  mutating func next() -> UInt64 {
    state ^= state << 13
    state ^= state >> 7
    state ^= state << 17
    return state
  }

  /// Cut out of one long random block at random places, since making each byte takes sanitizers too long.
  mutating func bytes(_ count: Int) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(count)
    while result.count < count {
      let start = Int(next() % UInt64(Self.block.count))
      result += Self.block[start...].prefix(count - result.count)
    }
    return result
  }

  private static let block: [UInt8] = {
    var noise = Noise(seed: 77)
    let words = (0..<16_384).map { _ in noise.next() }
    return unsafe words.withUnsafeBytes { unsafe [UInt8]($0) }
  }()
}

/// A keyed hash of a stream, however it was cut, with its length.
struct Fingerprint: Equatable, Sendable {
  private(set) var count = 0
  private var hasher = Hasher()

  init() {}

  init(_ bytes: [UInt8]) {
    add(bytes)
  }

  mutating func add(_ bytes: [UInt8]) {
    unsafe bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
    count += bytes.count
  }

  static func == (left: Fingerprint, right: Fingerprint) -> Bool {
    left.count == right.count && left.hasher.finalize() == right.hasher.finalize()
  }
}

extension StreamSocket {
  /// Everything up to the peer's end.
  func readAll(max: Int = 65_536, deadline: Deadline) async throws -> Fingerprint {
    var result = Fingerprint()
    while true {
      let bytes = try await receive(max: max, deadline: deadline)
      if bytes.isEmpty { return result }
      result.add(bytes)
    }
  }

  /// As many bytes as asked for.
  func read(exactly count: Int, deadline: Deadline) async throws -> [UInt8] {
    var result: [UInt8] = []
    while result.count < count {
      let bytes = try await receive(max: count - result.count, deadline: deadline)
      if bytes.isEmpty { throw IOError.closed }
      result += bytes
    }
    return result
  }
}

/// Lets tasks of one loop share what is not `Sendable`: they run on one thread.
struct Shared<Value>: @unchecked Sendable {
  let value: Value

  init(_ value: Value) { self.value = value }
}

/// A thread that may block.
final class Thread {
  private final class Body {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  private var handle = pthread_t()

  init(_ body: @escaping @Sendable () -> Void) {
    let context = unsafe Unmanaged.passRetained(Body(body)).toOpaque()
    unsafe _ = pthread_create(
      &handle, nil,
      { context in
        if let context = unsafe context { unsafe Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run() }
        return nil
      }, context)
  }

  func join() { _ = pthread_join(handle, nil) }
}
