import Synchronization

/// Open tunnels over all workers, those included that are still sending their head.
final class TunnelCount: Sendable {
  private let open = Atomic<Int>(0)

  func enter() { open.add(1, ordering: .relaxed) }
  func leave() { open.subtract(1, ordering: .relaxed) }

  /// How many there are now.
  var count: Int { open.load(ordering: .relaxed) }
}
