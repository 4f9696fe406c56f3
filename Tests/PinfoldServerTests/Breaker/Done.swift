import Glibc
import Synchronization

/// Tells one thread that another has come to a point.
final class Done: Sendable {
  private let isTold = Atomic<Bool>(false)

  func tell() { isTold.store(true, ordering: .releasing) }

  /// Waits, looking every millisecond.
  func wait() {
    while !isTold.load(ordering: .acquiring) { usleep(1000) }
  }
}
