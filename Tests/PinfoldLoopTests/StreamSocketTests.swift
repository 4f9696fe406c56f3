import PinfoldLoop
import PinfoldModel
import Testing

@Suite struct StreamSocketTests {
  @Test func `bytes come back from an echo over TCP`() async throws {
    try await onLoop { loop in
      let (client, server) = try await Acceptor(loop).pair(loop)
      try await client.send(Array("hello".utf8), deadline: loop.soon)
      let heard = try await server.receive(max: 100, deadline: loop.soon)
      #expect(heard == Array("hello".utf8))
      try await server.send(heard, deadline: loop.soon)
      #expect(try await client.receive(max: 100, deadline: loop.soon) { $0.count } == 5)
      client.shutdownWrite()
      #expect(try await server.receive(max: 100, deadline: loop.soon).isEmpty)
      #expect(try await server.receive(max: 100, deadline: loop.soon) { $0.isEmpty })
    }
  }

  @Test func `both ends know each other's address`() async throws {
    try await onLoop { loop in
      let acceptor = try Acceptor(loop)
      let (client, server) = try await acceptor.pair(loop)
      #expect(server.peerAddress == client.localAddress)
      #expect(client.peerAddress == server.localAddress)
      #expect(client.peerAddress?.port == acceptor.endpoint.port)
    }
  }

  @Test func `a connection tells whether it leads to an address of this machine`() async throws {
    try await onLoop { loop in
      let (client, _) = try await Acceptor(loop).pair(loop)
      #expect(client.ownPeer == .v4(0x7f00_0001))
      // Loopback has one source for all its addresses: the two sides differ, as with a peer elsewhere.
      let acceptor = try Acceptor(loop, .tcp(SocketAddress(.v4(0x7f00_0002), port: 0)))
      let (other, _) = try await acceptor.pair(loop)
      #expect(other.ownPeer == nil)
    }
  }

