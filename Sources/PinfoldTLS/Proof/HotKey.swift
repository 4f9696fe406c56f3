import Synchronization

/// Decides when a key is met often enough to deserve a `P256Verifier`, and holds it.
///
/// The table is made once, on a thread of the system's pool, while verifications go on without it. At most
/// `tableLimit` tables exist in the process.
final class HotKey: Sendable {
  /// Verifications by a key before its table is made. A table costs as much as some 450 verifications save, but is made
  /// once per key, 1.3 s of CPU in the process's life at most; and a proxy beside one program sees few keys, all day.
  static let threshold = 32
  /// Most tables at once: 5 MB of memory.
  static let tableLimit = 32

  private static let tables = Atomic(0)

  private enum State {
    case counting(Int)
    case making
    case ready(P256Verifier)
    case never
  }

  private let state = Mutex(State.counting(0))

  deinit {
    if state.withLock({ if case .ready = $0 { true } else { false } }) {
      Self.tables.subtract(1, ordering: .relaxed)
    }
  }

  /// The verifier, once there is one. Each call counts as one use.
  func verifier(for key: LeafKey) -> P256Verifier? {
    let (verifier, isDue) = state.withLock { state -> (P256Verifier?, Bool) in
      switch state {
      case .ready(let verifier): return (verifier, false)
      case .making, .never: return (nil, false)
      case .counting(let uses):
        state = uses + 1 < Self.threshold ? .counting(uses + 1) : .making
        return (nil, uses + 1 >= Self.threshold)
      }
    }
    if isDue { Task.detached(priority: .background) { self.make(key) } }
    return verifier
  }

  /// Makes the table now. Without room or means for it the key stays with EVP for good.
  func make(_ key: LeafKey) {
    let before = Self.tables.add(1, ordering: .relaxed).oldValue
    if before < Self.tableLimit, let verifier = P256Verifier(key) {
      state.withLock { $0 = .ready(verifier) }
    } else {
      Self.tables.subtract(1, ordering: .relaxed)
      state.withLock { $0 = .never }
    }
  }
}
