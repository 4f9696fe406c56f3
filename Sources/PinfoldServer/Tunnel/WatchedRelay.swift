import PinfoldLoop
import PinfoldModel
import PinfoldWire

/// Passes bytes on in small steps, both ways, until it is known whether the client accepts the session that the server
/// offers; then the relay takes over. Never changes, holds back or drops a byte because of what is watched.
struct WatchedRelay {
  /// Bytes of each side per step; both directions wait while one of them is sent.
  private static let stepSize = 16_384
  /// Bytes of both sides after which no session is learnt. A step that need not wait gives up no turn, as the relay does,
  /// and a server may talk on for as long as its client is silent; no handshake is this long.
  private static let byteLimit: UInt64 = 1_048_576

  let client: StreamSocket
  let upstream: StreamSocket
  let ledger: ResumptionLedger
  /// The end of the watch.
  let deadline: Deadline
  /// Time that a side may take for each step's bytes, as in the relay that follows.
  let idle: Duration
  var lesson: Lesson
  /// Bytes passed on so far.
  private(set) var up: UInt64 = 0
  private(set) var down: UInt64 = 0

  init(
    _ lesson: Lesson, client: StreamSocket, upstream: StreamSocket, ledger: ResumptionLedger, deadline: Deadline,
    idle: Duration
  ) {
    self.lesson = lesson
    self.client = client
    self.upstream = upstream
    self.ledger = ledger
    self.deadline = deadline
    self.idle = idle
  }

  /// Ends when there is nothing more to watch, with nothing held: an end of either side is left to the relay, which
  /// reads it again. False when a side was reset, or bytes could not be passed on: both sides are reset then.
  mutating func run() async -> Bool {
    do {
      try await pass()
      return true
    } catch {
      client.abort()
      upstream.abort()
      return false
    }
  }

  private mutating func pass() async throws(IOError) {
    while lesson.watch.state == .watching {
      guard up + down < Self.byteLimit, client.loop.now < deadline else {
        lesson.watch.abandon()
        return
      }
      let fromServer = try upstream.tryReceive(max: Self.stepSize)
      // Read behind the server's and counted as sent before: what lies here was written without knowing these.
      let fromClient = try client.tryReceive(max: Self.stepSize)
      guard fromServer != nil || fromClient != nil else {
        guard await isReadable() else { return }
        continue
      }
      watch(fromClient, fromServer)
      try await pass(fromClient, fromServer)
      if fromServer?.isEmpty == true || fromClient?.isEmpty == true { return }
    }
  }

  /// False when the time is up, or the tunnel is being ended: the relay then does what there is to do.
  private func isReadable() async -> Bool {
    do {
      try await StreamSocket.waitReadable(client, or: upstream, deadline: deadline)
      return true
    } catch {
      return false
    }
  }

  private mutating func watch(_ fromClient: [UInt8]?, _ fromServer: [UInt8]?) {
    if let fromClient, case .learnt(let session) = lesson.watch.receive(client: fromClient.span) {
      ledger.note(session, at: lesson.authority, from: lesson.origin)
    }
    guard let fromServer else { return }
    // More of the client may lie unread, sent before the server's bytes reach it: its order would be unknown.
    guard (fromClient?.count ?? 0) < Self.stepSize else {
      lesson.watch.abandon()
      return
    }
    _ = lesson.watch.receive(server: fromServer.span)
  }

  private mutating func pass(_ fromClient: [UInt8]?, _ fromServer: [UInt8]?) async throws(IOError) {
    var failure: IOError?
    if let fromClient, !fromClient.isEmpty {
      do {
        try await upstream.send(fromClient, deadline: client.loop.deadline(after: idle), inTunnelOf: client)
        up += UInt64(fromClient.count)
      } catch {
        failure = error
      }
    }
    // A server may answer and reset: its last words are the client's all the same.
    if let fromServer, !fromServer.isEmpty {
      try await client.send(fromServer, deadline: client.loop.deadline(after: idle))
      down += UInt64(fromServer.count)
    }
    if let failure { throw failure }
  }
}