  @Test func `IPv6 works as IPv4 does`() async throws {
    try await onLoop { loop in
      let acceptor = try Acceptor(
        loop,
        try #require(
          Endpoint("[::1]:1").map { _ in
            Endpoint.tcp(SocketAddress(.v6(high: 0, low: 1), port: 0))
          }))
      let (client, server) = try await acceptor.pair(loop)
      #expect(server.peerAddress?.address == .v6(high: 0, low: 1))
      try await client.send([1, 2, 3], deadline: loop.soon)
      #expect(try await server.receive(max: 9, deadline: loop.soon) == [1, 2, 3])
    }
  }

  @Test func `a receive takes no more than it was allowed`() async throws {
    try await onLoop { loop in
      let (client, server) = try await Acceptor(loop).pair(loop)
      try await client.send([1, 2, 3, 4, 5], deadline: loop.soon)
      #expect(try await server.receive(max: 2, deadline: loop.soon) == [1, 2])
      #expect(try await server.receive(max: 2, deadline: loop.soon) == [3, 4])
      #expect(try await server.receive(max: 2, deadline: loop.soon) == [5])
      #expect(try server.tryReceive(max: 2) == nil)
    }
  }

  @Test func `a wait for bytes ends at its deadline, and the next one still works`() async throws {
    try await onLoop { loop in
      let (client, server) = try await Acceptor(loop).pair(loop)
      let start = loop.now
      await #expect(throws: IOError.timedOut) {
        try await server.receive(max: 1, deadline: loop.deadline(after: .milliseconds(30)))
      }
      #expect(loop.now.duration(since: start) >= .milliseconds(30))
      loop.spawn { try? await client.send([7], deadline: loop.soon) }
      #expect(try await server.receive(max: 1, deadline: loop.soon) == [7])
    }
  }

  @Test func `a send waits for a slow reader and delivers every byte`() async throws {
    try await onLoop { loop in
      let (client, server) = try await Acceptor(loop).pair(loop)
      var noise = Noise(seed: 5)
      let bytes = noise.bytes(6_000_000)
      loop.spawn {
        try? await client.send(bytes, deadline: loop.soon)
        client.close()
      }
      await loop.sleep(for: .milliseconds(50))
      #expect(try await server.readAll(max: 9000, deadline: loop.soon) == Fingerprint(bytes))
    }
  }

  @Test func `a send to a reader that stopped ends at its deadline`() async throws {
    try await onLoop { loop in
      let (client, server) = try await Acceptor(loop).pair(loop)
      let bytes = [UInt8](repeating: 0, count: 20_000_000)
      await #expect(throws: IOError.timedOut) {
        try await client.send(bytes, deadline: loop.deadline(after: .milliseconds(50)))
      }
      server.close()
    }
  }

  @Test func `a reset is an error, an end is not`() async throws {
    try await onLoop { loop in
      let acceptor = try Acceptor(loop)
      let (first, firstPeer) = try await acceptor.pair(loop)
      firstPeer.abort()
      await #expect(throws: IOError.reset) { try await first.receive(max: 1, deadline: loop.soon) }
      let (second, secondPeer) = try await acceptor.pair(loop)
      secondPeer.close()
      #expect(try await second.receive(max: 1, deadline: loop.soon).isEmpty)
    }
  }

  enum Ending: String, CaseIterable { case cancel, close, abort }

  @Test("A wait ends when another task ends the socket", arguments: Ending.allCases)
  func endingWakes(ending: Ending) async throws {
    try await onLoop { loop in
      let (client, server) = try await Acceptor(loop).pair(loop)
      loop.spawn {
        await loop.sleep(for: .milliseconds(5))
        switch ending {
        case .cancel: server.cancel()
        case .close: server.close()
        case .abort: server.abort()
        }
      }
      let expected: IOError = ending == .cancel ? .cancelled : .closed
      await #expect(throws: expected) { try await server.receive(max: 1, deadline: loop.soon) }
      await #expect(throws: expected) { try await server.receive(max: 1, deadline: loop.soon) }
      #expect(server.isClosed == (ending != .cancel))
      client.close()
      client.close()
    }
  }

  enum Departure: String, CaseIterable { case end, reset, resetWithBytesBefore, endWithBytesBefore, endBeforehand }

  @Test("A wait for one socket ends when the watched one's peer goes away", arguments: Departure.allCases)
  func watchedHangUp(departure: Departure) async throws {
    try await onLoop { loop in
      let acceptor = try Acceptor(loop)
      let (client, watched) = try await acceptor.pair(loop)
      let (upstream, upstreamPeer) = try await acceptor.pair(loop)
      let leave: () -> Void = {
        switch departure {
        case .end, .endBeforehand: client.close()
        case .reset: client.abort()
        case .resetWithBytesBefore:
          _ = try? client.trySend([1, 2, 3].span)
          client.abort()
        case .endWithBytesBefore:
          _ = try? client.trySend([1, 2, 3].span)
          client.close()
        }
      }
      if departure == .endBeforehand { leave() }
      let timer = LoopTimer(loop: loop, after: .milliseconds(5), leave)
      await #expect(throws: IOError.hungUp) {
        try await upstream.receive(max: 1, deadline: loop.soon, watching: watched)
      }
      timer.cancel()
      upstreamPeer.close()
    }
  }

  @Test func `bytes of a watched peer that stays do not end the wait`() async throws {
    try await onLoop { loop in
      let acceptor = try Acceptor(loop)
      let (client, watched) = try await acceptor.pair(loop)
      let (upstream, upstreamPeer) = try await acceptor.pair(loop)
      try await client.send([1], deadline: loop.soon)
      loop.spawn {
        await loop.sleep(for: .milliseconds(5))
        try? await client.send([2], deadline: loop.soon)
        await loop.sleep(for: .milliseconds(5))
        try? await upstreamPeer.send([9], deadline: loop.soon)
      }
      #expect(try await upstream.receive(max: 1, deadline: loop.soon, watching: watched) == [9])
      #expect(try await watched.read(exactly: 2, deadline: loop.soon) == [1, 2])
    }
  }

  @Test("Waiting for either of two sockets wakes for the one that has something", arguments: [true, false])
  func eitherReadable(first: Bool) async throws {
    try await onLoop { loop in
      let acceptor = try Acceptor(loop)
      let (one, onePeer) = try await acceptor.pair(loop)
      let (two, twoPeer) = try await acceptor.pair(loop)
      #expect(try one.tryReceive(max: 1) == nil)
      #expect(try two.tryReceive(max: 1) == nil)
      await #expect(throws: IOError.timedOut) {
        try await StreamSocket.waitReadable(one, or: two, deadline: loop.deadline(after: .milliseconds(10)))
      }
      loop.spawn {
        await loop.sleep(for: .milliseconds(5))
        try? await (first ? onePeer : twoPeer).send([4], deadline: loop.soon)
      }
      try await StreamSocket.waitReadable(one, or: two, deadline: loop.soon)
      #expect(try one.tryReceive(max: 1) == (first ? [4] : nil))
      #expect(try two.tryReceive(max: 1) == (first ? nil : [4]))
    }
  }

  @Test func `nobody listening is refused`() async throws {
    try await onLoop { loop in
      let port = try ListeningSocket(.loopback).endpoint.port
      await #expect(throws: IOError.refused) {
        let endpoint = Endpoint.tcp(SocketAddress(.v4(0x7f00_0001), port: port))
        _ = try await StreamSocket.connect(to: endpoint, loop: loop, deadline: loop.soon)
      }
    }
  }

  @Test func `errors have words for the log`() {
    #expect(IOError.system(71).text == "Protocol error")
    #expect(IOError.system(99_999).text == "unknown error")
    #expect(IOError.descriptorsExhausted.text == "out of descriptors")
  }
}
