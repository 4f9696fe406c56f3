import Glibc
import PinfoldLoop
import Testing

/// What changes the process as a whole is tried in a child.
@Suite struct ProcessTests {
  @Test func `signals reach their handlers on the loop's thread`() async throws {
    await #expect(processExitsWith: .success) {
      try await onLoop { loop in
        final class Heard { var signals: [Signal] = [] }
        let heard = Heard()
        let listeners = try Signal.allCases.map { signal in
          try SignalListener(signal, loop: loop) {
            loop.preconditionOnLoop()
            heard.signals.append($0)
          }
        }
        for number in [SIGHUP, SIGTERM, SIGINT] { _ = kill(getpid(), number) }
        let deadline = loop.soon
        while heard.signals.count < 3, loop.now < deadline { await loop.sleep(for: .milliseconds(2)) }
        #expect(Set(heard.signals) == Set(Signal.allCases))
        withExtendedLifetime(listeners) {}
      }
    }
  }

  @Test func `a signal that comes before its listener waits for it`() async throws {
    await #expect(processExitsWith: .success) {
      final class Heard { var signals: [Signal] = [] }
      let heard = Heard()
      try Signal.holding {
        for number in [SIGHUP, SIGTERM, SIGINT] { _ = pthread_kill(pthread_self(), number) }
        let loop = try EventLoop()
        let listeners = try Signal.allCases.map { signal in
          try SignalListener(signal, loop: loop) {
            heard.signals.append($0)
            if heard.signals.count == 3 { loop.stop() }
          }
        }
        loop.run()
        withExtendedLifetime(listeners) {}
      }
      #expect(Set(heard.signals) == Set(Signal.allCases))
    }
  }

  @Test func `writing to a broken connection is an error, not a signal`() async throws {
    await #expect(processExitsWith: .success) {
      try await onLoop { loop in
        let (client, server) = try await Acceptor(loop).pair(loop)
        server.abort()
        await loop.sleep(for: .milliseconds(5))
        for _ in 0..<2 {
          await #expect(throws: IOError.reset) { try await client.send([1], deadline: loop.soon) }
        }
      }
    }
  }

  @Test func `the limit of descriptors can be raised to the system's and is never above it`() async throws {
    await #expect(processExitsWith: .success) {
      let highest = Descriptors.raiseLimit()
      Descriptors.limit = 100
      #expect(Descriptors.limit == 100)
      #expect(Descriptors.raiseLimit() == highest)
      Descriptors.limit = .max
      #expect(Descriptors.limit == highest)
    }
  }

  @Test func `open descriptors are counted`() async throws {
    await #expect(processExitsWith: .success) {
      // Whatever runs the tests may open or close one meanwhile, but not each time.
      var counted = false
      for _ in 0..<50 where !counted {
        let before = try #require(Descriptors.openCount)
        let socket = try ListeningSocket(.loopback)
        counted = Descriptors.openCount == before + 1
        withExtendedLifetime(socket.endpoint) {}
      }
      #expect(counted)
    }
  }
}
