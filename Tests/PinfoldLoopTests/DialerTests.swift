import PinfoldLoop
import PinfoldModel
import Testing

private func v4(_ text: String) -> IPAddress { IPAddress(text) ?? .v4(0) }

/// An address whose SYNs the kernel drops: a listener whose queue is full.
private final class BlackHole {
  private let socket: Acceptance
  private var fillers: [StreamSocket] = []

  private struct Acceptance: ~Copyable { let socket: ListeningSocket }

  init(_ address: IPAddress, port: UInt16, loop: EventLoop) async throws {
    let endpoint = Endpoint.tcp(SocketAddress(address, port: port))
    socket = Acceptance(socket: try ListeningSocket(endpoint, backlog: 0))
    while true {
      do {
        fillers.append(
          try await StreamSocket.connect(to: endpoint, loop: loop, deadline: loop.deadline(after: .milliseconds(100))))
      } catch IOError.timedOut { return }
    }
  }
}

@Suite struct DialerTests {
  @Test func `one address is dialled`() async throws {
    try await onLoop { loop in
      let acceptor = try Acceptor(loop)
      let socket = try await Dialer.connect(
        to: [v4("127.0.0.1")], port: acceptor.endpoint.port, loop: loop, deadline: loop.soon)
      try await socket.send([5], deadline: loop.soon)
      #expect(try await acceptor.next().receive(max: 1, deadline: loop.soon) == [5])
    }
  }

  @Test("A refused address gives way to the next one at once", arguments: [1, Dialer.maximalAttempts - 1])
  func refusedFirst(refused: Int) async throws {
    try await onLoop { loop in
      let acceptor = try Acceptor(loop)
      let start = Deadline.now
      let dead = (0..<refused).map { v4("127.0.0.\($0 + 2)") }
      let socket = try await Dialer.connect(
        to: dead + [v4("127.0.0.1")], port: acceptor.endpoint.port, loop: loop, deadline: loop.soon)
      #expect(socket.peerAddress?.address == v4("127.0.0.1"))
      // One head start each would be some four seconds; a single attempt ends when it ends.
      if refused > 1 { #expect(Deadline.now.duration(since: start) < Dialer.stagger * refused) }
    }
  }

  @Test func `an address that does not answer gives way after the head start, and its attempt is closed`() async throws
  {
    try await onLoop { loop in
      let acceptor = try Acceptor(loop)
      let hole = try await BlackHole(v4("127.0.0.9"), port: acceptor.endpoint.port, loop: loop)
      let start = Deadline.now
      let socket = try await Dialer.connect(
        to: [v4("127.0.0.9"), v4("127.0.0.1")], port: acceptor.endpoint.port, loop: loop, deadline: loop.soon)
      let took = Deadline.now.duration(since: start)
      #expect(took >= Dialer.stagger)
      #expect(socket.peerAddress?.address == v4("127.0.0.1"))
      withExtendedLifetime(hole) {}
    }
  }

  @Test("No answer at all ends at the deadline", arguments: [["127.0.0.9"], ["127.0.0.9", "127.0.0.10"]])
  func nothingAnswers(addresses: [String]) async throws {
    try await onLoop { loop in
      let port = try ListeningSocket(.loopback).endpoint.port
      var holes: [BlackHole] = []
      for address in addresses { holes.append(try await BlackHole(v4(address), port: port, loop: loop)) }
      await #expect(throws: DialError.failed(.timedOut)) {
        _ = try await Dialer.connect(
          to: addresses.map(v4), port: port, loop: loop, deadline: loop.deadline(after: .milliseconds(400)))
      }
      withExtendedLifetime(holes) {}
    }
  }

  @Test("All refused is refused", arguments: [1, 2, 5])
  func allRefused(count: Int) async throws {
    try await onLoop { loop in
      let port = try ListeningSocket(.loopback).endpoint.port
      await #expect(throws: DialError.failed(.refused)) {
        _ = try await Dialer.connect(
          to: (0..<count).map { v4("127.0.0.\($0 + 1)") }, port: port, loop: loop, deadline: loop.soon)
      }
    }
  }

  @Test("What the guard refuses is not dialled", arguments: [["127.0.0.1"], ["127.0.0.1", "127.0.0.2"]])
  func allProhibited(addresses: [String]) async throws {
    try await onLoop { loop in
      let acceptor = try Acceptor(loop)
      await #expect(throws: DialError.prohibited(v4("127.0.0.1"))) {
        _ = try await Dialer.connect(
          to: addresses.map(v4), port: acceptor.endpoint.port, loop: loop, deadline: loop.soon, permits: { _ in false })
      }
    }
  }

  @Test func `the guard is asked of each address, and the others are dialled`() async throws {
    try await onLoop { loop in
      let acceptor = try Acceptor(loop, .tcp(SocketAddress(.v4(0), port: 0)))
      let socket = try await Dialer.connect(
        to: [v4("127.0.0.5"), v4("127.0.0.6")], port: acceptor.endpoint.port, loop: loop, deadline: loop.soon,
        permits: { $0 != v4("127.0.0.5") })
      #expect(socket.peerAddress?.address == v4("127.0.0.6"))
    }
  }

  @Test("A client that was cancelled before ends the dial", arguments: [1, 2])
  func clientCancelled(count: Int) async throws {
    try await onLoop { loop in
      let acceptor = try Acceptor(loop)
      let (client, watched) = try await acceptor.pair(loop)
      let addresses = (0..<count).map { v4("127.0.0.\($0 + 13)") }
      var holes: [BlackHole] = []
      for address in addresses { holes.append(try await BlackHole(address, port: acceptor.endpoint.port, loop: loop)) }
      watched.cancel()
      await #expect(throws: DialError.failed(.cancelled)) {
        _ = try await Dialer.connect(
          to: addresses, port: acceptor.endpoint.port, loop: loop, deadline: loop.soon, watching: watched)
      }
      withExtendedLifetime(holes) {}
      client.close()
    }
  }

  @Test("A client that leaves ends the dial", arguments: [1, 2])
  func clientLeaves(count: Int) async throws {
    try await onLoop { loop in
      let acceptor = try Acceptor(loop)
      let (client, watched) = try await acceptor.pair(loop)
      let addresses = (0..<count).map { v4("127.0.0.\($0 + 9)") }
      var holes: [BlackHole] = []
      for address in addresses { holes.append(try await BlackHole(address, port: acceptor.endpoint.port, loop: loop)) }
      let timer = LoopTimer(loop: loop, after: .milliseconds(20)) { client.close() }
      await #expect(throws: DialError.failed(.hungUp)) {
        _ = try await Dialer.connect(
          to: addresses, port: acceptor.endpoint.port, loop: loop, deadline: loop.soon, watching: watched)
      }
      timer.cancel()
      withExtendedLifetime(holes) {}
    }
  }

  @Test func `no address at all is unreachable`() async throws {
    try await onLoop { loop in
      await #expect(throws: DialError.failed(.unreachable)) {
        _ = try await Dialer.connect(to: [], port: 1, loop: loop, deadline: loop.soon)
      }
    }
  }

  @Test(
    "Families take turns, IPv6 first",
    arguments: [
      (["1.1.1.1", "2.2.2.2", "::1", "::2", "::3"], ["::1", "1.1.1.1", "::2", "2.2.2.2", "::3"]),
      (["1.1.1.1", "2.2.2.2"], ["1.1.1.1", "2.2.2.2"]), (["::1"], ["::1"]), ([], []),
    ])
  func interleaving(given: [String], expected: [String]) {
    #expect(Dialer.interleaved(given.map(v4)).map(\.text) == expected)
  }
}
