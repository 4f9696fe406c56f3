import PinfoldLoop
import PinfoldModel
import PinfoldTLS
import Synchronization

/// The secrets that applications log, and the tunnels that wait for one.
///
/// Lines come in on one worker's loop; tunnels ask on their own. What nobody asks for is zeroed after a while.
final class KeyLog: Sendable {
  /// Permissions of the pipe: everybody may write into it, its owner alone may read.
  static let pipeMode: UInt32 = 0o622

  private struct State {
    var reader = KeyLogReader()
    var table = KeyLogTable()
    var waiters: [[UInt8]: @Sendable () -> Void] = [:]
    /// Whether what is written stays in the pipe for now.
    var isResting = false
    /// Has the pipe read again; from any thread.
    var demand: (@Sendable () -> Void)?
  }

  private let state = Mutex(State())

  /// Names who is called, from any thread, when a tunnel waits while the pipe rests.
  func readOnDemand(_ demand: @escaping @Sendable () -> Void) {
    state.withLock { $0.demand = demand }
  }

  /// Takes what was written into the pipe, zeroing it, and wakes whoever waits for it. Answers whether the pipe rests
  /// from now on, since nobody waits any more; it does only where it may.
  @discardableResult
  func receive(_ bytes: inout [UInt8], mayRest: Bool = false) -> Bool {
    let (woken, rests) = state.withLock { state in
      var woken: [@Sendable () -> Void] = []
      for line in state.reader.receive(&bytes) {
        state.table.insert(line, now: .now)
        if let waiter = state.waiters.removeValue(forKey: line.clientRandom) { woken.append(waiter) }
      }
      state.isResting = mayRest && state.waiters.isEmpty && state.demand != nil
      return (woken, state.isResting)
    }
    for wake in woken { wake() }
    return rests
  }

  /// The pipe is read again though nobody waits.
  func endRest() {
    state.withLock { $0.isResting = false }
  }

  /// Drops what waited too long.
  func expire() {
    state.withLock { $0.table.expire(now: .now) }
  }

  /// What was logged for this handshake of `client`, waiting until `deadline` for a first line; empty when none came or
  /// the client left. Whoever asks owns the secrets from here on.
  func secrets(
    for clientRandom: [UInt8], of client: StreamSocket? = nil, on loop: EventLoop, until deadline: Deadline
  ) async -> [SecretBytes] {
    let waiter = LoopWaiter<Void>(loop: loop)
    let found = secrets(for: clientRandom) { waiter.wake(()) }
    guard found.isEmpty else { return found }
    _ = await waiter.wait(until: deadline, for: client)
    forget(clientRandom)
    return state.withLock { $0.table.take(clientRandom, now: .now) }
  }

  /// What was logged for this handshake so far. While that is nothing `wake` is called for the next line, once, from any
  /// thread, until the handshake is forgotten.
  func secrets(for clientRandom: [UInt8], orCall wake: @escaping @Sendable () -> Void) -> [SecretBytes] {
    let (found, demand) = state.withLock { state -> ([SecretBytes], (@Sendable () -> Void)?) in
      let found = state.table.take(clientRandom, now: .now)
      guard found.isEmpty else { return (found, nil) }
      state.waiters[clientRandom] = wake
      guard state.isResting else { return (found, nil) }
      state.isResting = false
      return (found, state.demand)
    }
    demand?()
    return found
  }

  /// Nobody waits for a line of this handshake any more.
  func forget(_ clientRandom: [UInt8]) {
    state.withLock { $0.waiters[clientRandom] = nil }
  }
}
