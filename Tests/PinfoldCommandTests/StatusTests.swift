import Testing

@testable import PinfoldCommand

@Suite struct StatusTests {
  static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"
  static let status = "HTTP/1.1 200 OK\r\n\r\n{\"state\":\"serving\"}\n"
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  private func ask(_ answers: [String: String]) throws -> (tool: Tool, address: String) {
    let server = try Answerer(answers)
    defer { withExtendedLifetime(server) {} }
    return (Tool("status", "--admin", server.address), server.address)
  }

  @Test func `a ready server prints its status and exits with 0`() throws {
    let (tool, _) = try ask(["/healthz": Self.ok, "/readyz": Self.ok, "/status": Self.status])
    #expect(tool.status == .good)
    #expect(tool.output == [#"{"state":"serving"}"#])
    #expect(tool.errors == [])
  }

  @Test func `a server that is not ready says why and exits with 1`() throws {
    let answers = [
      "/healthz": Self.ok, "/readyz": "HTTP/1.1 503 Service Unavailable\r\n\r\nno policy is in force\n",
      "/status": Self.status,
    ]
    let (tool, _) = try ask(answers)
    #expect(tool.status == .failed)
    #expect(tool.output == [#"{"state":"serving"}"#])
    #expect(tool.errors == ["pinfold: not ready: no policy is in force"])
  }

  @Test func `a sick server exits with 1`() throws {
    let (tool, address) = try ask(["/healthz": "HTTP/1.1 500 Internal Server Error\r\n\r\n"])
    #expect(tool.status == .failed)
    #expect(tool.output == [])
    #expect(tool.errors == ["pinfold: no status from \(address): /healthz answers 500"])
  }

  @Test func `a stranger on the port exits with 1`() throws {
    let (tool, address) = try ask(["/healthz": "220 mail.example.com ESMTP\r\n"])
    #expect(tool.status == .failed)
    #expect(tool.errors == ["pinfold: no status from \(address): the answer is not HTTP"])
  }

  @Test(.timeLimit(.minutes(5))) func `a server that never answers exits with 1 in time`() throws {
    let (tool, address) = try ask([:])
    #expect(tool.status == .failed)
    #expect(tool.errors == ["pinfold: no status from \(address): no answer in time"])
  }

  static let whole = """
    {"version":"1.2.3","state":"serving","started_at":"2026-11-21T00:00:00Z","now":"2026-11-21T01:00:00Z",
     "listen":["127.0.0.1:3128"],"workers":2,"unpinned":"block","tunnels":{"active":1,"limit":9},
     "policy":{"version":7,"issued_at":"x","expires_at":"2027-02-21T00:00:00Z","expired":false,"enabled":true,"rules":3},
     "last_reload":{"at":"2026-11-21T00:30:00Z","result":"failure","error":"bad\\u001b[2J"},
     "breaker":{"enabled":true,"auto_disable":true,
       "alerts":[{"rule":"*.example.com","host":"a.example.com:443","since":"2026-11-21T00:20:00Z","ratio":0.05,
                  "failures":1,"samples":20}],
       "suspensions":[{"rule":"api.example.com","host":"api.example.com:443","client":"0123456789abcdef",
                       "since":"2026-11-21T00:50:00Z","until":"2026-11-21T01:05:00Z","ratio":1,"failures":20,
                       "samples":20}]}}
    """

