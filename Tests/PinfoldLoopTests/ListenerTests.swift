import Glibc
import PinfoldModel
import Testing

@testable import PinfoldLoop

@Suite struct ListenerTests {
  @Test func `port 0 becomes a port of the system's choice`() throws {
    let socket = try ListeningSocket(.loopback)
    #expect(socket.endpoint.port > 0)
  }

  @Test func `each worker may listen on the same port`() throws {
    let first = try ListeningSocket(.loopback)
    let second = try ListeningSocket(first.endpoint)
    #expect(first.endpoint == second.endpoint)
  }

  @Test("What cannot be listened on is said", arguments: ["203.0.113.77:80", "[2001:db8::1]:80"])
  func strangeAddress(text: String) throws {
    let endpoint = try #require(Endpoint(text))
    #expect(throws: IOError.system(EADDRNOTAVAIL)) { _ = try ListeningSocket(endpoint) }
  }

  @Test func `two thousand quick connections are all accepted and answered`() async throws {
    try await onLoop { loop in
      let acceptor = try Acceptor(loop)
      let endpoint = acceptor.endpoint
      let total = 2000
      loop.spawn {
        for _ in 0..<total {
          let socket = await acceptor.next()
          loop.spawn {
            let bytes = (try? await socket.receive(max: 4, deadline: loop.soon)) ?? []
            try? await socket.send(bytes, deadline: loop.soon)
            socket.close()
          }
        }
      }
      let answered = try await withThrowingTaskGroup(of: Int.self) { group in
        for lane in 0..<20 {
          group.addTask {
            var count = 0
            for round in 0..<(total / 20) {
              let socket = try await StreamSocket.connect(to: endpoint, loop: loop, deadline: loop.soon)
              let bytes = [UInt8(lane), UInt8(round & 255)]
              try await socket.send(bytes, deadline: loop.soon)
              if try await socket.read(exactly: 2, deadline: loop.soon) == bytes { count += 1 }
              socket.close()
            }
            return count
          }
        }
        return try await group.reduce(0, +)
      }
      #expect(answered == total)
    }
  }

  @Test func `a closed listener takes nobody any more`() async throws {
    try await onLoop { loop in
      let acceptor = try Acceptor(loop)
      acceptor.listener.close()
      let client = try await StreamSocket.connect(to: acceptor.endpoint, loop: loop, deadline: loop.soon)
      await #expect(throws: IOError.timedOut) {
        try await client.receive(max: 1, deadline: loop.deadline(after: .milliseconds(30)))
      }
    }
  }

  /// Would fail if a full table of descriptors stopped the listener, spun it, or cost a tunnel that is up.
  @Test func `out of descriptors, newcomers are told so and tunnels that are up go on`() async throws {
    await #expect(processExitsWith: .success) {
      try await onLoop { loop in
        final class Count { var refused = 0 }
        let count = Count()
        var held: [StreamSocket] = []
        let queue = Held()
        let listener = try Listener(
          try ListeningSocket(.loopback), loop: loop, accept: { queue.sockets.append($0) },
          refuse: { socket in
            count.refused += 1
            _ = try? socket.trySend(Array("503".utf8).span)
          })
        let client = try await StreamSocket.connect(to: listener.endpoint, loop: loop, deadline: loop.soon)
        while queue.sockets.isEmpty { await loop.sleep(for: .milliseconds(1)) }
        // These have their descriptors already, and are accepted when the loop's next pass finds none left.
        for _ in 0..<5 { held.append(try StreamSocket.start(listener.endpoint, loop: loop)) }
        let limit = Descriptors.limit
        Descriptors.limit = 64
        let fillers = Fillers()
        fillers.fill()
        for socket in held {
          try await socket.finishConnecting(loop.soon, watching: nil)
          let answer = try await socket.readAll(deadline: loop.soon)
          #expect(answer == Fingerprint(Array("503".utf8)))
        }
        #expect(count.refused == 5)
        #expect(queue.sockets.count == 1)
        try await client.send([1], deadline: loop.soon)
        #expect(try await queue.sockets[0].receive(max: 1, deadline: loop.soon) == [1])
        await #expect(throws: IOError.descriptorsExhausted) {
          _ = try await StreamSocket.connect(to: listener.endpoint, loop: loop, deadline: loop.soon)
        }
        Descriptors.limit = limit
        withExtendedLifetime(fillers) {}
        let late = try await StreamSocket.connect(to: listener.endpoint, loop: loop, deadline: loop.soon)
        while queue.sockets.count == 1 { await loop.sleep(for: .milliseconds(1)) }
        late.close()
      }
    }
  }
}

private final class Held { var sockets: [StreamSocket] = [] }

/// Holds every descriptor that is left.
private final class Fillers {
  private final class Filler {
    let socket: ListeningSocket
    init() throws(IOError) { socket = try ListeningSocket(.loopback) }
  }

  private var fillers: [Filler] = []

  func fill() {
    while let filler = try? Filler() { fillers.append(filler) }
  }
}
