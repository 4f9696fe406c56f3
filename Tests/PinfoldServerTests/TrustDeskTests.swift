import Foundation
import PinfoldCrypto
import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply
import PinfoldTelemetry
import Synchronization
import Testing

@testable import PinfoldServer

@Suite struct TrustDeskTests {
  private static let device = Authority("192.168.1.42:8443")

  /// A desk with its own thread, and a count of what was forgotten.
  private final class Office: Sendable {
    let desk: TrustDesk
    let cache: SealedCache
    let audit: AuditTrail
    let place: AuditPlace
    private let thread: LoopThread
    let loop: EventLoop

    let learnt = Mutex<[UInt8]>([])
    let left = Atomic<Int>(100)

    private final class Recount: Sendable { let count = Atomic<Int>(0) }
    private let recount: Recount

    /// `prepare` is given the cache, and its folder, before the desk reads it.
    init(prepare: (SealedCache, String) throws -> Void = { _, _ in }) throws {
      let place = try AuditPlace()
      let cache = try SealedCache(directory: "\(place.path)/cache", key: try SealingKey())
      try prepare(cache, "\(place.path)/cache")
      let log = try Logger(level: .error, format: .json)
      let audit = try AuditTrail(
        AuditSettings(file: place.name, retentionDays: 90, clients: .address), log: log,
        clock: { LogTime(milliseconds: 10 * 86_400_000) })
      let recount = Recount()
      let loop = try EventLoop()
      desk = TrustDesk(cache: cache, loop: loop, log: log, audit: audit) {
        recount.count.add(1, ordering: .relaxed)
      }
      thread = try LoopThread(name: "desk", loop: loop)
      self.loop = loop
      self.place = place
      self.cache = cache
      self.audit = audit
      self.recount = recount
    }

    var forgets: Int { recount.count.load(ordering: .relaxed) }

    func finish() -> String {
      thread.stop()
      audit.finish()
      return place.text(10)
    }

    func wait(_ holds: () -> Bool) {
      let end = ContinuousClock.now + .seconds(10)
      while !holds(), ContinuousClock.now < end { Thread.sleep(forTimeInterval: 0.02) }
    }
  }

  private static func pin(_ byte: UInt8) -> Pin { .publicKey(Digest256([32 of UInt8](repeating: byte))) }

  /// Would catch two tunnels that both believe their own first key.
  @Test("Of many first keys at once one wins, and the others are told") func race() throws {
    let device = try #require(Self.device)
    let office = try Office()
    let loops = try (0..<2).map { _ in try EventLoop() }
    let threads = try loops.map { try LoopThread(name: "tunnels", loop: $0) }
    for byte in 1...100 as ClosedRange<UInt8> {
      let loop = loops[Int(byte) % 2]
      loop.execute {
        loop.spawn {
          let lesson = await office.desk.learn(
            Self.pin(byte), of: device, on: loop, until: loop.deadline(after: .seconds(20)))
          if lesson == .learnt(warning: nil) { office.learnt.withLock { $0.append(byte) } }
          office.left.subtract(1, ordering: .relaxed)
        }
      }
    }
    office.wait { office.left.load(ordering: .relaxed) == 0 }
    for thread in threads { thread.stop() }
    let winners = office.learnt.withLock { $0 }
    #expect(winners.count == 1)
    #expect(office.desk.key(of: device)?.pin == winners.first.map(Self.pin))
    let audit = office.finish()
    #expect(audit.split(separator: "\n").count == 1)
    #expect(audit.contains(#""event":"trust","action":"first_use","host":"192.168.1.42:8443""#))
  }

  @Test("A tunnel whose client left waits for no disk; what was proven is learnt all the same") func leaves()
    async throws
  {
    let device = try #require(Self.device)
    let office = try Office()
    let loop = try EventLoop()
    let thread = try LoopThread(name: "tunnels", loop: loop)
    defer { thread.stop() }
    let isWaiting = Mutex(true)
    // A disk that takes its time.
    office.loop.execute { while isWaiting.withLock(\.self) { Thread.sleep(forTimeInterval: 0.01) } }
    let (lesson, elapsed) = try await Task(executorPreference: loop) {
      let (far, near) = try await SocketPair.make(loop)
      let timer = LoopTimer(loop: loop, after: .milliseconds(50)) { far.close() }
      let start = loop.now
      let lesson = await office.desk.learn(
        Self.pin(1), of: device, for: near, on: loop, until: loop.deadline(after: .seconds(20)))
      timer.cancel()
      return (lesson, loop.now.duration(since: start))
    }.value
    #expect(lesson == nil && elapsed < .seconds(5), "\(elapsed)")
    #expect(office.desk.key(of: device) == nil)
    isWaiting.withLock { $0 = false }
    office.wait { office.desk.key(of: device) != nil }
    #expect(office.desk.key(of: device)?.pin == Self.pin(1))
    #expect(office.finish().contains(#""action":"first_use""#))
  }

  @Test("What another process pairs and forgets is seen within some seconds, and audited") func live() throws {
    let device = try #require(Self.device)
    let office = try Office()
    let key = TrustedKey(Self.pin(9), since: Timestamp(seconds: 5), origin: .paired)
    try office.cache.write(.trust, TrustRecord.name(device), TrustRecord.contents(key))
    office.wait { office.desk.key(of: device) != nil }
    #expect(office.desk.key(of: device) == key)
    #expect(office.forgets == 0)
    try office.cache.remove(.trust, TrustRecord.name(device))
    office.wait { office.forgets > 0 }
    #expect(office.desk.key(of: device) == nil)
    let audit = office.finish()
    #expect(audit.contains(#""action":"paired""#) && audit.contains(#""action":"forgotten""#))
  }

  /// Would catch a desk that waits for a change of the folder: a mode that is put right, or a descriptor that is free
  /// again, is none.
  @Test("What could not be read is looked for again, also where nothing was written") func unread() throws {
    let device = try #require(Self.device)
    let key = TrustedKey(Self.pin(9), since: Timestamp(seconds: 5), origin: .paired)
    // Of one time, so that neither is news after the other: the folder, and a link to itself in its place.
    var times = [timespec](repeating: timespec(tv_sec: 1_000_000, tv_nsec: 0), count: 2)
    let office = try Office { cache, folder in
      try cache.write(.trust, TrustRecord.name(device), TrustRecord.contents(key))
      #expect(unsafe utimensat(AT_FDCWD, folder, &times, 0) == 0)
      try FileManager.default.moveItem(atPath: folder, toPath: folder + ".hidden")
      try FileManager.default.createSymbolicLink(atPath: folder, withDestinationPath: folder)
      #expect(unsafe utimensat(AT_FDCWD, folder, &times, AT_SYMLINK_NOFOLLOW) == 0)
    }
    #expect(office.desk.key(of: device) == nil && office.desk.isDamaged(device))
    let folder = "\(office.place.path)/cache"
    try FileManager.default.removeItem(atPath: folder)
    try FileManager.default.moveItem(atPath: folder + ".hidden", toPath: folder)
    office.wait { office.desk.key(of: device) != nil }
    #expect(office.desk.key(of: device) == key)
    _ = office.finish()
  }
}
