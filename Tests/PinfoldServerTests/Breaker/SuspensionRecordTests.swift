import FoundationEssentials
import PinfoldCrypto
import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply
import PinfoldTelemetry
import Synchronization
import Testing

@testable import PinfoldServer

/// What survives a restart, and what of it is believed.
@Suite struct SuspensionRecordTests {
  private static let clients: [ClientIdentity] = [
    .user("älice"), .address(.v4(0x7f00_0002)), .address(.v6(high: 1, low: 2)), .local,
  ]

  private static func trip(_ client: ClientIdentity?, since: Int64 = -10_000, until: Int64? = 600_000) throws
    -> BreakerTrip
  {
    let authority = try #require(Authority("api.example.com:443"))
    let moment = BreakerClock.moment
    return BreakerTrip(
      rule: "*.example.com", authority: authority, client: client, failures: 3, samples: 40,
      since: moment + since, until: until.map { moment + $0 })
  }

  @Test("A suspension comes back as it was", arguments: clients)
  func roundTrip(_ client: ClientIdentity) throws {
    let before = try Self.trip(client)
    let record = SuspensionRecord(version: 7, suspensions: [try #require(.init(before))])
    let read = try #require(SuspensionRecord(record.bytes))
    #expect(read == record)
    let after = try #require(read.suspensions.first?.trip)
    #expect((after.rule, after.client, after.authority) == (before.rule, before.client, before.authority))
    #expect((after.failures, after.samples) == (3, 40))
    #expect(abs(after.since - before.since) < 50)
    let (old, new) = (try #require(before.until), try #require(after.until))
    #expect(abs(new - old) < 50)
  }

  @Test func `alerts are not kept`() throws {
    #expect(try SuspensionRecord.Suspension(Self.trip(nil)) == nil)
    #expect(try SuspensionRecord.Suspension(Self.trip(.local, until: nil)) == nil)
  }

  @Test func `a clock that was set back to before it began ends it`() throws {
    var kept = try #require(try SuspensionRecord.Suspension(Self.trip(.local)))
    kept.since = LogTime.now.milliseconds + 60_000
    #expect(kept.trip == nil)
  }

  struct Change: CustomTestStringConvertible, Sendable {
    var testDescription: String
    var change: @Sendable (inout SuspensionRecord.Suspension) -> Void
  }

  @Test(
    "What no suspension can be is none",
    arguments: [
      Change(testDescription: "no authority") { $0.authority = "no authority" },
      Change(testDescription: "no address") { $0.address = "127.0.0" },
      Change(testDescription: "user and address at once") {
        $0.user = "a"
        $0.address = "127.0.0.1"
      },
    ])
  func impossible(_ row: Change) throws {
    var kept = try #require(try SuspensionRecord.Suspension(Self.trip(.local)))
    row.change(&kept)
    #expect(kept.trip == nil)
  }

  @Test(
    "Times out of all bounds trap nowhere, and lie in the past or beyond any cool-down, which is refused",
    arguments: [Int64.min, -1, 0, .max])
  func bounds(_ time: Int64) throws {
    var kept = try #require(try SuspensionRecord.Suspension(Self.trip(.local)))
    kept.until = time
    let until = try #require(kept.trip?.until)
    // 604,800 seconds: the longest cool-down a policy can ask for.
    #expect(until < BreakerClock.moment || until > BreakerClock.moment + 604_800_000)
    kept.since = min(time, 0)
    let since = try #require(kept.trip?.since)
    _ = BreakerClock.time(of: since)
    _ = BreakerClock.time(of: .max)
  }

  @Test(
    "What is no record is none", arguments: ["", "{", "[]", #"{"version":-1,"suspensions":[]}"#, #"{"version":7}"#])
  func junk(_ text: String) { #expect(SuspensionRecord(Array(text.utf8)) == nil) }

  // MARK: The sealed record

  private struct Place: ~Copyable {
    let path = FileManager.default.temporaryDirectory.appending(path: "pinfold-\(UUID().uuidString)").path
    var warnings: [String] = []
    deinit { try? FileManager.default.removeItem(atPath: path) }

    mutating func cache() throws -> SealedCache {
      try SealedCache(stateDirectory: path, keyFile: nil, warnings: &warnings)
    }

    var files: [String] {
      ((try? FileManager.default.contentsOfDirectory(atPath: path + "/cache")) ?? []).map { "\(path)/cache/\($0)" }
    }
  }

  private func keep(_ keeper: SuspensionKeeper, _ trips: [BreakerTrip], on thread: DiskThread) {
    keeper.keep { (7, trips) }
    thread.wait()
  }

  /// A loop whose work can be waited for.
  private final class DiskThread {
    let loop: EventLoop
    let thread: LoopThread
    let log: Logger

    init() throws {
      loop = try EventLoop()
      thread = try LoopThread(name: "disk", loop: loop)
      log = try Logger(level: .error, format: .json)
    }

    func wait() {
      let done = Done()
      loop.execute { done.tell() }
      done.wait()
    }

    deinit {
      thread.stop()
      log.finish()
    }
  }

  @Test func `the keeper's record names no host, and only the same version takes it up`() throws {
    var place = Place()
    let disk = try DiskThread()
    let keeper = SuspensionKeeper(try place.cache(), disk: disk.loop, log: disk.log)
    #expect(keeper.load(version: 7).isEmpty)
    keep(keeper, [try Self.trip(.user("alice"))], on: disk)
    #expect(place.files.count == 1)
    let file = URL(filePath: place.files[0])
    let bytes = Array(try Data(contentsOf: file))
    // No word of digits: one turns up by chance, in a digest or between sealed bytes.
    for word in ["example", "alice"] {
      #expect(bytes.firstRange(of: Array(word.utf8)) == nil)
      #expect(!file.lastPathComponent.contains(word))
    }
    #expect(keeper.load(version: 7).map(\.client) == [.user("alice")])
    #expect(keeper.load(version: 8).isEmpty)
    keep(keeper, [], on: disk)
    #expect(place.files.isEmpty, "no suspension, no record")
  }

  /// Would catch a stop that leaves an ended suspension on the disk. The loop never runs, as one that is stopped while a
  /// write before was slow.
  @Test func `what the disk's thread did not come to is written at the end, once`() throws {
    var place = Place()
    let log = try Logger(level: .error, format: .json)
    defer { log.finish() }
    let keeper = SuspensionKeeper(try place.cache(), disk: try EventLoop(), log: log)
    let trips = [try Self.trip(.local)]
    keeper.finish { (7, trips) }
    #expect(place.files.isEmpty, "nothing was owed")
    let told = Mutex<[Bool]>([])
    for _ in 0..<2 {
      keeper.keep({ (7, trips) }) { isWritten in told.withLock { $0.append(isWritten) } }
    }
    #expect(place.files.isEmpty && told.withLock(\.isEmpty))
    keeper.finish { (7, trips) }
    #expect(place.files.count == 1 && told.withLock { $0 } == [true, true])
    keeper.finish { (7, []) }
    #expect(place.files.count == 1, "nothing was owed any more")
  }

  @Test func `who waits for the record is told that it could not be changed, and it stays owed`() throws {
    var place = Place()
    let disk = try DiskThread()
    let keeper = SuspensionKeeper(try place.cache(), disk: disk.loop, log: disk.log)
    keep(keeper, [try Self.trip(.local)], on: disk)
    let file = place.files[0]
    // A folder that is not empty cannot be removed as a file, by nobody.
    try FileManager.default.removeItem(atPath: file)
    try FileManager.default.createDirectory(atPath: file + "/in", withIntermediateDirectories: true)
    let told = Mutex<[Bool]>([])
    keeper.keep({ (7, []) }) { isWritten in told.withLock { $0.append(isWritten) } }
    disk.wait()
    #expect(told.withLock { $0 } == [false])
    try FileManager.default.removeItem(atPath: file)
    let trips = [try Self.trip(.user("alice"))]
    keeper.finish { (7, trips) }
    #expect(keeper.load(version: 7).map(\.client) == [.user("alice")])
  }

  @Test func `an altered record suspends nothing, whichever byte it is`() throws {
    var place = Place()
    let disk = try DiskThread()
    let keeper = SuspensionKeeper(try place.cache(), disk: disk.loop, log: disk.log)
    keep(keeper, [try Self.trip(.user("alice"))], on: disk)
    let file = URL(filePath: place.files[0])
    let whole = try Data(contentsOf: file)
    for position in stride(from: 0, to: whole.count, by: 7) {
      var altered = whole
      altered[position] ^= 1
      try altered.write(to: file)
      #expect(keeper.load(version: 7).isEmpty, "byte \(position)")
    }
    try whole.prefix(100).write(to: file)
    #expect(keeper.load(version: 7).isEmpty)
    try whole.write(to: file)
    #expect(keeper.load(version: 7).count == 1)
  }

  @Test func `another installation's record suspends nothing`() throws {
    var mine = Place()
    var other = Place()
    let disk = try DiskThread()
    keep(SuspensionKeeper(try mine.cache(), disk: disk.loop, log: disk.log), [try Self.trip(.local)], on: disk)
    keep(SuspensionKeeper(try other.cache(), disk: disk.loop, log: disk.log), [try Self.trip(.local)], on: disk)
    try FileManager.default.removeItem(atPath: mine.files[0])
    let name = try #require(other.files.first?.split(separator: "/").last)
    try FileManager.default.copyItem(atPath: other.files[0], toPath: "\(mine.path)/cache/\(name)")
    #expect(SuspensionKeeper(try mine.cache(), disk: disk.loop, log: disk.log).load(version: 7).isEmpty)
  }
}
