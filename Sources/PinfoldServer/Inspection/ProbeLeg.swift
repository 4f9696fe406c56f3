import PinfoldLoop
import PinfoldModel
import PinfoldTelemetry
import PinfoldWire

/// A second connection to the upstream's very address, and Pinfold's own handshake on it, running beside the app's.
///
/// It proves whose key the *endpoint* has, not whose key the app's connection has: an attacker who does not know which
/// of the two is watched has to leave both alone or be caught on half of all tries.
///
/// `@unchecked Sendable`: touched on its loop's thread only, which every door checks.
@safe final class ProbeLeg: @unchecked Sendable {
  /// How a probe ended.
  enum Outcome: Sendable {
    /// The peer proved that it owns the key it showed.
    case finished(ProbeHandshake.Seen)
    /// The upstream never said a word on this connection, although it answered on the other.
    case stalled
    /// The upstream resumed a session, as it would on the app's connection, and showed no key.
    case resumed(String)
    case failed(Reason, String)
  }

  private let loop: EventLoop
  let handshake: ProbeHandshake
  private let deadline: Deadline
  /// The connection the probe goes over; the lot may exchange it for the app's before anything was sent.
  var socket: StreamSocket
  /// How the handshake ended; `nil` while it goes on. What follows on the connection may still spoil it.
  private(set) var result: Outcome?
  /// Whether the upstream asked for a second hello here.
  private(set) var hasRetried = false
  private var isImpatient = false
  /// Whether no second hello of the app will come any more.
  private var isWithoutHello = false
  /// Whether the leg ends as soon as it is done. Only for upstreams that serve one connection at a time: to everybody
  /// else the end of one connection while the other waits would tell which of them is the app's.
  private let leavesEarly: Bool
  /// When the upstream's first word came, or the handshake ended without one.
  private(set) var heardAt: Deadline?
  /// Called when the first word came, a second hello is asked for, an answer is there, or the handshake is over.
  var onProgress: (() -> Void)?
  private var farewell: [UInt8] = []
  private var listener: UnsafeContinuation<Void, Never>?
  /// Waits for what to do with the second hello, without reading.
  private var retry: UnsafeContinuation<Void, Never>?
  /// Whether the second hello is waited for.
  private var isAwaitingHello = false
  /// What to do with it.
  private var answer: ProbeHandshake.Step?
  /// Whether nothing is read until the second hello is there.
  private var isStill = false
  /// Whether the answer may be judged, and whether that has begun.
  private var mayJudge: Bool
  private var isJudging = false
  /// Whether the task waits for bytes of the upstream, or is about to take them.
  private var isReading = false
  /// Bytes of the upstream so far.
  private var received = 0
  /// Whether the connection was ended from this side.
  private var hasLeft = false
  /// The second hello, made but not sent.
  private var prepared: ProbeHandshake.Step?
  /// What comes behind the hello that was sent.
  private var behindHello: ProbeHandshake.Step?
  private var work: Task<Void, Never>?

  init(
    _ handshake: ProbeHandshake, over socket: StreamSocket, loop: EventLoop, deadline: Deadline, leavesEarly: Bool
  ) {
    self.leavesEarly = leavesEarly
    mayJudge = leavesEarly
    self.handshake = handshake
    self.socket = socket
    self.loop = loop
    self.deadline = deadline
  }

  /// Whether the handshake is over.
  var isOver: Bool { result != nil }

  /// Whether the upstream answered here, as far as that can be told without any cryptography, or the handshake is over.
  var isAnswered: Bool { isOver || (heardAt != nil && handshake.isAnswered) }

  /// Whether it answered in an older version than TLS 1.3.
  var isAnsweredOlder: Bool {
    switch result {
    case nil: handshake.isAnsweredOlder
    case .finished(let seen): !seen.isTLS13
    case .resumed: true
    case .stalled, .failed: false
    }
  }

  /// Whether the answer is not to be judged yet.
  var isHeld: Bool { !mayJudge && !isOver }

  /// Judges the answer, now or as soon as it is there. Until then its bytes are merely read, as those of the app's
  /// connection are: the time that keys and signatures take is to be seen by the reading of either connection, and would
  /// tell which of them is the probe's as long as an attacker may still choose.
  func judge() {
    loop.preconditionOnLoop()
    guard !mayJudge else { return }
    mayJudge = true
    if isReading { socket.interrupt() }
  }

