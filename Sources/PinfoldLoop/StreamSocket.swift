internal import CLibevent
internal import CLinux
package import PinfoldModel

/// A connected stream socket, bound to one loop and used on its thread only, by one task at a time for each direction.
///
/// Owns its descriptor. Every call is tried first; only when it would have to wait is the descriptor registered, once,
/// edge-triggered for both directions, and the registration stays until `close`. An idle socket holds no buffer.
/// Sockets are not `Sendable`; a socket let go without `close` is closed.
@safe
package final class StreamSocket: TimerEntry {
  /// How a wait ended.
  enum Wake {
    case ready, timedOut, cancelled, closed, hungUp
  }

  enum Interest {
    case read, write
  }

  /// A task that waits.
  @safe
  private struct Waiter {
    let continuation: UnsafeContinuation<Wake, Never>
    /// Nanoseconds of the monotonic clock.
    let due: UInt64
  }

  /// What the neighbour in `watcher` wants to hear of this socket.
  enum Watch {
    case hangUp, readable, writable
    /// Nothing but its being cancelled or closed, which every neighbour hears.
    case end
  }

  /// The loop on whose thread it is used.
  package let loop: EventLoop
  /// The peer as accept(2) or the dialler knew it; `nil` for UNIX sockets.
  package let peerAddress: SocketAddress?

  /// -1 once closed.
  private(set) var descriptor: Int32
  /// Whether the next read or write is worth trying: true until EAGAIN, and again from the next edge on.
  var mayRead = true
  var mayWrite = true
  /// The peer's FIN or reset was seen by epoll, though perhaps not yet read.
  private(set) var peerFinished = false
  /// Whether `cancel` was called.
  package private(set) var isCancelled = false
  /// Takes the events once a relay owns the socket.
  var relay: Relay?

  private var registration: OpaquePointer?
  private var reader: Waiter?
  private var writer: Waiter?
  /// The socket whose wait also hears of this one. Set for the length of that wait only, during which it lives.
  private unowned(unsafe) var watcher: StreamSocket?
  private var watch = Watch.hangUp
  /// What a task that waits for something else wants called when it need not wait any more.
  private var departure: (() -> Void)?

  /// Takes ownership of a non-blocking descriptor.
  init(taking descriptor: Int32, peerAddress: SocketAddress?, loop: EventLoop) {
    self.descriptor = descriptor
    self.peerAddress = peerAddress
    self.loop = loop
    super.init(wheel: loop.wheel)
  }

  deinit {
    guard descriptor >= 0 else { return }
    unsafe registration.map { unsafe event_free($0) }
    pinfold_close(descriptor)
  }

  /// The address on this side, asked of the system (getsockname(2)); `nil` for UNIX sockets.
  package var localAddress: SocketAddress? {
    descriptor < 0 ? nil : SocketAddress(pinfold_local_address(descriptor))
  }

  /// Whether `close` or `abort` was called.
  package var isClosed: Bool { descriptor < 0 }

  /// Whether the peer is known to be gone: it closed its side or reset the connection. Bytes of it may lie unread.
  package var hasHungUp: Bool { checkHangUp() }

  /// Whether the connection failed, as by a reset, and nobody was told so far. Tells it once.
  var hasFailed: Bool { pinfold_socket_error(descriptor) != 0 }

  // MARK: Ending

  /// Closes the socket; a wait on it ends with `.closed`. What was sent is still delivered, followed by a FIN, unless
  /// the peer's bytes lie unread: then Linux sends a reset. May be called again.
  package func close() { end(reset: false) }

  /// Closes with a reset (RST): what was sent but not delivered is dropped.
  package func abort() { end(reset: true) }

  private func end(reset: Bool) {
    loop.preconditionOnLoop()
    guard descriptor >= 0 else { return }
    if let registration = unsafe registration { unsafe event_free(registration) }
    unsafe registration = nil
    if reset { pinfold_close_reset(descriptor) } else { pinfold_close(descriptor) }
    descriptor = -1
    wakeAll(.closed)
    tellDeparture()
  }

  /// Tells the peer that nothing more will come (FIN). Reading goes on. Errors mean the connection is gone anyway.
  package func shutdownWrite() {
    loop.preconditionOnLoop()
    if descriptor >= 0 { _ = pinfold_shutdown_write(descriptor) }
  }

  /// Ends the wait in progress, and every later one, with `.cancelled`; a relay ends with `.cancelled` too. The socket
  /// stays open until its task closes it. This is how a drain reaches tunnels that wait.
  package func cancel() {
    loop.preconditionOnLoop()
    guard !isCancelled else { return }
    isCancelled = true
    if let relay { relay.cancel() } else { wakeAll(.cancelled) }
    tellDeparture()
  }

  // MARK: Departure

  /// Has `body` called once, on the loop's thread, when the peer is gone or the socket is cancelled or closed: for a task
  /// that waits for something else on this one's behalf, and not on the socket itself. `endWatch` takes it back.
  ///
  /// Returns `false`, and calls nothing, where that is so already or the system gives no event.
  package func watchDeparture(_ body: @escaping () -> Void) -> Bool {
    precondition(departure == nil && relay == nil, "two tasks watch one socket")
    guard !isCancelled, (try? register()) != nil, !checkHangUp() else { return false }
    departure = body
    return true
  }

  /// Nobody waits on behalf of this socket any more.
  package func endWatch() { departure = nil }

  private func tellDeparture() {
    guard let body = departure else { return }
    departure = nil
    body()
  }

  // MARK: Waiting

  /// Waits for an edge of this kind.
  ///
  /// Inlined, as others that every tunnel goes through: a call of an async function has the task's executor looked up
  /// twice, under a lock.
  /// - Parameter watch: what of the other socket ends the wait: its peer's leaving, or only its own `.end`.
  /// - Throws: `.timedOut`, `.cancelled` (also for the watched socket), `.closed`, or `.hungUp` when the watched
  ///   socket's peer is gone.
  @inline(__always)
  func wait(
    for interest: Interest, _ deadline: Deadline, watching other: StreamSocket?, for watch: Watch = .hangUp
  ) async throws(IOError) {
    precondition((interest == .read ? reader : writer) == nil && relay == nil, "two tasks wait for one thing")
    if isCancelled { throw .cancelled }
    try register()
    if let other {
      // Of a socket registered only now, epoll tells what there is to tell.
      let isNew = unsafe other.registration == nil
      try other.register()
      if other.isCancelled { throw .cancelled }
      if watch == .hangUp, !isNew, other.checkHangUp() { throw .hungUp }
      unsafe other.watcher = self
      other.watch = watch
    }
    let wake = unsafe await withUnsafeContinuation { continuation in unsafe suspend(continuation, interest, deadline) }
    unsafe other?.watcher = nil
    try Self.check(wake)
  }

  /// Waits until one of two sockets may have something to read: bytes, an end or an error. Try both afterwards.
  ///
  /// To be called when `tryReceive` of both answered `nil`.
  /// - Throws: `.timedOut`, `.cancelled`, `.closed`.
  package static func waitReadable(
    _ first: StreamSocket, or second: StreamSocket, deadline: Deadline
  ) async throws(IOError) {
    precondition(first.reader == nil && second.reader == nil, "two tasks wait for one thing")
    if first.isCancelled || second.isCancelled { throw .cancelled }
    if first.mayRead || second.mayRead { return }
    try first.register()
    try second.register()
    unsafe second.watcher = first
    second.watch = .readable
    let wake = unsafe await withUnsafeContinuation { continuation in unsafe first.suspend(continuation, .read, deadline)
    }
    unsafe second.watcher = nil
    try check(wake)
  }

  /// Waits until one of several connecting sockets, at least one, has an outcome.
  /// - Throws: as `wait`.
  static func waitWritable(
    _ sockets: [StreamSocket], _ deadline: Deadline, watching other: StreamSocket?
  ) async throws(IOError) {
    guard let first = sockets.first, !sockets.contains(where: \.mayWrite) else { return }
    for socket in sockets.dropFirst() {
      try socket.register()
      unsafe socket.watcher = first
      socket.watch = .writable
    }
    defer { for socket in sockets.dropFirst() { unsafe socket.watcher = nil } }
    try await first.wait(for: .write, deadline, watching: other)
  }

  /// Waits until there may be something to read: bytes, an end or an error.
  /// - Throws: `.timedOut`, `.cancelled`, `.closed`.
  package func waitReadable(deadline: Deadline) async throws(IOError) {
    if !mayRead { try await wait(for: .read, deadline, watching: nil) }
  }

  /// Ends the wait for something to read, if there is one, as when its time is up: its task has something else to look at.
  package func interrupt() {
    loop.preconditionOnLoop()
    wakeReader(.timedOut)
  }

  private func suspend(_ continuation: UnsafeContinuation<Wake, Never>, _ interest: Interest, _ deadline: Deadline) {
    let waiter = unsafe Waiter(continuation: continuation, due: deadline.nanoseconds)
    switch interest {
    case .read: reader = waiter
    case .write: writer = waiter
    }
    schedule(due: min(reader?.due ?? .max, writer?.due ?? .max))
  }

  private static func check(_ wake: Wake) throws(IOError) {
    switch wake {
    case .ready: return
    case .timedOut: throw .timedOut
    case .cancelled: throw .cancelled
    case .closed: throw .closed
    case .hungUp: throw .hungUp
    }
  }

  /// Ends both waits, or those that others make with this socket's help.
  private func wakeAll(_ wake: Wake) {
    wakeReader(wake)
    wakeWriter(wake)
    if let watcher = unsafe watcher { watcher.wakeAll(wake) }
  }

  private func wakeReader(_ wake: Wake) {
    guard let waiter = reader else { return }
    reader = nil
    due = writer?.due ?? .max
    unsafe waiter.continuation.resume(returning: wake)
  }

  private func wakeWriter(_ wake: Wake) {
    guard let waiter = writer else { return }
    writer = nil
    due = reader?.due ?? .max
    unsafe waiter.continuation.resume(returning: wake)
  }

  // MARK: Events

  /// Registers the descriptor, once. Adding an edge-triggered descriptor reports what is there already.
  func register() throws(IOError) {
    guard descriptor >= 0 else { throw .closed }
    guard unsafe registration == nil else { return }
    loop.preconditionOnLoop()
    let context = unsafe Unmanaged.passUnretained(self).toOpaque()
    let event = unsafe event_new(loop.base, descriptor, pinfold_ev_stream, socketReady, context)
    guard let event = unsafe event, unsafe event_add(event, nil) == 0 else {
      unsafe event.map { unsafe event_free($0) }
      throw .descriptorsExhausted
    }
    unsafe registration = event
  }

  fileprivate func ready(_ what: Int16) {
    if what & pinfold_ev_read != 0 { mayRead = true }
    if what & pinfold_ev_write != 0 { mayWrite = true }
    if what & pinfold_ev_closed != 0 {
      mayRead = true
      peerFinished = true
    }
    if let relay {
      relay.ready(self)
      return
    }
    if mayRead { wakeReader(.ready) }
    if mayWrite { wakeWriter(.ready) }
    if departure != nil, checkHangUp() { tellDeparture() }
    if let watcher = unsafe watcher {
      switch watch {
      case .readable where mayRead: watcher.wakeReader(.ready)
      case .writable where mayWrite: watcher.wakeWriter(.ready)
      case .hangUp where checkHangUp(): watcher.wakeAll(.hungUp)
      default: break
      }
    }
  }

  /// Whether the peer is gone. epoll's ERR comes through libevent as "readable and writable", so an edge that may be a
  /// reset is looked into.
  private func checkHangUp() -> Bool {
    if peerFinished { return true }
    guard mayRead, descriptor >= 0 else { return false }
    let result = pinfold_peek(descriptor)
    if wouldBlock(result) {
      mayRead = false
    } else if result <= 0 || hasFailed {
      // Bytes that lie unread hide a reset from recv(2).
      peerFinished = true
    }
    return peerFinished
  }

  override func timerFired() {
    let now = loop.now.nanoseconds
    if let due = reader?.due, due <= now { wakeReader(.timedOut) }
    if let due = writer?.due, due <= now { wakeWriter(.timedOut) }
    schedule(due: min(reader?.due ?? .max, writer?.due ?? .max))
  }
}

private func socketReady(_: Int32, what: Int16, context: UnsafeMutableRawPointer?) {
  guard let context = unsafe context else { return }
  unsafe Unmanaged<StreamSocket>.fromOpaque(context).takeUnretainedValue().ready(what)
}
