import Foundation
import Synchronization

/// Plays both sides of a capture against a proxy between them: a client that writes the captured bytes through a CONNECT
/// tunnel, and an upstream that answers with the captured ones. Each side goes on when it has got as much of the other
/// as it had when the capture was made; more than the hellos cannot reach the upstream before a verdict.
///
/// One play at a time: the upstream has one port, and gives every connection to the play that is on.
final class CaptureReplay: Sendable {
  /// What came out at both ends.
  struct Result {
    /// What the client got, the reply to its CONNECT included.
    let reply: ProxyReply
    /// What each connection to the upstream was sent, in the order they came.
    let upstream: [[UInt8]]
  }

  /// What the connection that ends a play sends: no beginning of a hello.
  private static let last: [UInt8] = [0xff]
  /// Where the ClientHello's random ends: no two hellos are the same up to here.
  private static let randomEnd = 43

  private final class Play: Sendable {
    let capture: Capture
    /// Bytes of each write.
    let piece: Int
    let received = Mutex<[Recording]>([])
    let open = Atomic<Int>(0)

    init(_ capture: Capture, piece: Int) {
      self.capture = capture
      self.piece = piece
    }
  }

  private final class Programme: Sendable {
    let play = Mutex<Play?>(nil)
  }

  private let programme: Programme
  private let listener: Listener
  /// Where the upstream listens.
  var port: UInt16 { listener.port }

  init() throws {
    let programme = Programme()
    self.programme = programme
    listener = try Listener { socket in
      guard let play = programme.play.withLock({ $0 }) else { return socket.shutDown() }
      play.open.add(1, ordering: .sequentiallyConsistent)
      let recording = Recording()
      play.received.withLock { $0.append(recording) }
      Self.serve(play, socket, recording)
      socket.shutDown()
      play.open.subtract(1, ordering: .sequentiallyConsistent)
    }
  }

  /// Plays a capture through the proxy. `keyLog` is the pipe into which the client logs once it has read the ServerHello.
  func play(
    _ capture: Capture, proxy: UInt16, authority: String, piece: Int = .max, keyLog: String? = nil
  ) throws -> Result {
    let play = Play(capture, piece: piece)
    let before = listener.connectionCount
    programme.play.withLock { $0 = play }
    defer { programme.play.withLock { $0 = nil } }
    let client = try RawClient(to: proxy)
    let head = try client.connect(authority)
    var got: [UInt8] = []
    if head.statusLine.contains(" 200") { got = try Self.ask(play, client.socket, keyLog: keyLog) }
    client.socket.shutDown()
    // A connection may wait to be accepted still. One more, behind it in the queue, tells when it has been.
    let last = try RawClient(to: port)
    last.send(Self.last)
    _ = last.drain()
    try Wait.untilTrue("the end of the upstream's connections") {
      play.received.withLock { $0.count } == listener.connectionCount - before
        && play.open.load(ordering: .sequentiallyConsistent) == 0
    }
    return Result(
      reply: ProxyReply(Array(head.head.utf8) + head.rest + got),
      upstream: play.received.withLock { $0.map(\.all).filter { $0 != Self.last } })
  }

  /// The client's side: everything it got.
  private static func ask(_ play: Play, _ socket: Socket, keyLog: String?) throws -> [UInt8] {
    let capture = play.capture
    var got: [UInt8] = []
    var lines = capture.keyLog
    /// Reads until that much has come; false when the proxy ended before.
    func read(until count: Int) throws -> Bool {
      while true {
        if let keyLog, !lines.isEmpty, got.count >= capture.facts.serverHello?.end ?? .max {
          try KeyLogLines.write([lines], to: keyLog)
          lines = ""
        }
        guard got.count < count else { return true }
        switch socket.receive() {
        case .bytes(let bytes): got += bytes
        case .end, .reset: return false
        case .timeout: throw HarnessError("\(capture.name): \(got.count) of \(count) bytes came")
        }
      }
    }
    socket.setTimeout(seconds: 15)
    for turn in capture.turns(of: "c") {
      // The captures end before the server does: what is waited for has to be in the file. A second hello answers the
      // retry; what the recorder read behind that in one piece is held.
      let needed = turn.range.lowerBound < capture.helloEnd ? capture.facts.helloRetry?.end ?? .max : .max
      guard try read(until: min(turn.after, capture.server.count, needed)) else { return got }
      send(capture.client[turn.range.clamped(to: capture.client.indices)], play.piece, socket)
    }
    // Everything else; where the server stays silent, a refusal ends the wait.
    _ = try read(until: capture.server.count)
    return got
  }

  /// The upstream's side.
  private static func serve(_ play: Play, _ socket: Socket, _ recording: Recording) {
    let capture = play.capture
    let flightEnd = capture.facts.serverFlight?.end ?? .max
    socket.setTimeout(seconds: 15)
    for turn in capture.turns(of: "s") {
      // A probe's first hello may be of any length; the record it comes in says which.
      while turn.range.lowerBound == 0, TLSRecords.firstLength(recording.all).map({ recording.count < $0 }) ?? true {
        guard case .bytes(let bytes) = socket.receive() else { return }
        recording.append(bytes)
        if recording.all == Self.last { return }
      }
      let isApps = recording.all.prefix(Self.randomEnd) == capture.client.prefix(Self.randomEnd)
      if turn.range.lowerBound == 0, !isApps {
        send(capture.server[turn.range.clamped(to: capture.server.indices)], play.piece, socket)
        continue
      }
      let isRetried = capture.facts.helloRetry.map { turn.range.lowerBound >= $0.end } ?? true
      let hellos = isRetried ? capture.helloEnd : capture.facts.clientHello?.end ?? 0
      let needed = turn.range.lowerBound < flightEnd ? min(turn.after, hellos) : turn.after
      while recording.count < min(needed, capture.client.count) {
        guard case .bytes(let bytes) = socket.receive() else { return }
        recording.append(bytes)
      }
      send(capture.server[turn.range.clamped(to: capture.server.indices)], play.piece, socket)
    }
    while case .bytes(let bytes) = socket.receive() { recording.append(bytes) }
  }

  private static func send(_ bytes: ArraySlice<UInt8>, _ piece: Int, _ socket: Socket) {
    var rest = bytes
    while !rest.isEmpty {
      socket.send(Array(rest.prefix(piece)))
      rest = rest.dropFirst(piece)
    }
  }
}
