import Foundation
import Synchronization

/// A listener on a free port that gives each connection to a function on a thread of its own.
final class Listener: Sendable {
  let port: UInt16
  private let socket: Socket
  private let stopped = Atomic<Bool>(false)
  private let accepted = Mutex<(count: Int, open: [Int: Socket])>((0, [:]))

  convenience init(isNarrow: Bool = false, _ serve: @escaping @Sendable (Socket) -> Void) throws {
    try self.init(isNarrow: isNarrow, numbered: { socket, _ in serve(socket) })
  }

  /// The same with the number of each connection, from 1, in the order in which they were accepted: the threads of two
  /// that come at the same moment may run in any order.
  init(isNarrow: Bool = false, numbered serve: @escaping @Sendable (Socket, Int) -> Void) throws {
    port = try FreePort.next()
    guard let socket = try Socket.listen(on: port, isNarrow: isNarrow) else {
      throw HarnessError("port \(port) was taken")
    }
    self.socket = socket
    let accept: @Sendable (Listener) -> Bool = { listener in
      guard let connection = listener.socket.accept(timeout: 0.25) else { return !listener.isStopped }
      let number = listener.accepted.withLock { accepted in
        accepted.count += 1
        accepted.open[accepted.count] = connection
        return accepted.count
      }
      // A connection that was served is let go: hundreds of them must not use up the descriptors.
      Thread.detachNewThread { [weak listener] in
        serve(connection, number)
        _ = listener?.accepted.withLock { $0.open.removeValue(forKey: number) }
      }
      return true
    }
    Thread.detachNewThread { [weak self] in
      while let listener = self, accept(listener) {}
    }
  }

  private var isStopped: Bool { stopped.load(ordering: .relaxed) }

  /// Connections accepted so far.
  var connectionCount: Int { accepted.withLock { $0.count } }

  /// Takes no more connections and ends those there are.
  func stop() {
    stopped.store(true, ordering: .relaxed)
    socket.shutDown()
    for connection in accepted.withLock({ Array($0.open.values) }) { connection.shutDown() }
  }

  deinit { stop() }
}

/// Bytes written down by one thread and read by another.
final class Recording: Sendable {
  private let bytes = Mutex<[UInt8]>([])

  func append(_ more: [UInt8]) { bytes.withLock { $0 += more } }
  var all: [UInt8] { bytes.withLock { $0 } }
  var count: Int { bytes.withLock { $0.count } }
}
