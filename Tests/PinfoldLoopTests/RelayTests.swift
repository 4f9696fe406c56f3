import PinfoldModel
import Testing

@testable import PinfoldLoop

/// A relay between two loopback connections: `client` and `server` are the far ends.
private struct Tunnel {
  let client: StreamSocket
  let server: StreamSocket
  let nearClient: StreamSocket
  let nearServer: StreamSocket
  let loop: EventLoop

  init(_ loop: EventLoop) async throws {
    let acceptor = try Acceptor(loop)
    (client, nearClient) = try await acceptor.pair(loop)
    (nearServer, server) = try await acceptor.pair(loop)
    self.loop = loop
  }

  func relay(idle: Duration = .seconds(30)) async -> Relay.Result {
    await Relay.run(client: nearClient, upstream: nearServer, idle: idle)
  }
}

/// Sends a stream in pieces of random sizes, now and then after a pause, and its end.
private func pour(_ socket: StreamSocket, seed: UInt64, total: Int, largest: Int) async throws -> Fingerprint {
  var noise = Noise(seed: seed)
  var result = Fingerprint()
  while result.count < total {
    let piece = noise.bytes(min(total - result.count, 1 + Int(noise.next() % UInt64(largest))))
    result.add(piece)
    try await socket.send(piece, deadline: socket.loop.soon)
    if noise.next() % 16 == 0 { await socket.loop.sleep(for: .milliseconds(1)) }
  }
  socket.shutdownWrite()
  return result
}

