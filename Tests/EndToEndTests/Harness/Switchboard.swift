import Synchronization

/// An address behind which the server changes: new connections go to the port of the moment.
final class Switchboard: Sendable {
  private let listener: Listener
  private let target: Target
  var port: UInt16 { listener.port }

  private final class Target: Sendable {
    let port: Atomic<UInt16>
    init(_ port: UInt16) { self.port = Atomic(port) }
  }

  init(to port: UInt16) throws {
    let target = Target(port)
    self.target = target
    listener = try Listener { near in
      guard let far = try? Socket.connect(to: target.port.load(ordering: .relaxed)) else { return near.shutDown() }
      Tap.join(near, far, Tap.Connection())
    }
  }

  /// From now on connections go there.
  func turn(to port: UInt16) { target.port.store(port, ordering: .relaxed) }
}
