import PinfoldLoop
import PinfoldModel
import PinfoldTLS

/// A second connection to the upstream's very address, and Pinfold's own handshake on it, running beside the app's.
///
/// It proves whose key the *endpoint* has, not whose key the app's connection has: an attacker who does not know which
/// of the two is watched has to leave both alone or be caught on half of all tries.
///
/// `@unchecked Sendable`: touched on its loop's thread only, which every door checks.
@safe
final class ProbeLeg: @unchecked Sendable {
  /// How a probe ended.
  enum Outcome: Sendable {
    /// The peer finished a handshake: it owns the key of these certificates.
    case finished(ProbeResult)
    /// The upstream never said a word on this connection, although it answered on the other.
    case stalled
    case failed(Reason, String)
  }

  private let loop: EventLoop
  private let session: ProbeSession
  private let deadline: Deadline
  /// The connection the probe goes over; the lot may exchange it for the app's before anything was sent.
  var socket: StreamSocket
  private var hasHeard = false
  private var isStalled = false
  private var isOver = false
  private var listener: UnsafeContinuation<Void, Never>?
  private var work: Task<Outcome, Never>?

  init(_ session: ProbeSession, over socket: StreamSocket, loop: EventLoop, deadline: Deadline) {
    self.session = session
    self.socket = socket
    self.loop = loop
    self.deadline = deadline
  }

  /// Sends the probe's ClientHello, and goes on by itself from there.
  func start() {
    loop.preconditionOnLoop()
    guard work == nil else { return }
    let first = session.start()
    // The hello leaves now, in the order the lot has drawn; what the socket does not take yet is sent by the task.
    var rest = first
    if case .send(let hello) = first, (try? socket.trySend(hello.span)) == hello.count { rest = .needMore }
    work = Task(executorPreference: loop) { await self.run(rest) }
  }

  /// Waits for the end. A leg on which nothing at all is heard for `patience` from now on is given up as stalled.
  func outcome(patience: Duration) async -> Outcome {
    loop.preconditionOnLoop()
    start()
    guard let work else { return .failed(.internalError, "probe: not started") }
    let timer = LoopTimer(loop: loop, after: patience) { [self] in
      guard !hasHeard else { return }
      isStalled = true
      socket.close()
    }
    defer { timer.cancel() }
    return await work.value
  }

  /// Whether the upstream says anything on this connection within `patience`; at once if it has, or if the leg is over.
  func isHeard(within patience: Duration) async -> Bool {
    loop.preconditionOnLoop()
    guard !hasHeard, !isOver else { return true }
    let timer = LoopTimer(loop: loop, after: patience) { [self] in wakeListener() }
    defer { timer.cancel() }
    unsafe await withUnsafeContinuation { continuation in unsafe listener = continuation }
    return hasHeard || isOver
  }

  private func wakeListener() {
    unsafe listener?.resume()
    unsafe listener = nil
  }

  /// Closes the connection; may be called again.
  func abandon() {
    loop.preconditionOnLoop()
    socket.close()
  }

  private func run(_ first: ProbeStep) async -> Outcome {
    defer {
      isOver = true
      wakeListener()
      abandon()
    }
    var next = first
    do {
      while true {
        switch next {
        case .finished(let result, let farewell):
          _ = try? socket.trySend(farewell.span)
          return .finished(result)
        case .failed(let detail, let farewell):
          _ = try? socket.trySend(farewell.span)
          return .failed(.probeFailed, "probe: \(detail)")
        case .send(let bytes):
          try await socket.send(bytes, deadline: deadline)
          next = .needMore
        case .needMore:
          let bytes = try await socket.receive(max: Inspection.readSize, deadline: deadline)
          hasHeard = true
          wakeListener()
          next = bytes.isEmpty ? session.receiveEnd() : session.receive(bytes)
        }
      }
    } catch {
      return isStalled ? .stalled : .failed(Self.reason(error), "probe: \(error.text)")
    }
  }

  private static func reason(_ error: IOError) -> Reason {
    switch error {
    case .cancelled, .descriptorsExhausted: .limitReached
    default: .probeFailed
    }
  }
}
