import PinfoldModel
import Synchronization

/// A time that has passed for certain. All rules of a process share it: it rises under those in force, whoever holds them,
/// and never falls.
final class ClockFloor: Sendable {
  private let seconds = Atomic<Int64>(0)

  var time: Timestamp { Timestamp(seconds: seconds.load(ordering: .relaxed)) }

  func rise(to time: Timestamp) { seconds.max(time.seconds, ordering: .relaxed) }
}
