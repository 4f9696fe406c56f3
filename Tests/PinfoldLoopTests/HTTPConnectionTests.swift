import PinfoldModel
import Testing

@testable import PinfoldLoop

/// How many connections an HTTP server keeps, and how long.
@Suite struct HTTPConnectionTests {
  private static let head = Array("GET /text HTTP/1.1\r\nHost: localhost\r\n".utf8)
  private static let end = Array("\r\n".utf8)

  private static func server(
    _ loop: EventLoop, connections: Int = 64, time: Duration = .seconds(30), body: Int = 4
  ) throws -> HTTPServer {
    let limits = HTTPServer.Limits(connections: connections, time: time)
    return try HTTPServer(try ListeningSocket(.loopback), loop: loop, limits: limits) { _ in
      HTTPResponse(status: 200, contentType: "x/y", body: [UInt8](repeating: 65, count: body))
    }
  }

  private static func connect(_ server: HTTPServer, _ loop: EventLoop) async throws -> StreamSocket {
    try await StreamSocket.connect(to: server.endpoint, loop: loop, deadline: loop.soon)
  }

  /// Sends a request over a connection that stays, and reads its answer.
  private static func ask(_ client: StreamSocket) async throws -> String {
    try await client.send(head + end, deadline: client.loop.soon)
    var answer = ""
    while !answer.hasSuffix("AAAA") {
      let bytes = try await client.receive(max: 1000, deadline: client.loop.soon)
      if bytes.isEmpty { break }
      answer += String(decoding: bytes, as: UTF8.self)
    }
    return answer
  }

  /// Waits until the server has no connection any more; false when that takes too long.
  private static func isLeft(_ server: HTTPServer, _ loop: EventLoop, within limit: Duration) async -> Bool {
    let deadline = loop.deadline(after: limit)
    while server.connectionCount > 0, loop.now < deadline { await loop.sleep(for: .milliseconds(10)) }
    return server.connectionCount == 0
  }

  @Test func `past the bound the longest idle give way, and whoever asks is answered`() async throws {
    try await onLoop { loop in
      let server = try Self.server(loop, connections: 4)
      var idle: [StreamSocket] = []
      for _ in 0..<10 {
        let client = try await Self.connect(server, loop)
        try await client.send(Self.head, deadline: loop.soon)
        idle.append(client)
      }
      #expect(try await Self.ask(Self.connect(server, loop)).hasPrefix("HTTP/1.1 200 "))
      #expect(server.connectionCount <= 4)
      for client in idle[..<6] {
        let bytes = (try? await client.receive(max: 1, deadline: loop.soon)) ?? []
        #expect(bytes.isEmpty && client.hasHungUp)
      }
      // The youngest is still served.
      try await idle[9].send(Self.end, deadline: loop.soon)
      #expect(try await idle[9].receive(max: 15, deadline: loop.soon).starts(with: Array("HTTP/1.1 200 ".utf8)))
      for client in idle { client.close() }
      #expect(await Self.isLeft(server, loop, within: .seconds(20)))
    }
  }

  @Test func `a crowd that comes at once is bounded too`() async throws {
    try await onLoop { loop in
      let server = try Self.server(loop, connections: 4)
      let crowd = try (0..<100).map { _ in try StreamSocket.start(server.endpoint, loop: loop) }
      var most = 0
      for _ in 0..<300 {
        await loop.sleep(for: .milliseconds(1))
        most = max(most, server.connectionCount)
      }
      // Those that were just told to go may still be counted, and one that was just accepted.
      #expect(most >= 4 && most <= 8)
      #expect(try await Self.ask(Self.connect(server, loop)).hasPrefix("HTTP/1.1 200 "))
      for client in crowd { client.abort() }
      #expect(await Self.isLeft(server, loop, within: .seconds(20)))
    }
  }

  @Test func `a request that waits for its answer gives way to nobody`() async throws {
    try await onLoop { loop in
      var waiting: [HTTPResponder] = []
      let limits = HTTPServer.Limits(connections: 2, time: .seconds(30))
      let server = try HTTPServer(try ListeningSocket(.loopback), loop: loop, limits: limits) { waiting.append($1) }
      var clients: [StreamSocket] = []
      for _ in 0..<2 {
        let client = try await Self.connect(server, loop)
        try await client.send(Self.head + Self.end, deadline: loop.soon)
        clients.append(client)
      }
      while waiting.count < 2 { await loop.sleep(for: .milliseconds(1)) }
      let newcomer = try await Self.connect(server, loop)
      #expect((try? await newcomer.receive(max: 1, deadline: loop.soon)) ?? [] == [])
      #expect(newcomer.hasHungUp)
      for responder in waiting { responder.send(HTTPResponse(text: "here")) }
      for client in clients {
        #expect(try await client.receive(max: 15, deadline: loop.soon).starts(with: Array("HTTP/1.1 200 ".utf8)))
      }
    }
  }

  @Test func `a request that drips is ended at the limit`() async throws {
    try await onLoop { loop in
      let server = try Self.server(loop, time: .seconds(1))
      let client = try await Self.connect(server, loop)
      let start = Deadline.now
      try await client.send(Self.head + Array("X: ".utf8), deadline: loop.soon)
      var isOver = false
      while !isOver, Deadline.now.duration(since: start) < .seconds(20) {
        do {
          try await client.send([0x61], deadline: loop.soon)
          isOver = try await client.receive(max: 1, deadline: loop.deadline(after: .milliseconds(50))).isEmpty
        } catch IOError.timedOut {} catch { isOver = true }
      }
      #expect((.milliseconds(900)..<Duration.seconds(10)).contains(Deadline.now.duration(since: start)))
      #expect(await Self.isLeft(server, loop, within: .seconds(5)))
    }
  }

  @Test func `an answer that nobody takes is given up at the limit`() async throws {
    try await onLoop { loop in
      let server = try Self.server(loop, time: .seconds(1), body: 40_000_000)
      let client = try await Self.connect(server, loop)
      try await client.send(Self.head + Self.end, deadline: loop.soon)
      await loop.sleep(for: .milliseconds(300))
      #expect(server.connectionCount == 1)
      #expect(await Self.isLeft(server, loop, within: .seconds(10)))
    }
  }

  @Test func `each request has its own time`() async throws {
    try await onLoop { loop in
      let server = try Self.server(loop, time: .seconds(3))
      let client = try await Self.connect(server, loop)
      for _ in 0..<5 {
        #expect(try await Self.ask(client).hasPrefix("HTTP/1.1 200 "))
        await loop.sleep(for: .milliseconds(800))
      }
      #expect(await Self.isLeft(server, loop, within: .seconds(10)))
    }
  }
}
