import Glibc
import PinfoldModel

/// The system's idea of now.
enum WallClock {
  /// Whole seconds of UTC, time(2).
  static var now: Timestamp { Timestamp(seconds: Int64(time(nil))) }
}
