import PinfoldLoop
import PinfoldModel
import Synchronization

/// Pins of hosts that are dialled when somebody asks, and remembered for a while. However many ask for a host at once, it
/// is dialled once.
final class DialledPins: PinLookUp {
  typealias Answer = Result<HostPins, PinLookUpFailure>

  /// Hosts that are dialled at a time; who asks for one more is sent away.
  static let flightLimit = 64
  /// Hosts that are remembered.
  static let memoryLimit = 4096
  /// How long a failure is remembered, so that askers do not make us knock without end.
  static let failurePause = Duration.seconds(5)

  private struct State {
    var known: [HostName: (answer: Answer, until: Deadline)] = [:]
    var waiting: [HostName: [CheckedContinuation<Answer, Never>]] = [:]
  }

  private enum Step {
    case answer(Answer)
    case wait
    case dial
  }

  private let loop: EventLoop
  private let lifetime: Duration
  private let now: @Sendable () -> Timestamp
  private let dial: @Sendable (HostName) async -> Answer
  private let state = Mutex(State())

  /// - Parameters:
  ///   - lifetime: how long pins are remembered, at most: not beyond the end of their chain.
  ///   - dial: finds the pins of a host, in bounded time; runs on the loop's thread.
  init(
    loop: EventLoop, lifetime: Duration, now: @escaping @Sendable () -> Timestamp = { WallClock.now },
    dial: @escaping @Sendable (HostName) async -> Answer
  ) {
    self.loop = loop
    self.lifetime = lifetime
    self.now = now
    self.dial = dial
  }

  func pins(of host: HostName) async -> Answer {
    await withCheckedContinuation { continuation in
      switch step(host, continuation) {
      case .answer(let answer): continuation.resume(returning: answer)
      case .wait: break
      case .dial: loop.spawn { await self.finish(host, self.dial(host)) }
      }
    }
  }

  private func step(_ host: HostName, _ continuation: CheckedContinuation<Answer, Never>) -> Step {
    state.withLock { state in
      if let known = state.known[host], Deadline.now < known.until, isGood(known.answer) {
        return .answer(known.answer)
      }
      if state.waiting[host]?.append(continuation) != nil { return .wait }
      guard state.waiting.count < Self.flightLimit else { return .answer(.failure(.busy)) }
      state.waiting[host] = [continuation]
      return .dial
    }
  }

  private func isGood(_ answer: Answer) -> Bool {
    guard case .success(let pins) = answer, let end = pins.validUntil else { return true }
    return now() < end
  }

  private func finish(_ host: HostName, _ answer: Answer) {
    let isGood = if case .success = answer { true } else { false }
    let waiting = state.withLock { state in
      if state.known.count >= Self.memoryLimit {
        let now = Deadline.now
        state.known = state.known.filter { now < $0.value.until }
        if state.known.count >= Self.memoryLimit { state.known.removeAll() }
      }
      state.known[host] = (answer, Deadline.now.advanced(by: isGood ? lifetime : Self.failurePause))
      return state.waiting.removeValue(forKey: host) ?? []
    }
    for continuation in waiting { continuation.resume(returning: answer) }
  }
}
