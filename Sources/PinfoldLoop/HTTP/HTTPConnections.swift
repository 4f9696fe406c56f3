internal import CLibevent
internal import CLinux

/// The connections of an `HTTPServer`: not more than a number, and none without a deadline.
///
/// evhttp takes as many as come, and its time-out is one of each read: whoever sends a byte now and then keeps a
/// connection for ever. It tells of a connection only once a request is whole; but it has the bufferevent of each new
/// one made here, and makes the connection the context of that one's callbacks, where it is found a pass later.
///
/// Connections are ended by shutdown(2): to evhttp that is a client that leaves, which it can take at any time.
@safe
final class HTTPConnections: Resumable {
  private final class Entry {
    let descriptor: Int32
    /// Since when it has been in its state.
    var since: Deadline
    /// Ends it. A timer let go does nothing.
    var timer: LoopTimer?
    /// A request waits for its answer.
    var isBusy = false
    var isEnded = false

    init(_ descriptor: Int32, since: Deadline) {
      self.descriptor = descriptor
      self.since = since
    }

    func end() {
      isEnded = true
      timer = nil
      pinfold_shutdown(descriptor)
    }
  }

  /// A bufferevent with a reference of ours, so that it can be looked at a pass later.
  @safe
  private struct Newcomer {
    let transport: OpaquePointer
  }

  private let loop: EventLoop
  private let limits: HTTPServer.Limits
  private var listener: OpaquePointer?
  /// By the address of evhttp's connection, which tells when it goes.
  private var entries: [UInt: Entry] = [:]
  /// Those made since the last pass.
  private var newcomers: [Newcomer] = []

  init(loop: EventLoop, limits: HTTPServer.Limits) {
    self.loop = loop
    self.limits = limits
  }

  /// How many evhttp has.
  var count: Int { entries.count + newcomers.count }

  /// Takes over the connections of a server, from the first one on.
  func watch(_ server: OpaquePointer, _ listener: OpaquePointer?) {
    unsafe self.listener = listener
    unsafe evhttp_set_bevcb(server, connectionMade, Unmanaged.passUnretained(self).toOpaque())
  }

  /// To be called before the server is freed.
  func leave() {
    unsafe listener = nil
    for key in entries.keys { unsafe evhttp_connection_set_closecb(OpaquePointer(bitPattern: key), nil, nil) }
    entries = [:]
    for newcomer in newcomers { unsafe _ = bufferevent_decref(newcomer.transport) }
    newcomers = []
  }

  // MARK: Requests

  /// The connection has a whole request, and time to answer it.
  func began(_ connection: OpaquePointer?) { unsafe renew(connection, isBusy: true) }

  /// The answer is about to be sent: from here the time counts for that, and for the next request.
  func answered(_ connection: OpaquePointer?) { unsafe renew(connection, isBusy: false) }

  private func renew(_ connection: OpaquePointer?, isBusy: Bool) {
    guard let entry = entries[UInt(bitPattern: connection)], !entry.isEnded else { return }
    entry.isBusy = isBusy
    start(entry)
  }

  private func start(_ entry: Entry) {
    entry.since = loop.now
    entry.timer = LoopTimer(loop: loop, after: limits.time) { [unowned entry] in entry.end() }
  }

  // MARK: Coming and going

  /// The bufferevent of a connection that was just accepted. Without one evhttp makes its own, which goes unwatched.
  fileprivate func make() -> OpaquePointer? {
    guard let transport = unsafe bufferevent_socket_new(loop.base, -1, 0) else { return nil }
    unsafe bufferevent_incref(transport)
    if newcomers.isEmpty { loop.resumeLater(self) }
    newcomers.append(unsafe Newcomer(transport: transport))
    // The rest of a crowd waits with the system until this pass's surplus is gone.
    if count > limits.connections, let listener = unsafe listener { unsafe _ = evconnlistener_disable(listener) }
    return unsafe transport
  }

  func resume() {
    let taken = newcomers
    newcomers = []
    for newcomer in taken {
      unsafe admit(newcomer.transport)
      unsafe _ = bufferevent_decref(newcomer.transport)
    }
    if let listener = unsafe listener { unsafe _ = evconnlistener_enable(listener) }
  }

  private func admit(_ transport: OpaquePointer) {
    var context: UnsafeMutableRawPointer?
    unsafe bufferevent_getcb(transport, nil, nil, nil, &context)
    // Without a context evhttp has let go of it already.
    guard let connection = unsafe context.map({ OpaquePointer($0) }) else { return }
    let own = unsafe Unmanaged.passUnretained(self).toOpaque()
    unsafe evhttp_connection_set_closecb(connection, connectionClosed, own)
    let entry = Entry(unsafe bufferevent_getfd(transport), since: loop.now)
    entries[UInt(bitPattern: connection)] = entry
    start(entry)
    if entries.values.count(where: { !$0.isEnded }) > limits.connections { endLongestIdle() }
  }

  /// Whoever comes is let in, a probe of health too, at the cost of the connection that has waited longest for its
  /// client. Where all wait for us, that is the newcomer.
  private func endLongestIdle() {
    entries.values.filter { !$0.isBusy && !$0.isEnded }.min { $0.since < $1.since }?.end()
  }

  fileprivate func closed(_ connection: OpaquePointer?) {
    entries[UInt(bitPattern: connection)] = nil
  }
}

private func connectionMade(_: OpaquePointer?, context: UnsafeMutableRawPointer?) -> OpaquePointer? {
  guard let context = unsafe context else { return nil }
  return unsafe Unmanaged<HTTPConnections>.fromOpaque(context).takeUnretainedValue().make()
}

private func connectionClosed(connection: OpaquePointer?, context: UnsafeMutableRawPointer?) {
  guard let context = unsafe context else { return }
  unsafe Unmanaged<HTTPConnections>.fromOpaque(context).takeUnretainedValue().closed(connection)
}
