import Synchronization

/// How many connections of clients there are over all workers, and of which kind.
final class TunnelCount: Sendable {
  /// All of them, and while a drain begins the workers that still listen.
  let connections = SharedCount()
  /// Those of clients that were let in: what `limits.tunnels` bounds.
  let tunnels = SharedCount()
  /// Those whose head has not been read.
  let newcomers = SharedCount()
  /// Those from addresses outside `access.clients`.
  let strangers = SharedCount()
}

/// A number that any thread may change.
struct SharedCount: ~Copyable, Sendable {
  private let number = Atomic<Int>(0)

  func enter() { number.add(1, ordering: .relaxed) }
  func leave() { number.subtract(1, ordering: .relaxed) }

  /// How many there are now.
  var now: Int { number.load(ordering: .relaxed) }
}

/// What a connection counts as, besides being one.
enum TunnelPlace: Sendable {
  /// Nothing: its head was read, and it is not let in yet or no more.
  case none
  /// Its head has not been read; the ticket at its worker's `Newcomers`.
  case newcomer(UInt64)
  /// Its address is none of `access.clients`.
  case stranger
  /// A tunnel of `limits.tunnels`.
  case tunnel
}
