import PinfoldLoop
import PinfoldModel
import Synchronization
import Testing

/// A site that answers later, seen by clients that send bytes.
@Suite struct HTTPResponderTests {
  private static func request(_ line: String) -> [UInt8] {
    Array("\(line) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8)
  }

  private static func exchange(_ line: String, _ server: HTTPServer, _ loop: EventLoop) async throws -> String {
    let client = try await StreamSocket.connect(to: server.endpoint, loop: loop, deadline: loop.soon)
    try await client.send(request(line), deadline: loop.soon)
    var answer: [UInt8] = []
    while true {
      let bytes = try await client.receive(max: 65_536, deadline: loop.soon)
      if bytes.isEmpty { return String(decoding: answer, as: UTF8.self) }
      answer += bytes
    }
  }

  @Test func `an answer may come later, and others meanwhile`() async throws {
    try await onLoop { loop in
      let order = Mutex<[String]>([])
      let server = try HTTPServer(try ListeningSocket(.loopback), loop: loop) { request, responder in
        let pause = Duration.milliseconds(request.path == "/slow" ? 300 : 1)
        loop.spawn {
          await loop.sleep(for: pause)
          responder.send(HTTPResponse(text: request.path))
        }
      }
      let shared = Shared(server)
      let slow = Task(executorPreference: loop) {
        let answer = try await Self.exchange("GET /slow", shared.value, loop)
        order.withLock { $0.append("slow") }
        return answer
      }
      await loop.sleep(for: .milliseconds(30))
      let fast = try await Self.exchange("GET /fast", server, loop)
      order.withLock { $0.append("fast") }
      #expect(fast.hasSuffix("/fast"))
      #expect(try await slow.value.hasSuffix("/slow"))
      #expect(order.withLock(\.self) == ["fast", "slow"])
    }
  }

  @Test(
    "Every method reaches the site",
    arguments: [("GET", "get"), ("HEAD", "head"), ("POST", "post"), ("PUT", "other"), ("DELETE", "other")])
  func methods(_ word: String, _ kind: String) async throws {
    let answer = try await onLoop { loop in
      let server = try HTTPServer(try ListeningSocket(.loopback), loop: loop) { request, responder in
        responder.send(HTTPResponse(status: 405, text: "\(request.method)"))
      }
      return try await Self.exchange("\(word) /x", server, loop)
    }
    #expect(answer.hasPrefix("HTTP/1.1 405 "))
    #expect(answer.hasSuffix(word == "HEAD" ? "\r\n\r\n" : "\r\n\r\n\(kind)"), "\(answer)")
  }

  @Test func `a client that leaves before its answer harms nobody`() async throws {
    try await onLoop { loop in
      var waiting: [HTTPResponder] = []
      let server = try HTTPServer(try ListeningSocket(.loopback), loop: loop) { request, responder in
        if request.path == "/wait" { waiting.append(responder) } else { responder.send(HTTPResponse(text: "here")) }
      }
      for _ in 0..<3 {
        let client = try await StreamSocket.connect(to: server.endpoint, loop: loop, deadline: loop.soon)
        try await client.send(Self.request("GET /wait"), deadline: loop.soon)
        await loop.sleep(for: .milliseconds(50))
        client.abort()
      }
      await loop.sleep(for: .milliseconds(100))
      #expect(waiting.count == 3)
      for responder in waiting {
        responder.send(HTTPResponse(text: "late"))
        responder.send(HTTPResponse(text: "twice"))
      }
      #expect(try await Self.exchange("GET /", server, loop).hasSuffix("here"))
    }
  }

  @Test func `a second answer is dropped`() async throws {
    let answer = try await onLoop { loop in
      let server = try HTTPServer(try ListeningSocket(.loopback), loop: loop) { _, responder in
        responder.send(HTTPResponse(text: "first"))
        responder.send(HTTPResponse(status: 500, text: "second"))
      }
      return try await Self.exchange("GET /", server, loop)
    }
    #expect(answer.hasPrefix("HTTP/1.1 200 ") && answer.hasSuffix("first"))
  }

  @Test func `a server may go before it has answered, with clients there and gone`() async throws {
    try await onLoop { loop in
      var waiting: [HTTPResponder] = []
      var server: HTTPServer? = try HTTPServer(try ListeningSocket(.loopback), loop: loop) { waiting.append($1) }
      let endpoint = try #require(server).endpoint
      var clients: [StreamSocket] = []
      for _ in 0..<2 {
        let client = try await StreamSocket.connect(to: endpoint, loop: loop, deadline: loop.soon)
        try await client.send(Self.request("GET /"), deadline: loop.soon)
        clients.append(client)
      }
      await loop.sleep(for: .milliseconds(100))
      clients[0].abort()
      await loop.sleep(for: .milliseconds(100))
      #expect(waiting.count == 2)
      server = nil
      // The one that was still there sees its connection end.
      #expect(try await clients[1].receive(max: 100, deadline: loop.soon) == [])
      for responder in waiting { responder.send(HTTPResponse(text: "late")) }
    }
  }
}
