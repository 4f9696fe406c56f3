import PinfoldLoop
import PinfoldModel
import Testing

private let body = Array(String(repeating: "0123456789", count: 10).utf8)

/// A reply and what a client has to make of it.
private struct Row: CustomTestStringConvertible, Sendable {
  let testDescription: String
  let path: String
  let expected: Expected
  /// What it may come to as well, where that hangs on when the server's bytes and its end arrive.
  let orElse: Expected?
  var onlyOn: ReplyServer.Port?

  enum Expected: Equatable, Sendable {
    case body(Int, [UInt8])
    case failure(HTTPFetchError)
  }

  init(
    _ description: String, _ path: String, _ expected: Expected, or orElse: Expected? = nil,
    onlyOn: ReplyServer.Port? = nil
  ) {
    testDescription = description
    self.path = path
    self.expected = expected
    self.orElse = orElse
    self.onlyOn = onlyOn
  }
}

private let rows = [
  Row("A reply with its length is taken", "/whole", .body(200, body)),
  Row("A reply without a body is taken", "/empty", .body(200, [])),
  Row("A chunked reply loses its coding", "/chunked", .body(200, body)),
  Row("A status other than 200 is the caller's to judge", "/missing", .body(404, body)),
  Row("A redirect is a status, and nobody follows it", "/redirect", .body(302, [])),
  Row("An interim reply, which nobody asked for, is no reply", "/hints", .failure(.truncated), or: .body(200, body)),
  Row("Nor is one that comes alone", "/hints-apart", .failure(.truncated), or: .body(200, body)),
  Row("A body whose length was reached may end rudely", "/whole-rudely", .body(200, body)),
  Row("A body without a length ends with its connection", "/until-end", .body(200, body)),
  Row(
    "A body without a length that ends without a close_notify may have been cut", "/until-rude-end",
    .failure(.truncated), onlyOn: .good),
  Row("A body shorter than its length is cut", "/cut", .failure(.truncated)),
  Row("A body shorter than its length is cut, close_notify or not", "/cut-rudely", .failure(.truncated)),
  Row("A chunked body without its last chunk is cut", "/chunked-cut", .failure(.truncated)),
  Row("A chunk without a length is nonsense", "/bad-chunk", .failure(.tooLarge(limit: 4096))),
  Row("A head without an end is cut", "/cut-head", .failure(.truncated)),
  Row("No reply at all is a cut one", "/nothing", .failure(.truncated)),
  Row("A length beyond the limit is refused before the body comes", "/large", .failure(.tooLarge(limit: 4096))),
  Row("A body that never ends is refused at the limit", "/endless", .failure(.tooLarge(limit: 4096))),
  Row("Chunks that never end are refused at the limit", "/endless-chunks", .failure(.tooLarge(limit: 4096))),
  Row("A head that never ends is refused", "/endless-head", .failure(.malformed)),
  Row("A line that never ends is refused", "/endless-line", .failure(.malformed)),
  Row("A negative length is nonsense", "/negative", .failure(.malformed)),
  Row("Another protocol's greeting is nonsense", "/garbage", .failure(.malformed)),
  Row("A status that is no number is nonsense", "/strange-status", .failure(.malformed)),
]

@Suite struct ReplyTests {
  @Test("Replies over HTTP", arguments: rows.filter { $0.onlyOn != .good })
  fileprivate func plain(row: Row) async throws {
    try await check(row, .plain)
  }

  @Test("Replies over TLS", arguments: rows) fileprivate func secure(row: Row) async throws {
    try await check(row, .good)
  }

  private func check(_ row: Row, _ port: ReplyServer.Port) async throws {
    let timed = try await fetch(row.path, from: port, limit: 4096)
    let came: Row.Expected =
      switch timed.result {
      case .success(let reply): .body(reply.status, reply.body)
      case .failure(let error): .failure(error)
      }
    #expect(came == row.expected || came == row.orElse)
  }

  @Test("A body of exactly the limit is taken, one byte more is not", arguments: ["/whole", "/chunked", "/until-end"])
  func limit(path: String) async throws {
    #expect(try await fetch(path, from: .good, limit: 100).result.get().body == body)
    #expect(try await fetch(path, from: .good, limit: 99).result == .failure(.tooLarge(limit: 99)))
  }

  @Test("Fields are found in any spelling of their name, and all are kept") func fields() async throws {
    let reply = try await fetch("/whole", from: .good).result.get()
    #expect(reply.field("etag") == "\"one\"" && reply.field("ETAG") == "\"one\"" && reply.field("absent") == nil)
    #expect(reply.fields.filter { $0.name.lowercased() == "x-twice" }.map(\.value) == ["a", "b"])
  }

  @Test("A conditional request is answered by 304 without a body") func conditional() async throws {
    let fields = [(name: "If-None-Match", value: "\"one\"")]
    let reply = try await fetch("/conditional", from: .good, fields: fields).result.get()
    #expect(reply.status == 304 && reply.body.isEmpty)
    #expect(try await fetch("/conditional", from: .good).result.get().status == 200)
  }

  @Test("The request says host, port and that one reply is all it wants") func request() async throws {
    let port = try ReplyServer.shared.get().port(.plain)
    let reply = try await fetch("/echo?a=b%20c", from: .plain, fields: [("X-Own", "value")]).result.get()
    let lines = String(decoding: reply.body, as: UTF8.self).split(separator: "\r\n").map(String.init)
    #expect(lines.first == "GET /echo?a=b%20c HTTP/1.1")
    #expect(lines.contains("Host: localhost:\(port)") && lines.contains("Connection: close"))
    #expect(lines.contains("X-Own: value") && lines.contains("User-Agent: pinfold/\(Release.version)"))
  }

  @Test(
    "A field that would begin another line is not sent",
    arguments: [("X", "a\r\nX-More: b"), ("X", "a\nb"), ("X", "a\u{0}"), ("X: y", "z"), ("", "z"), ("X", "é")])
  func smuggling(name: String, value: String) async throws {
    #expect(try await fetch("/echo", from: .plain, fields: [(name, value)]).result == .failure(.malformed))
  }
}
