import PinfoldLoop
import PinfoldModel
import PinfoldTelemetry
import Synchronization
import Testing

@testable import PinfoldServer

/// When files of the audit are old enough to go.
@Suite struct AuditRetentionTests {
  private static let day: Int64 = 86_400

  private static func moment(_ seconds: Int64) -> Deadline {
    Deadline(nanoseconds: 1 + UInt64(seconds) * 1_000_000_000)
  }

  /// The days of 5, 8 and 10 whose files are left when three are kept, after looks every minute at a clock that shows so
  /// many seconds behind the start of day 10.
  private static func left(after seconds: Int64, clock: (Int64) -> Int64) throws -> [Int64] {
    let place = try AuditPlace()
    let days: [Int64] = [5, 8, 10]
    for day in days { try place.put("x\n", day) }
    let desk = AuditDesk(loop: try EventLoop(), disk: AuditDisk())
    desk.use(place.name)
    for second in stride(from: 0, through: seconds, by: 60) {
      let purge = desk.purge(at: Timestamp(seconds: 10 * day + clock(second)), moment(second), retention: 3)
      #expect(purge.problems.isEmpty)
    }
    return days.filter { place.names.contains(place.name.name(on: $0)) }
  }

  @Test func `what is too old goes when the clock has been right for ten minutes, and then day by day`() throws {
    #expect(try Self.left(after: 540) { $0 } == [5, 8, 10])
    #expect(try Self.left(after: 600) { $0 } == [8, 10])
    #expect(try Self.left(after: 2 * Self.day + 1200) { $0 } == [10])
  }

  @Test(arguments: [0, 60, 1200])
  func `a clock that is ahead for less removes nothing, at the start neither`(begin: Int64) throws {
    let left = try Self.left(after: 3600) { second in
      (begin..<begin + 540).contains(second) ? second + 100 * Self.day : second
    }
    #expect(left == [8, 10])
  }

  /// Would catch a time that counts on although it turned out to be wrong.
  @Test func `a clock that was set right counts again`() throws {
    let place = try AuditPlace()
    let desk = AuditDesk(loop: try EventLoop(), disk: AuditDisk())
    desk.use(place.name)
    for second in stride(from: Int64(0), through: 6000, by: 60) {
      let ahead = second < 3000 ? 100 * Self.day : 0
      let now = Timestamp(seconds: 10 * Self.day + second + ahead)
      if second == 5000 - 5000 % 60 {
        try place.put("x\n", 10)
        // Whoever moved the file away.
        desk.use(place.name)
      }
      _ = desk.purge(at: now, Self.moment(second), retention: 3)
    }
    #expect(place.names == [place.name.name(on: 10)])
  }

  @Test func `settings that keep less count at once, when the time is known`() throws {
    let place = try AuditPlace()
    for day in [5, 8] as [Int64] { try place.put("x\n", day) }
    let clocks = Clocks()
    func settings(_ retention: Int) -> AuditSettings {
      AuditSettings(file: place.name, retentionDays: retention, clients: .address)
    }
    let trail = try AuditTrail(
      settings(3), log: Logger(level: .error, format: .json),
      clock: { LogTime(milliseconds: 10 * Self.day * 1000) }, moment: { Self.moment(clocks.seconds) })
    let loop = try EventLoop()
    loop.spawn {
      await trail.commit(AuditRecord(.start), on: loop)
      clocks.seconds = 601
      trail.reopen()
      await trail.commit(AuditRecord(.stop), on: loop)
      loop.stop()
    }
    loop.run()
    #expect(place.names == [8, 10].map { place.name.name(on: $0) })
    trail.use(settings(1))
    trail.finish()
    #expect(place.names == [place.name.name(on: 10)])
  }

  private final class Clocks: Sendable {
    private let state = Mutex<Int64>(0)
    var seconds: Int64 {
      get { state.withLock { $0 } }
      set { state.withLock { $0 = newValue } }
    }
  }
}
