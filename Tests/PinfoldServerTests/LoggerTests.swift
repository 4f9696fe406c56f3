import PinfoldTelemetry
import Synchronization
import Testing

@testable import PinfoldServer

/// A standard error that takes so many bytes, and then no more until there is room again.
private final class Sink: Sendable {
  private let state = Mutex<(room: Int, taken: [UInt8], calls: Int)>((.max, [], 0))

  func room(_ count: Int) { state.withLock { $0.room = count } }
  var text: String { String(decoding: state.withLock { $0.taken }, as: UTF8.self) }

  func write(_ bytes: [UInt8]) -> Int {
    state.withLock { state in
      let count = min(state.room, bytes.count)
      state.taken += bytes.prefix(count)
      if state.room != .max { state.room -= count }
      state.calls += 1
      return count
    }
  }

  /// Waits until it was written to so many times.
  func waitForCalls(_ count: Int) async throws {
    for _ in 0..<2000 where state.withLock({ $0.calls < count }) { try await Task.sleep(for: .milliseconds(5)) }
  }
}

@Suite struct LoggerTests {
  /// Would catch lines that a full disk swallows, of which nobody ever hears, and the next one glued to a torn one.
  @Test("What standard error does not take is counted, and the next line is whole") func full() async throws {
    let sink = Sink()
    let logger = try Logger(level: .info, format: .json, to: sink.write)
    func say(_ number: Int64) { logger.write(.info, "line", [.init("n", .integer(number))]) }
    say(1)
    try await sink.waitForCalls(1)
    sink.room(10)
    // Each is written, and then that it was lost, for neither of which there is room.
    say(2)
    try await sink.waitForCalls(3)
    say(3)
    try await sink.waitForCalls(5)
    sink.room(.max)
    say(4)
    logger.finish()
    let lines = sink.text.split(separator: "\n")
    try #require(lines.count == 4, "\(lines)")
    #expect(lines[0].hasSuffix("\"n\":1}") && lines[1].utf8.count == 10 && lines[2].hasSuffix("\"n\":4}"), "\(lines)")
    #expect(lines[3].contains("log lines were dropped") && lines[3].contains("\"count\":2"), "\(lines)")
  }
}
