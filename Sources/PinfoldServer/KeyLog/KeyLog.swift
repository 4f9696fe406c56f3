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
    var waiters: [[UInt8]: LoopWaiter<Void>] = [:]
  }

  private let state = Mutex(State())

  /// Takes what was written into the pipe, zeroing it, and wakes whoever waits for it.
  func receive(_ bytes: inout [UInt8]) {
    let woken = state.withLock { state in
      var woken: [LoopWaiter<Void>] = []
      for line in state.reader.receive(&bytes) {
        state.table.insert(line, now: .now)
        if let waiter = state.waiters.removeValue(forKey: line.clientRandom) { woken.append(waiter) }
      }
      return woken
    }
    for waiter in woken { waiter.wake(()) }
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
    let found = state.withLock { state in
      let found = state.table.take(clientRandom, now: .now)
      if found.isEmpty { state.waiters[clientRandom] = waiter }
      return found
    }
    guard found.isEmpty else { return found }
    _ = await waiter.wait(until: deadline, for: client)
    return state.withLock { state in
      state.waiters[clientRandom] = nil
      return state.table.take(clientRandom, now: .now)
    }
  }
}
