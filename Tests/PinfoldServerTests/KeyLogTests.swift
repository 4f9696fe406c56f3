import PinfoldLoop
import Synchronization
import Testing

@testable import PinfoldServer

/// Would catch a tunnel that waits for ever, or that gets another handshake's secret.
@Suite struct KeyLogTests {
  private static func line(_ random: UInt8) -> [UInt8] {
    let hex = String(repeating: String(random, radix: 16), count: 64)
    return Array("SERVER_HANDSHAKE_TRAFFIC_SECRET \(hex) \(String(repeating: "ab", count: 32))\n".utf8)
  }

  private static func random(_ digit: UInt8) -> [UInt8] { [UInt8](repeating: digit << 4 | digit, count: 32) }

  /// Number of secrets a tunnel gets for the random `aa…` when `write` is called while it waits.
  private static func ask(
    _ log: KeyLog, patience: Duration, write: @escaping @Sendable (KeyLog) -> Void
  ) throws -> (secrets: Int, took: Duration) {
    let loop = try EventLoop()
    let found = Mutex<Int>(-1)
    let start = ContinuousClock.now
    loop.spawn {
      let deadline = loop.deadline(after: patience)
      let secrets = await log.secrets(for: random(10), on: loop, until: deadline)
      found.withLock { $0 = secrets.count }
      loop.stop()
    }
    loop.execute { write(log) }
    loop.run()
    return (found.withLock { $0 }, ContinuousClock.now - start)
  }

  @Test("A line that came before is there at once") func before() throws {
    let log = KeyLog()
    var bytes = Self.line(10)
    log.receive(&bytes)
    #expect(try Self.ask(log, patience: .seconds(20)) { _ in }.secrets == 1)
  }

  @Test("A line that comes while the tunnel waits wakes it") func during() throws {
    let (secrets, took) = try Self.ask(KeyLog(), patience: .seconds(20)) { log in
      var bytes = Self.line(10)
      log.receive(&bytes)
    }
    #expect(secrets == 1)
    #expect(took < .seconds(10))
  }

  @Test("Another handshake's line wakes nobody, and patience ends") func other() throws {
    let (secrets, took) = try Self.ask(KeyLog(), patience: .milliseconds(60)) { log in
      var bytes = Self.line(11)
      log.receive(&bytes)
    }
    #expect(secrets == 0)
    #expect(took >= .milliseconds(60))
  }

  @Test("What was written is zeroed where it stood") func zeroed() {
    var bytes = Self.line(10)
    KeyLog().receive(&bytes)
    #expect(bytes.isEmpty)
  }
}