  @Test func `as text it is lines for people, with nothing in them that steers a terminal`() throws {
    let server = try Answerer(
      ["/healthz": Self.ok, "/readyz": Self.ok, "/status": "HTTP/1.1 200 OK\r\n\r\n\(Self.whole)\n"])
    defer { withExtendedLifetime(server) {} }
    let tool = Tool("status", "--format", "text", "--admin", server.address)
    #expect(tool.status == .good)
    #expect(
      tool.output == [
        "state: serving", "version: 1.2.3", "started: 2026-11-21T00:00:00Z", "listen: 127.0.0.1:3128", "workers: 2",
        "tunnels: 1 of 9", "unpinned: block", "policy: version 7, 3 rules, expires 2027-02-21T00:00:00Z",
        "reload: failure at 2026-11-21T00:30:00Z: bad\\u{1b}[2J", "breaker: suspends",
        "suspended: api.example.com for client 0123456789abcdef until 2026-11-21T01:05:00Z: 20 of 20 failed, since "
          + "2026-11-21T00:50:00Z",
        "alert: *.example.com for all clients: 1 of 20 failed, since 2026-11-21T00:20:00Z",
      ])
    #expect(Tool("status", "--format", "json", "--admin", server.address).output.first?.first == "{")
  }

  @Test func `another format is usage`() {
    let tool = Tool("status", "--format", "xml", "--admin", "127.0.0.1:1")
    #expect(tool.status == .usage)
    #expect(tool.errors.first?.contains("\"xml\" is no format; right would be text or json") == true)
  }

  // MARK: Re-arming

  private func rearm(
    _ host: String, _ answers: [String: String], token: String? = "secret\n"
  ) throws -> (tool: Tool, address: String) {
    let server = try Answerer(answers)
    defer { withExtendedLifetime(server) {} }
    if let token { try scratch.write("token", token) }
    let tool = Tool("status", "--admin", server.address, "--token-file", scratch["token"], "--rearm", host)
    return (tool, server.address)
  }

  @Test func `re-arming posts the host and prints the answer`() throws {
    let (tool, _) = try rearm("API.example.com", ["/rearm?host=api.example.com:443": "HTTP/1.1 200 OK\r\n\r\narmed\n"])
    #expect(tool.status == .good)
    #expect(tool.output == ["armed"])
    let (address, _) = try rearm("[::1]:8443", ["/rearm?host=%5B::1%5D:8443": "HTTP/1.1 200 OK\r\n\r\narmed\n"])
    #expect(address.output == ["armed"])
  }

  @Test func `a refused token exits with 1 and says so`() throws {
    let answer = "HTTP/1.1 401 Unauthorized\r\n\r\na token is needed\n"
    let (tool, address) = try rearm("api.example.com", ["/rearm?host=api.example.com:443": answer])
    #expect(tool.status == .failed)
    #expect(tool.output == [])
    #expect(tool.errors == ["pinfold: not re-armed at \(address): a token is needed (401)"])
  }

  @Test("A token file that holds none is not sent", arguments: ["", "\n", "two words\n", "a\r\nHost: b\n", "é\n"])
  func noToken(text: String) throws {
    let (tool, _) = try rearm("api.example.com", [:], token: text)
    #expect(tool.status == .failed)
    #expect(tool.errors.first?.contains("holds no token") == true)
  }

  @Test func `without a token file it says how to name one`() throws {
    let (tool, _) = try rearm("api.example.com", [:], token: nil)
    #expect(tool.status == .failed)
    #expect(tool.errors.first?.contains("--token-file FILE") == true)
    let host = Tool("status", "--rearm", "https://a", "--admin", "127.0.0.1:1")
    #expect(host.status == .usage)
  }

  @Test func `a token file without a host to re-arm is usage`() {
    let tool = Tool("status", "--token-file", "token", "--admin", "127.0.0.1:1")
    #expect(tool.status == .usage)
    #expect(tool.errors.first?.hasPrefix("pinfold: status: --token-file is for --rearm HOST") == true)
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

  /// Would catch a health check that asks another instance.
  @Test func `a configuration that is named has to be right`() throws {
    let server = try Answerer(["/healthz": Self.ok, "/readyz": Self.ok, "/status": Self.status])
    defer { withExtendedLifetime(server) {} }
    let good = try scratch.write("good.json5", #"{ admin: "\#(server.address)" }"#)
    #expect(Tool("status", "-c", good).status == .good)
    for path in [scratch["none.json5"], try scratch.write("bad.json5", "{ admin: 9128 }")] {
      let tool = Tool("status", "-c", path)
      #expect(tool.status == .config)
      #expect(tool.errors.first?.contains(path) == true, "\(tool.errors)")
    }
  }

  @Test(arguments: ["9128", "127.0.0.1", "unix:/run/pinfold/admin.sock", "127.0.0.1:0", "http://127.0.0.1:9128"])
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
