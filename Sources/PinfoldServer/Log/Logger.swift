package import PinfoldConfig
package import PinfoldLoop
package import PinfoldTelemetry
import Synchronization

/// Writes log lines to standard error from a thread of its own, so that a reader that stalls never stalls a tunnel.
///
/// Lines wait in a bounded buffer; those that find it full are dropped, as are those that standard error does not take, and
/// a line behind the next one written says how many.
package final class Logger: Sendable {
  /// Bytes that may wait to be written: some thousands of lines.
  private static let capacity = 1 << 20
  /// How long the end of the process waits for standard error's reader to take what is left.
  private static let patience = Duration.seconds(2)

  private struct State {
    var waiting: [UInt8] = []
    /// Lines that nobody will read, and of which nobody was told.
    var dropped = 0
    var isScheduled = false
    /// Whether what went out ends inside a line.
    var isTorn = false

    mutating func take() -> (bytes: [UInt8], dropped: Int) {
      defer {
        waiting = []
        dropped = 0
        isScheduled = false
      }
      return (waiting, dropped)
    }
  }

  private let state = Mutex(State())
  private let level: Atomic<UInt8>
  private let format: LineFormat
  private let thread: LoopThread
  /// Takes bytes, and answers how many of them.
  private let sink: @Sendable ([UInt8]) -> Int

  /// A log for standard error.
  /// - Throws: when no thread can be had.
  package convenience init(level: Severity, format: LineFormat) throws(IOError) {
    try self.init(level: level, format: format) { StandardError.write($0) }
  }

  init(level: Severity, format: LineFormat, to sink: @escaping @Sendable ([UInt8]) -> Int) throws(IOError) {
    self.level = Atomic(level.number)
    self.format = format
    self.sink = sink
    thread = try LoopThread(name: "log", loop: try EventLoop())
  }

  /// Whether lines of this level are written. Ask before a line is put together on a busy path.
  package func takes(_ level: Severity) -> Bool { level.number >= self.level.load(ordering: .relaxed) }

  /// Lines below this level are not written from now on.
  package func setLevel(_ level: Severity) { self.level.store(level.number, ordering: .relaxed) }

  /// Writes a line if its level is taken.
  package func write(_ event: LogEvent) {
    guard takes(event.level) else { return }
    append(event.render(format, at: .now))
  }

  /// Writes a line put together from a constant message and fields, if its level is taken.
  package func write(_ level: Severity, _ message: StaticString, _ fields: [LogEvent.Field] = []) {
    write(LogEvent(level, message, fields))
  }

  private func append(_ line: [UInt8]) {
    let mustSchedule = state.withLock { state in
      guard state.waiting.count + line.count <= Self.capacity else {
        state.dropped += 1
        return false
      }
      state.waiting.append(contentsOf: line)
      defer { state.isScheduled = true }
      return !state.isScheduled
    }
    if mustSchedule { thread.loop.execute { [self] in flush() } }
  }

  /// Writes what is waiting. Runs on the logger's own thread.
  private func flush() {
    let (bytes, dropped) = state.withLock { $0.take() }
    let lost = dropped + put(bytes)
    guard lost > 0 else { return }
    let event = LogEvent(.warning, "log lines were dropped", [.init("count", .integer(Int64(lost)))])
    if put(event.render(format, at: .now)) > 0 { state.withLock { $0.dropped += lost } }
  }

  /// Writes whole lines, and answers how many of them did not go out. Behind one that was torn, as by a full disk, they
  /// begin a new line.
  private func put(_ lines: [UInt8]) -> Int {
    let lead: [UInt8] = state.withLock { $0.isTorn } ? [0x0a] : []
    let bytes = lead + lines
    let count = sink(bytes)
    if count > 0 { state.withLock { $0.isTorn = bytes[count - 1] != 0x0a } }
    return bytes[max(count, lead.count)...].count { $0 == 0x0a }
  }

  /// Writes what is waiting and ends the thread. To be called once, at the very end.
  ///
  /// The logger's thread alone writes, also now: a reader that stalled may hold it for ever, and the process is to end
  /// all the same, without the lines that nobody took.
  package func finish() {
    thread.stop(after: { [self] in flush() }, patience: Self.patience)
  }
}

extension Severity {
  fileprivate var number: UInt8 {
    switch self {
    case .debug: 0
    case .info: 1
    case .warning: 2
    case .error: 3
    }
  }
}

extension Severity {
  /// The level of the configuration.
  package init(_ level: LogSection.Level) {
    self = Self(rawValue: level.rawValue) ?? .info
  }
}

extension LineFormat {
  /// The format of the configuration; `auto` is text for a person and JSON for everything else.
  package init(_ format: LogSection.Format) {
    switch format {
    case .json: self = .json
    case .text: self = .text
    case .auto: self = StandardError.isTerminal ? .text : .json
    }
  }
}
