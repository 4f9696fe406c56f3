import FoundationEssentials
import Glibc
import PinfoldLoop
import PinfoldTelemetry

/// The process's own figures, as the `process_*` metrics of every Prometheus client library show them.
enum ProcessFigures {
  /// Reads them from getrusage(2) and /proc/self (proc(5)); `nil` where /proc cannot be read.
  static func sample(startSeconds: Double) -> ProcessSample? {
    var usage = rusage()
    guard unsafe getrusage(RUSAGE_SELF.rawValue, &usage) == 0, let pages = memoryPages(),
      let open = Descriptors.openCount
    else { return nil }
    let pageSize = UInt64(clamping: sysconf(Int32(_SC_PAGESIZE)))
    return ProcessSample(
      cpuSeconds: seconds(usage.ru_utime) + seconds(usage.ru_stime), residentBytes: pages.resident * pageSize,
      virtualBytes: pages.total * pageSize, openDescriptors: UInt64(clamping: open),
      maxDescriptors: UInt64(clamping: Descriptors.limit), startSeconds: startSeconds)
  }

  private static func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }

  /// The first two numbers of /proc/self/statm: total and resident pages.
  private static func memoryPages() -> (total: UInt64, resident: UInt64)? {
    guard let contents = FileManager.default.contents(atPath: "/proc/self/statm") else { return nil }
    let numbers = String(decoding: contents, as: UTF8.self).split(separator: " ").prefix(2).compactMap { UInt64($0) }
    return numbers.count == 2 ? (numbers[0], numbers[1]) : nil
  }
}