  /// The label of metrics and lines.
  var kind: ProbeKind { handshake.kind }

  /// Sends the probe's ClientHello, the first or the one that was prepared, as far as the upstream takes it now, and says
  /// whether that is all of it. Nothing is read behind it before `goOn`. Without one to send nothing happens.
  func sendHello() throws(IOError) -> Bool {
    loop.preconditionOnLoop()
    defer { prepared = nil }
    let step = work == nil ? handshake.start() : prepared
    guard behindHello == nil, work == nil || awaitsAnswer, let step else { return true }
    behindHello = step
    guard case .send(let hello) = step else { return true }
    let sent = try socket.trySend(hello.span)
    behindHello = sent == hello.count ? .needMore : .send(Array(hello[sent...]))
    return sent == hello.count
  }

  /// Goes on by itself behind the hello that was sent.
  func goOn() {
    loop.preconditionOnLoop()
    guard let next = behindHello else { return }
    behindHello = nil
    if work == nil {
      work = Task(executorPreference: loop) { await self.run(next) }
    } else if awaitsAnswer {
      answer(with: next)
    }
  }

  /// Makes the probe's second hello out of the app's, after a HelloRetryRequest on both connections.
  func prepare(_ hello: ClientHello) {
    loop.preconditionOnLoop()
    guard awaitsAnswer, prepared == nil else { return }
    prepared = handshake.secondHello(hello)
  }

  /// Waits for the end. A leg on which nothing at all is heard for `patience` from now on is stalled; it stays open, so
  /// that both connections of a pair can end alike.
  func outcome(patience: Duration) async -> Outcome {
    loop.preconditionOnLoop()
    if work == nil {
      // What the upstream does not take yet is sent by the task, which also finds out what went wrong.
      _ = try? sendHello()
      goOn()
    }
    giveUpRetry()
    judge()
    guard let work else { return .failed(.internalError, "probe: not started") }
    guard await isServed(patience: patience) else { return .stalled }
    await work.value
    return result ?? .failed(.internalError, "probe: not over")
  }

  /// Whether the upstream serves this connection beside the app's: waits `patience` for its first word.
  func isServed(patience: Duration) async -> Bool {
    loop.preconditionOnLoop()
    await listen(for: patience) { self.heardAt != nil }
    return heardAt != nil
  }

  /// Reads nothing between the upstream's request for a second hello and that hello: the app's connection has its request.
  func holdStill() {
    loop.preconditionOnLoop()
    isStill = true
    if isAwaitingHello { socket.interrupt() }
  }

  /// Takes leave of the upstream and closes the connection; may be called again.
  func abandon() {
    loop.preconditionOnLoop()
    leave()
    giveUpRetry()
  }

  /// Ends the connection without a word, as the app's is ended when a pair is given up.
  func drop() {
    loop.preconditionOnLoop()
    hasLeft = true
    farewell = []
    socket.abort()
    giveUpRetry()
  }

  /// No second hello will come any more: the app's handshake needs none, or is over.
  func giveUpRetry() {
    isWithoutHello = true
    if awaitsAnswer { answer(with: handshake.secondHello(nil)) }
  }

  /// Whether it is still open what becomes of the second hello.
  private var awaitsAnswer: Bool { isAwaitingHello && answer == nil }

  private func answer(with step: ProbeHandshake.Step) {
    answer = step
    socket.interrupt()
    unsafe retry?.resume()
    unsafe retry = nil
  }

  private func leave() {
    if !hasLeft, result == nil, !isJudging { prepareFarewell() }
    hasLeft = true
    _ = try? socket.trySend(farewell.span)
    farewell = []
    socket.close()
  }

  /// The keys of a clean leave come with the judgement, whose outcome nobody waits for any more.
  private func prepareFarewell() {
    isJudging = true
    switch handshake.judge() {
    case .finished(_, let farewell), .failed(_, _, let farewell): self.farewell = farewell
    default: break
    }
  }

  // MARK: Waiting

  private func listen(for patience: Duration, until condition: () -> Bool) async {
    let timer = LoopTimer(loop: loop, after: patience) { [self] in
      isImpatient = true
      wakeListener()
    }
    defer { timer.cancel() }
    isImpatient = false
    while !condition(), !isImpatient {
      unsafe await withUnsafeContinuation { continuation in unsafe listener = continuation }
    }
  }

