import PinfoldLoop
import PinfoldModel
import Testing

/// Sends a request as bytes and reads what comes until the server closes.
private func exchange(_ request: String, posts: Set<String> = []) async throws -> String {
  try await onLoop { loop in
    let server = try HTTPServer(try ListeningSocket(.loopback), loop: loop, posts: posts) { request in
      loop.preconditionOnLoop()
      switch request.path {
      case "/text": return HTTPResponse(text: "query \(request.query ?? "none"), accept \(request.accept ?? "none")\n")
      case "/wait":
        var response = HTTPResponse(status: 503, text: "not yet\n")
        response.fields.append((name: "Retry-After", value: "1"))
        return response
      case "/large":
        return HTTPResponse(status: 200, contentType: "x/y", body: [UInt8](repeating: 65, count: 2_000_000))
      case "/do":
        return HTTPResponse(text: "\(request.isPost ? "done" : "asked") by \(request.authorization ?? "nobody")\n")
      default: return HTTPResponse(status: 404, text: "nothing at \(request.path)\n")
      }
    }
    let client = try await StreamSocket.connect(to: server.endpoint, loop: loop, deadline: loop.soon)
    try await client.send(Array(request.utf8), deadline: loop.soon)
    var answer: [UInt8] = []
    while true {
      let bytes = try await client.receive(max: 65_536, deadline: loop.soon)
      if bytes.isEmpty { break }
      answer += bytes
    }
    return String(decoding: answer, as: UTF8.self)
  }
}

private func request(_ line: String, _ fields: [String] = []) -> String {
  ([line, "Host: localhost", "Connection: close"] + fields + ["", ""]).joined(separator: "\r\n")
}

@Suite struct HTTPServerTests {
  @Test func `GET is answered with status, type, length and body`() async throws {
    let answer = try await exchange(request("GET /text?a=b HTTP/1.1", ["Accept: text/html"]))
    #expect(answer.hasPrefix("HTTP/1.1 200 "))
    #expect(answer.contains("Content-Type: text/plain; charset=utf-8\r\n"))
    #expect(answer.contains("Content-Length: 28\r\n"))
    #expect(answer.hasSuffix("\r\n\r\nquery a=b, accept text/html\n"))
  }

  @Test func `HEAD is answered as GET, without the body`() async throws {
    let answer = try await exchange(request("HEAD /text HTTP/1.1"))
    #expect(answer.hasPrefix("HTTP/1.1 200 "))
    #expect(answer.contains("Content-Length: 24\r\n"))
    #expect(answer.hasSuffix("\r\n\r\n"))
  }

  @Test func `the handler's status and fields are passed on`() async throws {
    let answer = try await exchange(request("GET /wait HTTP/1.1"))
    #expect(answer.hasPrefix("HTTP/1.1 503 "))
    #expect(answer.contains("Retry-After: 1\r\n"))
    #expect(try await exchange(request("GET /other HTTP/1.1")).hasPrefix("HTTP/1.1 404 "))
  }

  @Test func `POST reaches the paths that take it, with its authorization`() async throws {
    let fields = ["Authorization: Bearer abc", "Content-Length: 0"]
    let answer = try await exchange(request("POST /do?a=b HTTP/1.1", fields), posts: ["/do"])
    #expect(answer.hasPrefix("HTTP/1.1 200 ") && answer.hasSuffix("\r\n\r\ndone by Bearer abc\n"))
    let reading = try await exchange(request("GET /do HTTP/1.1"), posts: ["/do"])
    #expect(reading.hasSuffix("\r\n\r\nasked by nobody\n"))
  }

  @Test("POST elsewhere is refused before the handler", arguments: ["/text", "/", "/do/", "/DO", "//do"])
  func postElsewhere(path: String) async throws {
    let answer = try await exchange(request("POST \(path) HTTP/1.1", ["Content-Length: 0"]), posts: ["/do"])
    #expect(answer.hasPrefix("HTTP/1.1 405 "))
    #expect(answer.contains("Allow: GET, HEAD\r\n"))
    #expect(!answer.contains("accept") && !answer.contains("done"))
  }

  @Test("Other methods are refused in our own words", arguments: ["PUT", "DELETE", "OPTIONS", "PATCH", "POST"])
  func otherMethod(name: String) async throws {
    let answer = try await exchange(request("\(name) /text HTTP/1.1", ["Content-Length: 0"]))
    #expect(answer.hasPrefix("HTTP/1.1 405 "))
    #expect(answer.contains("Allow: GET, HEAD\r\n") && answer.contains("Content-Type: text/plain"))
    #expect(answer.hasSuffix("\r\n\r\nthis path only reads; use GET\n"))
  }

  @Test("A body that nobody asked for is bounded") func largePost() async throws {
    let size = HTTPServer.maximalBodySize * 16
    let body = String(repeating: "a", count: size)
    let answer: String
    do {
      answer = try await exchange(
        request("POST /do HTTP/1.1", ["Content-Length: \(size)"]) + body, posts: ["/do"])
    } catch IOError.reset { answer = "" }
    #expect(!answer.contains("done"))
  }

  @Test func `a large body arrives whole`() async throws {
    let answer = try await exchange(request("GET /large HTTP/1.1"))
    #expect(answer.hasSuffix(String(repeating: "A", count: 2_000_000)))
  }

  @Test(
    "Other methods, large heads and nonsense never reach the handler",
    arguments: [
      request("POST /text HTTP/1.1", ["Content-Length: 0"]), request("DELETE /text HTTP/1.1"),
      request("GET /text HTTP/1.1", ["X: " + String(repeating: "a", count: HTTPServer.maximalHeadSize)]),
      "NONSENSE\r\n\r\n",
    ])
  func refused(text: String) async throws {
    let answer: String
    do { answer = try await exchange(text) } catch IOError.reset { answer = "" }
    #expect(!answer.hasPrefix("HTTP/1.1 200"))
    #expect(!answer.contains("accept"))
  }
}
