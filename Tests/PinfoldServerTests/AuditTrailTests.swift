import Foundation
import Glibc
import PinfoldConfig
import PinfoldCrypto
import PinfoldLoop
import PinfoldModel
import PinfoldTelemetry
import Synchronization
import Testing

@testable import PinfoldServer

@Suite struct AuditTrailTests {
  private static func record(_ number: Int, durable: Bool = true) -> AuditRecord {
    AuditRecord(.tunnel, [.init("n", .integer(Int64(number)))], isDurable: durable)
  }

  private static func settings(_ place: AuditPlace, retention: Int = 90) -> AuditSettings {
    AuditSettings(file: place.name, retentionDays: retention, clients: .address)
  }

  /// Runs `body` as a task on a loop of its own, as tunnels run.
  private static func onLoop(_ body: @escaping @Sendable (EventLoop) async -> Void) throws -> Duration {
    let loop = try EventLoop()
    let start = ContinuousClock.now
    loop.spawn {
      await body(loop)
      loop.stop()
    }
    loop.run()
    return ContinuousClock.now - start
  }

  private static func log() throws -> Logger { try Logger(level: .error, format: .json) }
  private static let noon: @Sendable () -> LogTime = { LogTime(milliseconds: 10 * 86_400_000 + 43_200_000) }

  @Test("A committed record is in the file when the wait ends") func commits() throws {
    let place = try AuditPlace()
    let trail = try AuditTrail(Self.settings(place), log: Self.log(), clock: Self.noon)
    _ = try Self.onLoop { loop in
      for number in 0..<50 {
        let isThere = await trail.commit(Self.record(number), on: loop)
        #expect(isThere)
        #expect(place.text(10).contains("\"n\":\(number)}\n"))
      }
    }
    trail.finish()
    #expect(trail.figures == AuditFigures(written: 50, lost: 0, error: nil))
  }

  @Test("Many commits share flushes") func groups() throws {
    let place = try AuditPlace()
    let bad = BadDisk()
    var disk = bad.disk
    let sync = disk.sync
    disk.sync = { descriptor in
      usleep(20_000)
      return sync(descriptor)
    }
    let trail = try AuditTrail(Self.settings(place), log: Self.log(), disk: disk, clock: Self.noon)
    let took = try Self.onLoop { loop in
      await withTaskGroup(of: Void.self) { group in
        for number in 0..<200 {
          group.addTask(executorPreference: loop) { await trail.commit(Self.record(number), on: loop) }
        }
      }
    }
    trail.finish()
    #expect(trail.figures?.written == 200)
    #expect(bad.syncs < 20)
    #expect(took < .seconds(2))
  }

  /// Would catch a disk that keeps refused clients waiting for ever.
  @Test("A disk that hangs holds a refusal for a second at most, and nothing is lost") func slow() throws {
    let place = try AuditPlace()
    let hangs = Mutex(true)
    var disk = AuditDisk()
    disk.sync = { _ in
      while hangs.withLock({ $0 }) { usleep(1000) }
      return 0
    }
    let trail = try AuditTrail(Self.settings(place), log: Self.log(), disk: disk, clock: Self.noon)
    let took = try Self.onLoop { loop in
      let isThere = await trail.commit(Self.record(1), on: loop)
      #expect(!isThere)
    }
    #expect(took > .milliseconds(900))
    // It went on though the disk still hangs.
    hangs.withLock { $0 = false }
    trail.finish()
    #expect(trail.figures == AuditFigures(written: 1, lost: 0, error: nil))
  }

