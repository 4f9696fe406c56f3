import FoundationEssentials
import PinfoldModel
import PinfoldTelemetry

extension Timestamp {
  /// The time of day, as certificates and policies count it.
  static var now: Timestamp { Timestamp(seconds: Int64(Date().timeIntervalSince1970.rounded(.down))) }
}

extension LogTime {
  static var now: LogTime { LogTime(milliseconds: Int64((Date().timeIntervalSince1970 * 1000).rounded(.down))) }
}
