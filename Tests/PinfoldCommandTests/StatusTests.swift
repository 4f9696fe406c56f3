import Testing

@testable import PinfoldCommand

@Suite struct StatusTests {
  static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"
  static let status = "HTTP/1.1 200 OK\r\n\r\n{\"state\":\"serving\"}\n"
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func ask(_ answers: [String: String]) throws -> Tool {
    let server = try Answerer(at: scratch["admin"], answers)
    defer { withExtendedLifetime(server) {} }
    return Tool("status", "--admin", "unix:\(scratch["admin"])")
  }

  @Test func `a ready server prints its status and exits with 0`() throws {
    let tool = try ask(["/healthz": Self.ok, "/readyz": Self.ok, "/status": Self.status])
    #expect(tool.status == .good)
    #expect(tool.output == [#"{"state":"serving"}"#])
    #expect(tool.errors == [])
  }

  @Test func `a server that is not ready says why and exits with 1`() throws {
    let answers = [
      "/healthz": Self.ok, "/readyz": "HTTP/1.1 503 Service Unavailable\r\n\r\nno policy is in force\n",
      "/status": Self.status,
    ]
    let tool = try ask(answers)
    #expect(tool.status == .failed)
    #expect(tool.output == [#"{"state":"serving"}"#])
    #expect(tool.errors == ["pinfold: not ready: no policy is in force"])
  }

  @Test func `a sick server exits with 1`() throws {
    let tool = try ask(["/healthz": "HTTP/1.1 500 Internal Server Error\r\n\r\n"])
    #expect(tool.status == .failed)
    #expect(tool.output == [])
    #expect(tool.errors == ["pinfold: no status from unix:\(scratch["admin"]): /healthz answers 500"])
  }

  @Test func `a stranger on the port exits with 1`() throws {
    let tool = try ask(["/healthz": "220 mail.example.com ESMTP\r\n"])
    #expect(tool.status == .failed)
    #expect(tool.errors == ["pinfold: no status from unix:\(scratch["admin"]): the answer is not HTTP"])
  }

  @Test(.timeLimit(.minutes(1))) func `a server that never answers exits with 1 in time`() throws {
    let tool = try ask([:])
    #expect(tool.status == .failed)
    #expect(tool.errors == ["pinfold: no status from unix:\(scratch["admin"]): no answer in time"])
  }

  @Test func `nobody at the address exits with 1`() {
    let tool = Tool("status", "--admin", "unix:\(scratch["nobody"])")
    #expect(tool.status == .failed)
    #expect(tool.errors == ["pinfold: no status from unix:\(scratch["nobody"]): No such file or directory"])
  }

  @Test func `a refused connection is told in the system's words`() {
    let tool = Tool("status", "--admin", "127.0.0.1:1")
    #expect(tool.status == .failed)
    #expect(tool.errors == ["pinfold: no status from 127.0.0.1:1: Connection refused"])
  }

  @Test func `without an address it asks where the configuration says`() throws {
    try scratch.write("first.json5", #"{ admin: "[::1]:4128" }"#)
    try scratch.write("second.json5", #"{ admin: "127.0.0.1:5128" }"#)
    try scratch.write("bad.json5", #"{ admin: 9128 }"#)
    func configured(_ names: String...) -> String? { StatusCommand.configured(in: names.map { scratch[$0] }) }
    #expect(configured("first.json5", "second.json5") == "[::1]:4128")
    #expect(configured("none.json5", "second.json5") == "127.0.0.1:5128")
    #expect(configured("bad.json5", "second.json5") == nil)
    #expect(configured("none.json5") == nil)
  }

  @Test(arguments: ["9128", "127.0.0.1", "unix:relative", "127.0.0.1:0", "http://127.0.0.1:9128"])
  func `an address that is none is usage`(text: String) {
    let tool = Tool("status", "--admin", text)
    #expect(tool.status == .usage)
    #expect(tool.errors.count == 1)
  }

  struct Answer: CustomTestStringConvertible {
    let testDescription: String
    let text: String
    var code: Int?
    var body = ""
  }

  @Test(arguments: [
    Answer(
      testDescription: "a whole answer", text: "HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody\r\n\r\nmore", code: 200,
      body: "body\r\n\r\nmore"),
    Answer(testDescription: "no reason phrase", text: "HTTP/1.0 503\r\n\r\n", code: 503),
    Answer(testDescription: "no end of the head", text: "HTTP/1.1 200 OK\r\nA: b\r\n"),
    Answer(testDescription: "a code that is no number", text: "HTTP/1.1 2x0 OK\r\n\r\n"),
    Answer(testDescription: "a code of two digits", text: "HTTP/1.1 20 OK\r\n\r\n"),
    Answer(testDescription: "another protocol", text: "RTSP/1.0 200 OK\r\n\r\n"),
    Answer(testDescription: "nothing", text: ""),
  ])
  func answers(_ row: Answer) {
    let parsed = AdminClient.parse(Array(row.text.utf8))
    #expect(parsed?.code == row.code)
    #expect(parsed?.body ?? "" == row.body)
  }
}