  private func wakeListener() {
    unsafe listener?.resume()
    unsafe listener = nil
    onProgress?()
  }

  /// Ends the wait of whoever reads the app's connection beside this leg, if somebody does now, as progress would.
  func interruptReader() {
    loop.preconditionOnLoop()
    onProgress?()
  }

  // MARK: The handshake

  private func run(_ first: ProbeHandshake.Step) async {
    result = await shakeHands(first)
    heardAt = heardAt ?? loop.now
    wakeListener()
    if leavesEarly { leave() } else { Task(executorPreference: loop) { await self.readOn() } }
  }

  /// Reads what comes behind the handshake, as the app's connection is read, and minds the same things: an attacker sees by
  /// the window what lies unread (RFC 9293 §3.8.6), and by what Pinfold does next whether an end went unnoticed.
  private func readOn() async {
    do {
      while !hasLeft {
        guard let bytes = try await receive() else { continue }
        guard !bytes.isEmpty else { return spoil("connection closed before the verdict") }
        guard received <= WireLimits.heldFlight else { return spoil("more bytes than may be held") }
      }
    } catch {
      if error != .timedOut { spoil(error.text) }
    }
  }

  /// What was found counts no more.
  private func spoil(_ detail: String) {
    guard !hasLeft else { return }
    if case .failed = result { return }
    result = .failed(.probeFailed, "probe: \(detail)")
    wakeListener()
  }

  private func shakeHands(_ first: ProbeHandshake.Step) async -> Outcome {
    var next = first
    do {
      while true {
        switch next {
        case .finished(let seen, let farewell):
          self.farewell = farewell
          return .finished(seen)
        case .failed(let reason, let detail, let farewell):
          self.farewell = farewell
          return .failed(reason, "probe: \(detail)")
        case .resumed(let detail, let farewell):
          self.farewell = farewell
          return .resumed("probe: \(detail)")
        case .send(let bytes):
          try await socket.send(bytes, deadline: deadline)
          next = .needMore
        case .retry:
          next = try await stepBehindRetry()
        case .needMore where mayJudge && !isJudging:
          isJudging = true
          next = handshake.judge()
        case .needMore:
          guard let bytes = try await receive() else { continue }
          if heardAt == nil {
            heardAt = loop.now
            wakeListener()
          }
          // Counted from the first byte, as on the app's connection.
          guard received <= WireLimits.heldFlight else {
            return .failed(.probeFailed, "probe: more bytes than may be held")
          }
          let wasAnswered = handshake.isAnswered
          next = handshake.receive(bytes)
          if !wasAnswered, handshake.isAnswered { wakeListener() }
        }
      }
    } catch {
      return .failed(Self.reason(error), "probe: \(error.text)")
    }
  }

  /// Reads on until it is clear what becomes of the second hello, unless the leg was told to hold still.
  private func stepBehindRetry() async throws(IOError) -> ProbeHandshake.Step {
    hasRetried = true
    guard !isWithoutHello else {
      wakeListener()
      return handshake.secondHello(nil)
    }
    isAwaitingHello = true
    defer { isAwaitingHello = false }
    wakeListener()
    while answer == nil {
      if isStill {
        unsafe await withUnsafeContinuation { continuation in unsafe retry = continuation }
        continue
      }
      guard let bytes = try await receive() else { continue }
      guard received <= WireLimits.heldFlight else {
        return .failed(.probeFailed, "more bytes than may be held", farewell: [])
      }
      let step = handshake.receive(bytes)
      if case .needMore = step { continue }
      return step
    }
    return answer ?? .needMore
  }

  /// The upstream's next bytes, counted; `nil` when the wait for them was interrupted, or nothing had come after all.
  private func receive() async throws(IOError) -> [UInt8]? {
    isReading = true
    defer { isReading = false }
    do {
      let bytes =
        if isHeld {
          try await socket.receive(
            max: Inspection.readSize, deadline: deadline, after: Inspection.pauseBeforeReading(),
            unless: { isStill && awaitsAnswer })
        } else {
          try await socket.receive(max: Inspection.readSize, deadline: deadline)
        }
      received += bytes?.count ?? 0
      return bytes
    } catch {
      guard error == .timedOut, loop.now < deadline else { throw error }
      return nil
    }
  }

  private static func reason(_ error: IOError) -> Reason {
    switch error {
    case .cancelled, .descriptorsExhausted: .limitReached
    default: .probeFailed
    }
  }
}
