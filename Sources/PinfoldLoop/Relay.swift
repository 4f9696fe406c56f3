/// Moves bytes between two sockets, both ways, until both have ended. Owns the sockets from its start on, and closes
/// them at its end.
///
/// Driven by the sockets' events alone: no task runs per byte, and nothing is held while nothing flows. Each side's end
/// is passed on as such (shutdown(2)) once all before it is delivered, a reset as a reset.
@safe
package final class Relay: TimerEntry, Resumable {
  /// The two ends of a tunnel.
  package enum Side: Sendable {
    case client, upstream
  }

  /// Why a relay ended.
  package enum End: Hashable, Sendable {
    /// Both sides ended, one after the other, and everything was delivered.
    case finished
    /// No byte moved for the idle time.
    case idle
    /// This side's connection failed or was reset; the other was reset in turn. Only a client to which all of the
    /// upstream's bytes and their end were passed on is closed without, so that what is on its way still arrives.
    case reset(Side)
    /// One of the sockets was cancelled.
    case cancelled
  }

  /// What a relay moved, and why it ended.
  package struct Result: Hashable, Sendable {
    /// Bytes taken from the client.
    package let bytesUp: UInt64
    /// Bytes taken from the upstream.
    package let bytesDown: UInt64
    /// Why it ended.
    package let end: End
  }

  /// How long a short read may stand for "nothing more there" before it is looked after. libevent hides which edges
  /// carry a reset, so a reset that came in one edge with bytes is noticed this late at worst.
  private static let confirmationDelay = Duration.seconds(1)

  private let client: StreamSocket
  private let upstream: StreamSocket
  private let loop: EventLoop
  private let idle: Duration
  private var completion: ((Result) -> Void)?
  private var up = RelayDirection()
  private var down = RelayDirection()
  private var lastActivity: Deadline
  private var isQueued = false
  /// Whether the client had an edge, which may be a reset, since it was asked for its error.
  private var mayHaveLostClient = false

  private init(_ client: StreamSocket, _ upstream: StreamSocket, idle: Duration) {
    self.client = client
    self.upstream = upstream
    self.idle = idle
    loop = client.loop
    lastActivity = loop.now
    super.init(wheel: loop.wheel)
  }

  /// Relays between two sockets of one loop on which no task waits, and answers when it is over. Both are closed then.
  ///
  /// - Parameter idle: time without a byte in either direction after which both sides are closed.
  package static func run(client: StreamSocket, upstream: StreamSocket, idle: Duration) async -> Result {
    unsafe await withUnsafeContinuation { continuation in
      start(client: client, upstream: upstream, idle: idle) { unsafe continuation.resume(returning: $0) }
    }
  }

  /// As `run`, for callers that keep no task while nothing flows: a suspended task costs memory per tunnel.
  ///
  /// - Parameter completion: called once, on the loop's thread, possibly before `start` returns.
  package static func start(
    client: StreamSocket, upstream: StreamSocket, idle: Duration, completion: @escaping (Result) -> Void
  ) {
    client.loop.preconditionOnLoop()
    precondition(client.loop === upstream.loop, "a relay stays on one loop")
    let relay = Relay(client, upstream, idle: idle)
    relay.completion = completion
    client.relay = relay
    upstream.relay = relay
    relay.begin()
  }

  private func begin() {
    if client.isCancelled || upstream.isCancelled { return finish(.cancelled) }
    guard (try? client.register()) != nil else { return finish(.reset(.client)) }
    guard (try? upstream.register()) != nil else { return finish(.reset(.upstream)) }
    client.mayRead = true
    upstream.mayRead = true
    schedule(due: lastActivity.advanced(by: idle).nanoseconds)
    turn()
  }

  // MARK: Events

  func ready(_ socket: StreamSocket) {
    lastActivity = loop.now
    if socket === client { mayHaveLostClient = true }
    turn()
  }

  func resume() {
    isQueued = false
    if completion != nil { turn() }
  }

  func cancel() { finish(.cancelled) }

  private func turn() {
    // Short reads are trusted as long as an end is reported as such: not once epoll saw one, and not when our own FIN
    // is out, since the peer's then arrives as HUP.
    let upward = up.turn(
      from: client, to: upstream, loop: loop, trustsShortReads: !client.peerFinished && !down.isDone)
    switch upward {
    case .sourceFailed: return finish(.reset(.client))
    case .sinkFailed: return failWriting(to: .upstream)
    case .waiting, .again, .done: break
    }
    let downward = down.turn(
      from: upstream, to: client, loop: loop, trustsShortReads: !upstream.peerFinished && !up.isDone)
    switch downward {
    case .sourceFailed: return finish(.reset(.upstream))
    case .sinkFailed: return failWriting(to: .client)
    case .waiting, .again, .done: break
    }
    if up.isDone, down.isDone { return finish(.finished) }
    if up.hasLost(client) { return finish(.reset(.client)) }
    if down.hasLost(upstream) { return finish(.reset(.upstream)) }
    if mayHaveLostClient, up.holdsBytes {
      // Nobody reads it while its upstream is slow. A server that answers and resets is still to be heard.
      mayHaveLostClient = false
      if client.hasFailed { return finish(.reset(.client)) }
    }
    if upward == .again || downward == .again { queue() }
    if up.isUnconfirmed || down.isUnconfirmed { scheduleConfirmation() }
  }

  private func queue() {
    guard !isQueued else { return }
    isQueued = true
    loop.resumeLater(self)
  }

  private func scheduleConfirmation() {
    let moment = loop.now.advanced(by: Self.confirmationDelay).nanoseconds
    if due > moment { schedule(due: moment) }
  }

  override func timerFired() {
    let expiry = lastActivity.advanced(by: idle)
    if expiry <= loop.now { return finish(.idle) }
    schedule(due: expiry.nanoseconds)
    if up.isUnconfirmed || down.isUnconfirmed {
      up.confirm(client)
      down.confirm(upstream)
      turn()
    }
  }

  // MARK: Ending

  /// What the failed side had sent before is still worth delivering: a server may answer and reset.
  private func failWriting(to side: Side) {
    switch side {
    case .client:
      client.mayRead = true
      _ = up.turn(from: client, to: upstream, loop: loop, trustsShortReads: false, passesEnd: false)
    case .upstream:
      upstream.mayRead = true
      _ = down.turn(from: upstream, to: client, loop: loop, trustsShortReads: false, passesEnd: false)
    }
    finish(.reset(side))
  }

  private func finish(_ end: End) {
    guard let completion else { return }
    self.completion = nil
    due = .max
    up.release(loop)
    down.release(loop)
    client.relay = nil
    upstream.relay = nil
    switch end {
    case .finished, .idle, .cancelled:
      client.close()
      upstream.close()
    case .reset(let side):
      // A server that closed for good answers whatever the client still sends (its farewell, say) with a reset: that
      // must not take the tail of the answer from the client. Linux resets by itself if the client's bytes lie unread.
      if side == .upstream, down.isDone { client.close() } else { client.abort() }
      upstream.abort()
    }
    completion(Result(bytesUp: up.byteCount, bytesDown: down.byteCount, end: end))
  }
}
