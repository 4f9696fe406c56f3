import Foundation
import Glibc
import PinfoldLoop
import Testing

@testable import PinfoldServer

/// Would catch a pipe that is left unread: a tunnel whose line stays there, or an application that can write no more.
@Suite struct KeyLogIntakeTests {
  /// The writing end of an intake's pipe, and the log behind it.
  private final class Stage {
    let log = KeyLog()
    let intake: KeyLogIntake
    let descriptor: Int32
    private let path: String

    init(_ loop: EventLoop) throws {
      path = FileManager.default.temporaryDirectory.appending(path: "pinfold-keys-\(UUID().uuidString)").path
      intake = try KeyLogIntake(of: log, from: path, loop: loop)
      descriptor = unsafe open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
      try #require(descriptor >= 0)
    }

    deinit {
      close(descriptor)
      unsafe unlink(path)
    }

    /// Whether the pipe took all of it.
    func write(_ bytes: [UInt8]) -> Bool { unsafe Glibc.write(descriptor, bytes, bytes.count) == bytes.count }
  }

  private static func random(_ number: Int) -> [UInt8] {
    (0..<32).map { $0 < 8 ? UInt8(truncatingIfNeeded: number >> (8 * $0)) : 0x5a }
  }

  private static func line(_ label: String, _ number: Int) -> [UInt8] {
    let hex = random(number).map { String(UInt16($0) + 256, radix: 16).dropFirst() }.joined()
    return Array("\(label) \(hex) \(String(repeating: "ab", count: 48))\n".utf8)
  }

  /// Runs a body on a loop of its own.
  private static func onLoop(_ body: @escaping @Sendable (EventLoop) async throws -> Void) throws {
    let loop = try EventLoop()
    let failure = Failure()
    loop.spawn {
      do { try await body(loop) } catch { failure.error = error }
      loop.stop()
    }
    loop.run()
    if let error = failure.error { throw error }
  }

  private final class Failure: @unchecked Sendable { var error: (any Error)? }

  @Test("Whoever asks gets the line, while the pipe rests and while it does not, on this thread and on another")
  func asking() throws {
    try Self.onLoop { loop in
      let stage = try Stage(loop)
      let other = try EventLoop()
      let thread = try LoopThread(name: "other", loop: other)
      for number in 0..<300 {
        let asker = number % 2 == 0 ? loop : other
        // What other handshakes log, and the rest of this one, keep coming.
        #expect(stage.write(Self.line("EXPORTER_SECRET", number)))
        if number % 3 == 0 { await loop.sleep(for: .milliseconds(1)) }
        let log = stage.log
        let asking = Task(executorPreference: asker) {
          await log.secrets(for: Self.random(number), on: asker, until: asker.deadline(after: .seconds(20))).count
        }
        if number % 5 == 0 { await loop.sleep(for: .milliseconds(1)) }
        #expect(stage.write(Self.line("SERVER_HANDSHAKE_TRAFFIC_SECRET", number)))
        let found = await asking.value
        #expect(found == 1, "\(number)")
      }
      thread.stop()
    }
  }

  @Test("What nobody asks for is read all the same, little by little or in a flood", arguments: [1000, 60_000])
  func drained(size: Int) throws {
    try Self.onLoop { loop in
      let stage = try Stage(loop)
      var taken = 0
      let end = loop.deadline(after: .seconds(30))
      // Twenty times what the pipe holds.
      while taken < 20 * 65_536, loop.now < end {
        if stage.write([UInt8](repeating: 0x41, count: size)) { taken += size }
        await loop.pause(for: .microseconds(200))
      }
      #expect(taken >= 20 * 65_536)
      #expect(stage.write(Self.line("\nSERVER_HANDSHAKE_TRAFFIC_SECRET", 1)))
      let found = await stage.log.secrets(for: Self.random(1), on: loop, until: loop.deadline(after: .seconds(20)))
      #expect(found.count == 1)
    }
  }
}
