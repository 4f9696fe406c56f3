import PinfoldLoop
import PinfoldModel
import Synchronization
import Testing

@testable import PinfoldCommand

/// One look-up for many askers, remembered for a while.
@Suite struct DialledPinsTests {
  /// Counts look-ups and answers them when told to.
  private final class Upstream: Sendable {
    let count = Mutex(0)
    let answer = Mutex<DialledPins.Answer>(.failure(.unknown("nothing yet")))
    let pause: Duration
    let loop: EventLoop

    init(_ loop: EventLoop, pause: Duration = .milliseconds(50)) {
      self.loop = loop
      self.pause = pause
    }

    func find(_ host: HostName) async -> DialledPins.Answer {
      count.withLock { $0 += 1 }
      await loop.sleep(for: pause)
      return answer.withLock(\.self)
    }
  }

  private static func onLoop<Value: Sendable>(
    _ body: @escaping @Sendable (EventLoop) async throws -> Value
  ) async throws -> Value {
    let loop = try EventLoop()
    let thread = try LoopThread(name: "test", loop: loop)
    defer { thread.stop() }
    return try await Task(executorPreference: loop) { try await body(loop) }.value
  }

  private static let host = HostName.name("api.example.test")
  private static let pins = Digest256([UInt8](repeating: 7, count: 32)).map { HostPins(keys: [$0], validUntil: nil) }

  @Test func `a hundred askers at once cost one look-up, later ones none`() async throws {
    try await Self.onLoop { loop in
      let upstream = Upstream(loop)
      let pins = try #require(Self.pins)
      upstream.answer.withLock { $0 = .success(pins) }
      let source = DialledPins(loop: loop, lifetime: .seconds(60)) { await upstream.find($0) }
      let answers = await withTaskGroup { group in
        for _ in 0..<100 { group.addTask(executorPreference: loop) { await source.pins(of: Self.host) } }
        return await group.reduce(into: []) { $0.append($1) }
      }
      #expect(answers == Array(repeating: .success(pins), count: 100))
      #expect(await source.pins(of: Self.host) == .success(pins))
      #expect(upstream.count.withLock(\.self) == 1)
      _ = await source.pins(of: .name("other.example.test"))
      #expect(upstream.count.withLock(\.self) == 2)
    }
  }

  @Test func `what is old, or beyond the end of its chain, is looked up again`() async throws {
    try await Self.onLoop { loop in
      let upstream = Upstream(loop, pause: .zero)
      let clock = Mutex(Timestamp(seconds: 100))
      var pins = try #require(Self.pins)
      pins.validUntil = Timestamp(seconds: 200)
      upstream.answer.withLock { [pins] in $0 = .success(pins) }
      func remembering(_ lifetime: Duration) -> DialledPins {
        DialledPins(loop: loop, lifetime: lifetime, now: { clock.withLock(\.self) }) { await upstream.find($0) }
      }
      let source = remembering(.seconds(60))
      _ = await source.pins(of: Self.host)
      _ = await source.pins(of: Self.host)
      #expect(upstream.count.withLock(\.self) == 1)
      clock.withLock { $0.seconds = 200 }
      _ = await source.pins(of: Self.host)
      #expect(upstream.count.withLock(\.self) == 2)
      clock.withLock { $0.seconds = 100 }
      _ = await source.pins(of: Self.host)
      #expect(upstream.count.withLock(\.self) == 2)
      let forgetful = remembering(.milliseconds(10))
      _ = await forgetful.pins(of: Self.host)
      await loop.sleep(for: .milliseconds(40))
      _ = await forgetful.pins(of: Self.host)
      #expect(upstream.count.withLock(\.self) == 4)
    }
  }

  @Test func `failures are remembered too, and good news replaces them`() async throws {
    try await Self.onLoop { loop in
      let upstream = Upstream(loop, pause: .zero)
      let source = DialledPins(loop: loop, lifetime: .seconds(60)) { await upstream.find($0) }
      for _ in 0..<5 { #expect(await source.pins(of: Self.host) == .failure(.unknown("nothing yet"))) }
      #expect(upstream.count.withLock(\.self) == 1)
    }
  }

  @Test func `no more hosts than the limit are looked up at once, and none too many remembered`() async throws {
    try await Self.onLoop { loop in
      let upstream = Upstream(loop, pause: .milliseconds(200))
      let source = DialledPins(loop: loop, lifetime: .seconds(60)) { await upstream.find($0) }
      let limit = DialledPins.flightLimit
      let answers = await withTaskGroup { group in
        for number in 0..<limit + 6 {
          group.addTask(executorPreference: loop) { await source.pins(of: .name("h\(number).example.test")) }
        }
        return await group.reduce(into: []) { $0.append($1) }
      }
      #expect(answers.count { $0 == .failure(.busy) } == 6)
      #expect(upstream.count.withLock(\.self) == limit)
    }
  }
}