@Suite struct RelayTests {
  struct Shape: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let up: Int
    let down: Int
    let largest: Int
    let readSize: Int
  }

  static let shapes = [
    Shape(testDescription: "small pieces both ways", up: 60_000, down: 90_000, largest: 400, readSize: 4096),
    Shape(testDescription: "records of TLS size", up: 1_500_000, down: 1_000_000, largest: 17_000, readSize: 65_536),
    Shape(testDescription: "bulk down, nothing up", up: 0, down: 6_000_000, largest: 900_000, readSize: 65_536),
    Shape(testDescription: "bulk up, little down", up: 6_000_000, down: 10, largest: 900_000, readSize: 65_536),
    Shape(
      testDescription: "bulk both ways to slow readers", up: 3_000_000, down: 3_000_000, largest: 600_000,
      readSize: 3000),
    Shape(
      testDescription: "pieces around the bulk threshold", up: 3_000_000, down: 3_000_000, largest: 66_000,
      readSize: 32_768),
    Shape(testDescription: "nothing at all", up: 0, down: 0, largest: 1, readSize: 10),
  ]

  @Test("What goes in comes out, whole and in order, and is counted", arguments: shapes, [1, 2] as [UInt64])
  func byteExact(shape: Shape, seed: UInt64) async throws {
    try await onLoop { loop in
      let tunnel = try await Tunnel(loop)
      async let sentUp = pour(tunnel.client, seed: seed, total: shape.up, largest: shape.largest)
      async let sentDown = pour(tunnel.server, seed: seed + 100, total: shape.down, largest: shape.largest)
      async let gotUp = tunnel.server.readAll(max: shape.readSize, deadline: loop.soon)
      async let gotDown = tunnel.client.readAll(max: shape.readSize, deadline: loop.soon)
      let result = await tunnel.relay()
      #expect(result == Relay.Result(bytesUp: UInt64(shape.up), bytesDown: UInt64(shape.down), end: .finished))
      #expect(try await sentUp == gotUp)
      #expect(try await sentDown == gotDown)
      #expect(tunnel.nearClient.isClosed && tunnel.nearServer.isClosed)
    }
  }

  @Test("An end on one side is passed on while the other side still speaks", arguments: [true, false])
  func halfClose(clientFirst: Bool) async throws {
    try await onLoop { loop in
      let tunnel = try await Tunnel(loop)
      async let result = tunnel.relay()
      let (first, second) = clientFirst ? (tunnel.client, tunnel.server) : (tunnel.server, tunnel.client)
      try await first.send([1, 2, 3], deadline: loop.soon)
      first.shutdownWrite()
      #expect(try await second.read(exactly: 3, deadline: loop.soon) == [1, 2, 3])
      #expect(try await second.receive(max: 1, deadline: loop.soon).isEmpty)
      for round in 0..<5 {
        await loop.sleep(for: .milliseconds(2))
        try await second.send([UInt8(round)], deadline: loop.soon)
        #expect(try await first.receive(max: 10, deadline: loop.soon) == [UInt8(round)])
      }
      second.shutdownWrite()
      #expect(try await first.receive(max: 1, deadline: loop.soon).isEmpty)
      #expect(await result.end == .finished)
    }
  }

  @Test func `bytes and end sent before the relay starts are not lost`() async throws {
    try await onLoop { loop in
      let tunnel = try await Tunnel(loop)
      try await tunnel.client.send([1, 2], deadline: loop.soon)
      tunnel.client.close()
      #expect(try tunnel.nearServer.tryReceive(max: 1) == nil)
      await loop.sleep(for: .milliseconds(5))
      async let result = tunnel.relay()
      #expect(try await tunnel.server.readAll(deadline: loop.soon).count == 2)
      tunnel.server.close()
      #expect(await result == Relay.Result(bytesUp: 2, bytesDown: 0, end: .finished))
    }
  }

  @Test func `a reader that stops holds the sender back, and loses nothing when it goes on`() async throws {
    try await onLoop { loop in
      let tunnel = try await Tunnel(loop)
      async let result = tunnel.relay()
      var sent = 0
      let piece = [UInt8](repeating: 0x5a, count: 262_144)
      // Stops when all buffers on the way are full: four socket buffers and one pipe.
      await #expect(throws: IOError.timedOut) {
        while true {
          try await tunnel.server.send(piece, deadline: loop.deadline(after: .milliseconds(200)))
          sent += piece.count
        }
      }
      #expect(sent < 64_000_000)
      tunnel.server.shutdownWrite()
      tunnel.client.shutdownWrite()
      let got = try await tunnel.client.readAll(deadline: loop.soon)
      #expect(got.count >= sent && got.count < sent + piece.count)
      #expect(await result == Relay.Result(bytesUp: 0, bytesDown: UInt64(got.count), end: .finished))
    }
  }

  @Test("A reset of one side resets the other", arguments: [Relay.Side.client, .upstream])
  func resets(side: Relay.Side) async throws {
    try await onLoop { loop in
      let tunnel = try await Tunnel(loop)
      async let result = tunnel.relay()
      try await tunnel.client.send([1], deadline: loop.soon)
      #expect(try await tunnel.server.receive(max: 1, deadline: loop.soon) == [1])
      let (leaving, staying) = side == .client ? (tunnel.client, tunnel.server) : (tunnel.server, tunnel.client)
      leaving.abort()
      await #expect(throws: IOError.reset) { try await staying.receive(max: 1, deadline: loop.soon) }
      #expect(await result.end == .reset(side))
    }
  }

  @Test func `a reset that comes in one edge with bytes is noticed within the second`() async throws {
    try await onLoop { loop in
      let tunnel = try await Tunnel(loop)
      async let result = tunnel.relay()
      try await tunnel.client.send([1], deadline: loop.soon)
      #expect(try await tunnel.server.receive(max: 1, deadline: loop.soon) == [1])
      _ = try tunnel.client.trySend([2, 3].span)
      tunnel.client.abort()
      let start = Deadline.now
      let ended = await result
      #expect(ended.end == .reset(.client))
      #expect(Deadline.now.duration(since: start) < .seconds(3))
      #expect(tunnel.nearServer.isClosed)
    }
  }

  /// Would catch tunnels of clients that are long gone, which keep their places for the idle time.
  @Test func `a client that is reset is noticed while its upstream takes nothing`() async throws {
    try await onLoop { loop in
      let tunnel = try await Tunnel(loop)
      async let result = tunnel.relay(idle: .seconds(20))
      let piece = [UInt8](repeating: 0x5a, count: 262_144)
      // Stops when all buffers on the way are full.
      await #expect(throws: IOError.timedOut) {
        while true { try await tunnel.client.send(piece, deadline: loop.deadline(after: .milliseconds(200))) }
      }
      tunnel.client.abort()
      #expect(await result.end == .reset(.client))
      await #expect(throws: IOError.reset) { try await tunnel.server.readAll(deadline: loop.soon) }
    }
  }

  @Test("A reset behind a side's end is noticed", arguments: [Relay.Side.client, .upstream], [true, false])
  func resetBehindEnd(side: Relay.Side, inOneEdge: Bool) async throws {
    try await onLoop { loop in
      let tunnel = try await Tunnel(loop)
      async let result = tunnel.relay()
      let (leaving, staying) = side == .client ? (tunnel.client, tunnel.server) : (tunnel.server, tunnel.client)
      try await leaving.send([1], deadline: loop.soon)
      #expect(try await staying.receive(max: 1, deadline: loop.soon) == [1])
      leaving.shutdownWrite()
      if !inOneEdge {
        #expect(try await staying.receive(max: 1, deadline: loop.soon).isEmpty)
        try await staying.send([2], deadline: loop.soon)
        #expect(try await leaving.receive(max: 1, deadline: loop.soon) == [2])
      }
      leaving.abort()
      let start = Deadline.now
      #expect(await result.end == .reset(side))
      #expect(Deadline.now.duration(since: start) < .seconds(3))
      // An upstream learns it at once, a client whose answer is whole when it sends again.
      if side == .client { #expect(throws: IOError.reset) { try tunnel.server.trySend([3].span) } }
    }
  }

  @Test func `a reset behind the upstream's end takes nothing of the answer from a slow client`() async throws {
    try await onLoop { loop in
      let tunnel = try await Tunnel(loop)
      async let result = tunnel.relay()
      // More than the client's system takes unread, less than ours takes unsent.
      try await tunnel.server.send([UInt8](repeating: 0x5a, count: 200_000), deadline: loop.soon)
      tunnel.server.shutdownWrite()
      await loop.sleep(for: .milliseconds(200))
      tunnel.server.abort()
      #expect(await result == Relay.Result(bytesUp: 0, bytesDown: 200_000, end: .reset(.upstream)))
      #expect(try await tunnel.client.readAll(deadline: loop.soon).count == 200_000)
    }
  }

  @Test func `a half-closed client goes on to receive a large answer, slowly`() async throws {
    try await onLoop { loop in
      let tunnel = try await Tunnel(loop)
      async let result = tunnel.relay()
      tunnel.client.shutdownWrite()
      #expect(try await tunnel.server.receive(max: 1, deadline: loop.soon).isEmpty)
      async let sent = pour(tunnel.server, seed: 5, total: 6_000_000, largest: 300_000)
      async let got = tunnel.client.readAll(max: 7000, deadline: loop.soon)
      #expect(try await sent == got)
      #expect(await result == Relay.Result(bytesUp: 0, bytesDown: 6_000_000, end: .finished))
    }
  }

  @Test func `what a server sent before its reset still reaches the client`() async throws {
    try await onLoop { loop in
      let tunnel = try await Tunnel(loop)
      async let result = tunnel.relay()
      try await tunnel.server.send(Array("answer".utf8), deadline: loop.soon)
      #expect(try await tunnel.client.read(exactly: 6, deadline: loop.soon) == Array("answer".utf8))
      tunnel.server.abort()
      #expect(await result.end == .reset(.upstream))
    }
  }

  @Test func `nothing moving for the idle time ends the relay, something moving does not`() async throws {
    try await onLoop { loop in
      let tunnel = try await Tunnel(loop)
      async let result = tunnel.relay(idle: .seconds(1))
      for _ in 0..<5 {
        await loop.sleep(for: .milliseconds(250))
        try await tunnel.client.send([1], deadline: loop.soon)
        #expect(try await tunnel.server.receive(max: 1, deadline: loop.soon) == [1])
      }
      let quiet = loop.now
      #expect(await result == Relay.Result(bytesUp: 5, bytesDown: 0, end: .idle))
      #expect(Deadline.now.duration(since: quiet) >= .milliseconds(900))
      #expect(try await tunnel.client.receive(max: 1, deadline: loop.soon).isEmpty)
    }
  }

  @Test("Cancelling either socket ends the relay", arguments: [true, false])
  func cancellation(client: Bool) async throws {
    try await onLoop { loop in
      let tunnel = try await Tunnel(loop)
      let timer = LoopTimer(loop: loop, after: .milliseconds(5)) {
        (client ? tunnel.nearClient : tunnel.nearServer).cancel()
      }
      #expect(await tunnel.relay().end == .cancelled)
      #expect(tunnel.nearClient.isClosed && tunnel.nearServer.isClosed)
      timer.cancel()
    }
  }

  @Test func `cancelled before its start, a relay moves nothing`() async throws {
    try await onLoop { loop in
      let tunnel = try await Tunnel(loop)
      try await tunnel.client.send([1], deadline: loop.soon)
      tunnel.nearServer.cancel()
      #expect(await tunnel.relay() == Relay.Result(bytesUp: 0, bytesDown: 0, end: .cancelled))
    }
  }

  @Test func `bulk without pipes is copied instead`() async throws {
    try await onLoop { loop in
      var borrowed: [Pipe] = []
      while let pipe = loop.pipes.take() { borrowed.append(pipe) }
      #expect(borrowed.count == PipePool.maximalCount)
      let tunnel = try await Tunnel(loop)
      async let sent = pour(tunnel.server, seed: 3, total: 5_000_000, largest: 700_000)
      async let got = tunnel.client.readAll(max: 9000, deadline: loop.soon)
      tunnel.client.shutdownWrite()
      #expect(await tunnel.relay().end == .finished)
      #expect(try await sent == got)
      for pipe in borrowed { loop.pipes.give(pipe) }
    }
  }

  @Test func `two bulk tunnels share a loop fairly`() async throws {
    try await onLoop { loop in
      let one = try await Tunnel(loop)
      let two = try await Tunnel(loop)
      async let firstResult = one.relay()
      async let secondResult = two.relay()
      for tunnel in [one, two] {
        loop.spawn { _ = try? await pour(tunnel.server, seed: 1, total: 8_000_000, largest: 500_000) }
      }
      async let first = one.client.readAll(deadline: loop.soon)
      async let second = two.client.readAll(deadline: loop.soon)
      #expect(try await first == second)
      one.client.close()
      two.client.close()
      #expect(await firstResult.bytesDown == 8_000_000)
      #expect(await secondResult.bytesDown == 8_000_000)
    }
  }
}
