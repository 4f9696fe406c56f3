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

  /// How far the upstream has come on this connection when the other one is asked for a second hello.
  enum Standing {
    /// It asks for a second hello here too, or the handshake needs none from the app.
    case ready
    /// It has not said a word.
    case silent
    /// It went through the whole handshake without one.
    case different
  }

  private let loop: EventLoop
  let handshake: ProbeHandshake
  private let deadline: Deadline
  /// The connection the probe goes over; the lot may exchange it for the app's before anything was sent.
  var socket: StreamSocket
  /// How the handshake ended; `nil` while it goes on.
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
  /// Called when the first word came, a second hello is asked for, or the handshake is over.
  var onProgress: (() -> Void)?
  private var farewell: [UInt8] = []
  private var listener: UnsafeContinuation<Void, Never>?
  /// Waits for what to do with the second hello.
  private var retry: UnsafeContinuation<ProbeHandshake.Step, Never>?
  /// The second hello, made but not sent.
  private var prepared: ProbeHandshake.Step?
  private var work: Task<Outcome, Never>?

  init(
    _ handshake: ProbeHandshake, over socket: StreamSocket, loop: EventLoop, deadline: Deadline, leavesEarly: Bool
  ) {
    self.leavesEarly = leavesEarly
    self.handshake = handshake
    self.socket = socket
    self.loop = loop
    self.deadline = deadline
  }

  /// Whether the handshake is over.
  var isOver: Bool { result != nil }

  /// The label of metrics and lines.
  var kind: ProbeKind { handshake.kind }

  /// Sends the probe's ClientHello, the first or the one that was prepared, and goes on by itself from there. Without
  /// one to send nothing happens.
  func sendHello() {
    loop.preconditionOnLoop()
    if work == nil {
      let next = sendNow(handshake.start())
      work = Task(executorPreference: loop) { await self.run(next) }
    } else if let step = prepared {
      prepared = nil
      goOn(with: sendNow(step))
    }
  }

  /// Makes the probe's second hello out of the app's, after a HelloRetryRequest on both connections.
  func prepare(_ hello: ClientHello) {
    loop.preconditionOnLoop()
    guard unsafe retry != nil, prepared == nil else { return }
    prepared = handshake.secondHello(hello)
  }

  /// The hello leaves now, in the order that was drawn; what the socket does not take yet is sent by the task.
  private func sendNow(_ step: ProbeHandshake.Step) -> ProbeHandshake.Step {
    guard case .send(let hello) = step, let sent = try? socket.trySend(hello.span) else { return step }
    return sent == hello.count ? .needMore : .send(Array(hello[sent...]))
  }

  /// Waits for the end. A leg on which nothing at all is heard for `patience` from now on is stalled; it stays open, so
  /// that both connections of a pair can end alike.
  func outcome(patience: Duration) async -> Outcome {
    loop.preconditionOnLoop()
    if work == nil { sendHello() }
    giveUpRetry()
    guard let work else { return .failed(.internalError, "probe: not started") }
    guard await isServed(patience: patience) else { return .stalled }
    return await work.value
  }

  /// Whether the upstream serves this connection beside the app's: waits `patience` for its first word.
  func isServed(patience: Duration) async -> Bool {
    loop.preconditionOnLoop()
    await listen(for: patience) { self.heardAt != nil }
    return heardAt != nil
  }

  /// Waits until it is clear what the upstream wants here, when it wants a second hello on the app's connection:
  /// `patience` for its first word, and the handshake's deadline for the rest.
  func standing(patience: Duration) async -> Standing {
    guard await isServed(patience: patience) else { return .silent }
    guard case .twin = handshake else { return .ready }
    await listen(for: deadline.duration(since: loop.now)) { self.hasRetried || self.isOver }
    // One that failed refuses the tunnel later, whatever the app's connection comes to.
    if case .finished = result { return .different }
    return .ready
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
    farewell = []
    socket.abort()
    giveUpRetry()
  }

  /// No second hello will come any more: the app's handshake needs none, or is over.
  func giveUpRetry() {
    isWithoutHello = true
    if unsafe retry != nil { goOn(with: handshake.secondHello(nil)) }
  }

  private func goOn(with step: ProbeHandshake.Step) {
    unsafe retry?.resume(returning: step)
    unsafe retry = nil
  }

  private func leave() {
    _ = try? socket.trySend(farewell.span)
    farewell = []
    socket.close()
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

  private func run(_ first: ProbeHandshake.Step) async -> Outcome {
    let outcome = await shakeHands(first)
    result = outcome
    heardAt = heardAt ?? loop.now
    wakeListener()
    if leavesEarly { leave() }
    return outcome
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
          next = await stepBehindRetry()
        case .needMore:
          let bytes = try await socket.receive(max: Inspection.readSize, deadline: deadline)
          if heardAt == nil {
            heardAt = loop.now
            wakeListener()
          }
          next = handshake.receive(bytes)
        }
      }
    } catch {
      return .failed(Self.reason(error), "probe: \(error.text)")
    }
  }

  private func stepBehindRetry() async -> ProbeHandshake.Step {
    hasRetried = true
    wakeListener()
    guard !isWithoutHello else { return handshake.secondHello(nil) }
    return unsafe await withUnsafeContinuation { continuation in unsafe retry = continuation }
  }

  private static func reason(_ error: IOError) -> Reason {
    switch error {
    case .cancelled, .descriptorsExhausted: .limitReached
    default: .probeFailed
    }
  }
}
