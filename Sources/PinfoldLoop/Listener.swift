internal import CLibevent
internal import CLinux
internal import PinfoldModel

/// Accepts connections on a loop. Owns the listening socket.
///
/// When descriptors run out, connections are still taken, one at a time over a descriptor kept in reserve, and given to
/// `refuse`, which answers and returns; the listener then closes them. So clients hear of the shortage, nothing
/// spins, and tunnels that are up go on.
@safe
package final class Listener: TimerEntry {
  /// Connections taken before other sockets get their turn.
  private static let maximalBatch = 64
  /// Pause after a failure that accepting again would only repeat.
  private static let pause = Duration.milliseconds(100)

  private let socket: ListeningSocket
  private let loop: EventLoop
  private let accept: (sending StreamSocket) -> Void
  private let refuse: (StreamSocket) -> Void
  private var registration: OpaquePointer?
  private var reserve: Int32

  /// Starts accepting at once.
  ///
  /// - Parameters:
  ///   - accept: called on the loop's thread with each connection; spawns the task that owns it.
  ///   - refuse: called instead when there are no descriptors: sends what fits now (`trySend`) and returns.
  /// - Throws: `.descriptorsExhausted` when libevent or the system has no room.
  package init(
    _ socket: consuming ListeningSocket, loop: EventLoop, accept: @escaping (sending StreamSocket) -> Void,
    refuse: @escaping (StreamSocket) -> Void = { _ in }
  ) throws(IOError) {
    loop.preconditionOnLoop()
    self.socket = socket
    self.loop = loop
    self.accept = accept
    self.refuse = refuse
    reserve = Int32(clamping: pinfold_open_null())
    super.init(wheel: loop.wheel)
    let context = unsafe Unmanaged.passUnretained(self).toOpaque()
    unsafe registration = event_new(loop.base, self.socket.descriptor, pinfold_ev_level, listenerReady, context)
    guard unsafe registration != nil, unsafe event_add(registration, nil) == 0 else { throw .descriptorsExhausted }
  }

  deinit {
    close()
    if reserve >= 0 { pinfold_close(reserve) }
  }

  /// Where it listens, with the port the system chose.
  package var endpoint: Endpoint { socket.endpoint }

  /// Stops accepting. The socket itself is closed when the listener is let go.
  package func close() {
    if let event = unsafe registration { unsafe event_free(event) }
    unsafe registration = nil
    due = .max
  }

  fileprivate func ready() {
    for _ in 0..<Self.maximalBatch where unsafe registration != nil {
      var peer = pinfold_address()
      let result = unsafe pinfold_accept(socket.descriptor, &peer)
      if result >= 0 {
        accept(StreamSocket(taking: Int32(result), peerAddress: SocketAddress(peer), loop: loop))
        continue
      }
      switch -Int32(clamping: result) {
      case EAGAIN: return
      // Errors of one connection, not of the listener (accept(2), "Error handling").
      case ECONNABORTED, ENETDOWN, EPROTO, ENOPROTOOPT, EHOSTDOWN, ENONET, EHOSTUNREACH, EOPNOTSUPP, ENETUNREACH, EPERM:
        continue
      default:
        if !refuseOne() {
          suspend()
          return
        }
      }
    }
  }

  /// Gives up the reserve for one connection. False when that did not help.
  private func refuseOne() -> Bool {
    loop.pipes.trim()
    guard reserve >= 0 else {
      reserve = Int32(clamping: pinfold_open_null())
      return false
    }
    pinfold_close(reserve)
    reserve = -1
    defer { reserve = Int32(clamping: pinfold_open_null()) }
    var peer = pinfold_address()
    let result = unsafe pinfold_accept(socket.descriptor, &peer)
    if wouldBlock(result) { return true }
    guard result >= 0 else { return false }
    let refused = StreamSocket(taking: Int32(result), peerAddress: SocketAddress(peer), loop: loop)
    refused.discard()
    refuse(refused)
    refused.shutdownWrite()
    refused.discard()
    refused.close()
    return true
  }

  private func suspend() {
    guard let event = unsafe registration else { return }
    unsafe event_del(event)
    schedule(due: loop.deadline(after: Self.pause).nanoseconds)
  }

  override func timerFired() {
    if let event = unsafe registration { unsafe _ = event_add(event, nil) }
  }
}

private func listenerReady(_: Int32, _: Int16, context: UnsafeMutableRawPointer?) {
  guard let context = unsafe context else { return }
  unsafe Unmanaged<Listener>.fromOpaque(context).takeUnretainedValue().ready()
}