  @Test("While a disk is full nobody waits, and what was refused meanwhile is written when there is room again")
  func full() throws {
    let place = try AuditPlace()
    let bad = BadDisk()
    let trail = try AuditTrail(Self.settings(place), log: Self.log(), disk: bad.disk, clock: Self.noon)
    bad.room(10)
    let took = try Self.onLoop { loop in
      for number in 0..<20 {
        let isThere = await trail.commit(Self.record(number), on: loop)
        #expect(!isThere)
      }
    }
    #expect(took < .milliseconds(900))
    #expect(trail.figures?.error?.contains("No space left") == true)
    bad.room(.max)
    _ = try Self.onLoop { loop in
      for _ in 0..<100 where trail.figures?.error != nil { await loop.sleep(for: .milliseconds(50)) }
    }
    trail.finish()
    #expect(trail.figures == AuditFigures(written: 20, lost: 0, error: nil))
    let lines = place.text(10).split(separator: "\n")
    #expect(lines.count == 21)
    for number in 0..<20 { #expect(lines[number + 1].hasSuffix("\"n\":\(number)}")) }
  }

  /// Would catch a queue that grows without bound, and a flood of allowed tunnels that crowds out refusals.
  @Test("The queue is bounded, and keeps room for refusals") func bounded() throws {
    let place = try AuditPlace()
    let gate = Mutex(true)
    var disk = AuditDisk()
    disk.write = { descriptor, bytes in
      while gate.withLock({ $0 }) { usleep(1000) }
      return unsafe bytes.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
    }
    let trail = try AuditTrail(Self.settings(place), log: Self.log(), disk: disk, clock: Self.noon)
    let text = String(repeating: "x", count: 1000)
    let ordinary = AuditRecord(.tunnel, [.init("text", .text(text))], isDurable: false)
    let size = ordinary.render(at: Self.noon()).count
    for _ in 0..<8000 { trail.record(ordinary) }
    let lost = try #require(trail.figures?.lost)
    #expect(lost > 8000 - UInt64(2 * AuditTrail.ordinaryCapacity / size))
    for number in 0..<1000 { trail.record(Self.record(number)) }
    #expect(trail.figures?.lost == lost)
    gate.withLock { $0 = false }
    trail.finish()
    #expect(trail.figures?.written == 9000 - lost)
    #expect(place.text(10).split(separator: "\n").last?.hasSuffix("\"n\":999}") == true)
  }

  @Test("Records go to the file of their moment") func midnight() throws {
    let place = try AuditPlace()
    let time = Mutex(LogTime(milliseconds: 11 * 86_400_000 - 1))
    let trail = try AuditTrail(Self.settings(place), log: Self.log(), clock: { time.withLock { $0 } })
    _ = try Self.onLoop { loop in
      await trail.commit(Self.record(1), on: loop)
      time.withLock { $0.milliseconds += 1 }
      await trail.commit(Self.record(2), on: loop)
    }
    trail.finish()
    #expect(place.text(10).contains("\"time\":\"1970-01-11T23:59:59.999Z\""))
    #expect(place.text(11).contains("\"time\":\"1970-01-12T00:00:00.000Z\""))
    #expect(place.names == [10, 11].map { place.name.name(on: $0) })
  }

  @Test("Other settings take effect for what comes after them, and none end the audit") func settings() throws {
    let first = try AuditPlace()
    let second = try AuditPlace()
    let trail = try AuditTrail(Self.settings(first), log: Self.log(), clock: Self.noon)
    _ = try Self.onLoop { loop in
      await trail.commit(Self.record(1), on: loop)
      trail.use(Self.settings(second))
      await trail.commit(Self.record(2), on: loop)
    }
    #expect(!first.text(10).contains("\"n\":2"))
    #expect(second.text(10).contains("\"n\":2"))
    trail.use(nil)
    _ = try Self.onLoop { loop in
      for _ in 0..<100 where trail.isRecording { await loop.sleep(for: .milliseconds(10)) }
      let isThere = await trail.commit(Self.record(3), on: loop)
      #expect(!isThere)
    }
    trail.finish()
    #expect(trail.figures == nil)
    #expect(!second.text(10).contains("\"n\":3"))
  }

  /// A disk that takes nothing before `open` is called.
  private final class Gate: Sendable {
    private let isClosed = Mutex(true)
    func open() { isClosed.withLock { $0 = false } }

    var disk: AuditDisk {
      var disk = AuditDisk()
      disk.write = { [self] descriptor, bytes in
        while isClosed.withLock({ $0 }) { usleep(1000) }
        return unsafe bytes.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
      }
      return disk
    }
  }

  /// Would catch addresses under the names of settings that are no longer in force, and records that nobody asks for or
  /// that are missing, as long as the disk holds the file before.
  @Test("Other settings count at once, while the disk is slow") func slowSwitch() throws {
    let first = try AuditPlace()
    let second = try AuditPlace()
    let gate = Gate()
    let trail = try AuditTrail(Self.settings(first), log: Self.log(), disk: gate.disk, clock: Self.noon)
    trail.record(Self.record(1))
    #expect(trail.name(of: "192.0.2.7") == "192.0.2.7")
    trail.use(nil)
    #expect(!trail.isRecording)
    trail.use(AuditSettings(file: second.name, retentionDays: 90, clients: .hidden))
    #expect(trail.isRecording)
    #expect(trail.name(of: "192.0.2.7") == "hidden")
    trail.record(Self.record(2))
    gate.open()
    trail.finish()
    #expect(first.text(10).split(separator: "\n").map { $0.suffix(6) } == ["\"n\":1}"])
    #expect(second.text(10).split(separator: "\n").map { $0.suffix(6) } == ["\"n\":2}"])
    #expect(trail.figures == AuditFigures(written: 2, lost: 0, error: nil))
  }

  /// Would catch addresses that a disk which failed leaves to the file of other settings.
  @Test("What cannot be written before other settings count is lost, and not written under them") func failedSwitch()
    throws
  {
    let first = try AuditPlace()
    let second = try AuditPlace()
    let trail = try AuditTrail(Self.settings(first), log: Self.log(), clock: Self.noon)
    try FileManager.default.removeItem(atPath: first.path)
    trail.record(Self.record(1))
    _ = try Self.onLoop { loop in
      for _ in 0..<1000 where trail.figures?.error == nil { await loop.sleep(for: .milliseconds(10)) }
    }
    trail.use(AuditSettings(file: second.name, retentionDays: 90, clients: .hidden))
    trail.record(Self.record(2))
    trail.finish()
    #expect(second.text(10).split(separator: "\n").map { $0.suffix(6) } == ["\"n\":2}"])
    #expect(trail.figures == AuditFigures(written: 1, lost: 1, error: nil))
  }

  @Test("What cannot be written is kept where the same file is opened anew") func failedReopening() throws {
    let place = try AuditPlace()
    let trail = try AuditTrail(Self.settings(place), log: Self.log(), clock: Self.noon)
    try FileManager.default.removeItem(atPath: place.path)
    trail.record(Self.record(1))
    _ = try Self.onLoop { loop in
      for _ in 0..<1000 where trail.figures?.error == nil { await loop.sleep(for: .milliseconds(10)) }
      trail.reopen()
      trail.use(Self.settings(place, retention: 30))
      // Behind both, so that they found no place.
      await loop.sleep(for: .milliseconds(50))
    }
    try FileManager.default.createDirectory(atPath: place.path, withIntermediateDirectories: true)
    trail.finish()
    #expect(trail.figures == AuditFigures(written: 1, lost: 0, error: nil))
  }

  /// Would catch an end that forgets what a change of the file had in hand.
  @Test("What waits for a slow disk is written at the end, the file before's too") func slowEnd() throws {
    let first = try AuditPlace()
    let second = try AuditPlace()
    let gate = Gate()
    let trail = try AuditTrail(Self.settings(first), log: Self.log(), disk: gate.disk, clock: Self.noon)
    for number in 0..<5 { trail.record(Self.record(number)) }
    trail.use(Self.settings(second))
    for number in 5..<9 { trail.record(Self.record(number)) }
    trail.reopen()
    trail.record(Self.record(9))
    let opener = try LoopThread(name: "opener", loop: EventLoop())
    opener.loop.execute {
      usleep(100_000)
      gate.open()
    }
    trail.finish()
    opener.stop()
    #expect(trail.figures == AuditFigures(written: 10, lost: 0, error: nil))
    #expect(first.text(10).split(separator: "\n").count == 5)
    #expect(second.text(10).split(separator: "\n").count == 5)
  }

  /// Would catch addresses in the file of whoever did not ask for them.
  @Test("A client is a pseudonym that lasts as long as the installation's key") func pseudonyms() throws {
    let place = try AuditPlace()
    var configuration = Configuration()
    configuration.audit.file = Located(
      "\(place.path)/audit.jsonl", place: SourcePlace(line: 1, column: 1), path: "audit.file")
    configuration.stateDirectory = "\(place.path)/state"
    let client = try #require(SocketAddress("192.0.2.7:40000"))
    var names: Set<String> = []
    for port in 0..<3 as Range<UInt16> {
      var warnings: [String] = []
      let trail = try AuditTrail(AuditSettings(configuration, warnings: &warnings), log: Self.log(), clock: Self.noon)
      names.insert(trail.name(of: SocketAddress(client.address, port: 40_000 + port)))
      #expect(trail.name(of: nil) == "unix")
      trail.finish()
      #expect(warnings == [])
    }
    #expect(names.count == 1)
    #expect(names.first?.wholeMatch(of: /[0-9a-f]{16}/) != nil)
    var warnings: [String] = []
    configuration.audit.client = .address
    let plain = try AuditTrail(AuditSettings(configuration, warnings: &warnings), log: Self.log(), clock: Self.noon)
    #expect(plain.name(of: client) == "192.0.2.7")
    plain.finish()
    configuration.audit.client = .hash
    configuration.stateDirectory = "/proc/nowhere"
    let other = try AuditTrail(AuditSettings(configuration, warnings: &warnings), log: Self.log(), clock: Self.noon)
    #expect(warnings.count == 1)
    #expect(!names.contains(other.name(of: client)))
    #expect(!other.name(of: client).contains("192"))
    other.finish()
  }
}
