import Foundation
import Glibc
import Testing

extension Operation {
  /// Users and passwords: `pinfold passwd`, and a proxy that asks for them.
  @Suite struct CredentialTests {
    private static let password = "correct horse: b\u{e4}ttery"

    private static func setPassword(_ file: String, _ user: String = "alice", _ password: String = password) throws {
      let command = try Pinfold.command("passwd", "-f", file, user, input: password + "\n")
      guard command.succeeded, command.output.isEmpty, command.errors.isEmpty else { throw HarnessError("\(command)") }
    }

    private static func mode(_ path: String) -> mode_t {
      var status = stat()
      return unsafe stat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
    }

    /// A proxy that knows alice, before a server with the right key.
    private static func start(
      _ server: Servers.Running, _ change: (inout Settings) -> Void = { _ in }
    ) throws -> Pinfold {
      let settings = try Settings.pinned(Certificates.shared().ecdsa.pin, port: server.port).with {
        $0.credentials = "users"
        change(&$0)
      }
      return try Pinfold(settings) { try setPassword($0.path("users")) }
    }

    private static func basic(_ text: String) -> String {
      "Proxy-Authorization: Basic \(Data(text.utf8).base64EncodedString())\r\n"
    }

    /// The reply to a CONNECT with these fields, from this address of the loopback.
    private static func reply(
      _ pinfold: Pinfold, _ fields: String, host: String = "api.pinfold.test:443"
    ) throws -> ProxyReply {
      let client = try RawClient(to: pinfold.port)
      client.send(RawClient.head(host, fields: fields))
      return ProxyReply(try client.receive(atLeast: 30) + client.drain(seconds: 0.3).bytes)
    }

    // MARK: The command

    @Test("passwd makes a file of mode 0600 and keeps all other lines byte for byte") func file() throws {
      let place = try Workspace("passwd")
      let file = place.path("users")
      try Self.setPassword(file)
      #expect(Self.mode(file) == 0o600)
      #expect(place.read("users").wholeMatch(of: /alice:\$argon2id\$v=19\$m=65536,t=2,p=1\$\S+\n/) != nil)
      let first = place.read("users")
      let others = "# the team\r\n\nbob:$argon2id$v=19$old\n\tstrange \u{fc}"
      try place.write("users", others + "\n" + first)
      #expect(unsafe chmod(file, 0o640) == 0)
      try Self.setPassword(file, "carol", "x")
      #expect(place.read("users").hasPrefix(others + "\n" + first + "carol:$argon2id$"))
      #expect(Self.mode(file) == 0o640)
      try Self.setPassword(file)
      #expect(place.read("users").hasPrefix(others + "\nalice:$argon2id$"))
      #expect(!place.read("users").contains(first))
      let gone = try Pinfold.command("passwd", "-f", file, "--delete", "alice")
      #expect(gone.succeeded && !place.read("users").contains("alice"), "\(gone)")
      #expect(try Pinfold.command("passwd", "-f", file, "--delete", "alice").ending == .exited(1))
      #expect(!place.read("users").contains(Self.password))
    }

    @Test("A link to the file stays one") func link() throws {
      let place = try Workspace("passwd")
      try Self.setPassword(place.path("users"))
      #expect(unsafe symlink("users", place.path("link")) == 0)
      try Self.setPassword(place.path("link"), "bob")
      #expect(place.read("users").contains("\nbob:"))
      var status = stat()
      #expect(unsafe lstat(place.path("link"), &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
    }

    @Test(
      "What cannot be a user or a password changes nothing",
      arguments: [
        (["a:b"], "x\n", 64), ([""], "x\n", 64), (["a\tb"], "x\n", 64), (["#a"], "x\n", 64),
        ([String(repeating: "u", count: 256)], "x\n", 64), ([], "x\n", 64), (["a", "b"], "x\n", 64),
        (["a"], "", 1), (["a"], "\n", 1), (["a"], "one\ntwo\n", 1), (["a"], "tab\there\n", 1),
        (["a"], "\r\n", 1), (["a"], String(repeating: "p", count: 1025), 1),
      ] as [([String], String, Int32)])
    func refused(words: [String], input: String, status: Int32) throws {
      let place = try Workspace("passwd")
      let command = try Command([Pinfold.binary, "passwd", "-f", place.path("users")] + words, input: input)
      #expect(command.ending == .exited(status), "\(command)")
      #expect(!FileManager.default.fileExists(atPath: place.path("users")))
    }

    /// Guards: a password on the screen, and a terminal left without echo.
    @Test("At a terminal the password is asked for twice and not shown") func terminal() throws {
      let place = try Workspace("passwd")
      let script = """
        import os, pty, sys, termios, time
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(sys.argv[1], [sys.argv[1], "passwd", "-f", sys.argv[2], "alice"])
        text = b""
        for line in sys.argv[3:]:
            while not text.endswith(b": "):
                text += os.read(terminal, 1000)
            assert not termios.tcgetattr(terminal)[3] & termios.ECHO
            os.write(terminal, line.encode() + b"\\r")
            text += b"|"
        try:
            while True:
                text += os.read(terminal, 1000)
        except OSError:
            pass
        sys.stdout.write(text.decode())
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """
      func type(_ lines: String...) throws -> Command {
        try Command(["python3", "-c", script, Pinfold.binary, place.path("users")] + lines)
      }
      let good = try type("s3cret", "s3crex\u{7f}t")
      #expect(good.succeeded, "\(good)")
      #expect(good.output.contains("Password: ") && good.output.contains("Again: "))
      #expect(!good.output.contains("s3cr"))
      let written = place.read("users")
      #expect(written.hasPrefix("alice:$argon2id$"))
      #expect(try type("one", "two").ending == .exited(1))
      #expect(try type("\u{3}").ending == .exited(1))
      #expect(place.read("users") == written)
    }

    // MARK: The proxy

    @Test("Real clients with credentials get through, and without them do not", arguments: Client.allCases)
    func client(_ client: Client) throws {
      let server = try Servers.nginx(Certificates.shared().ecdsa)
      let pinfold = try Self.start(server)
      let good = try client.fetch(proxy: pinfold.port, user: "alice:\(Self.password)")
      #expect(good.succeeded && good.output.contains(Servers.greeting), "\(good)")
      #expect(try !client.fetch(proxy: pinfold.port).succeeded)
      #expect(try !client.fetch(proxy: pinfold.port, user: "alice:wrong").succeeded)
      #expect(try pinfold.metrics().sum("pinfold_tunnels_total", #"reason="client_denied""#) >= 2)
    }

    @Test("curl finds out by itself that Basic is wanted") func anyauth() throws {
      let server = try Servers.nginx(Certificates.shared().ecdsa)
      let pinfold = try Self.start(server)
      let fetched = try Client.curl.fetch(
        proxy: pinfold.port, options: ["--proxy-anyauth"], user: "alice:\(Self.password)")
      #expect(fetched.succeeded, "\(fetched)")
      #expect(try pinfold.reasons(2) == ["client_denied", "pin_match"])
    }

    @Test(
      "Without credentials that can be read the answer is 407 and says what is wanted",
      arguments: [
        "", "Proxy-Authorization: Bearer abc\r\n", "Proxy-Authorization: Basic\r\n",
        "Proxy-Authorization: Basic !!!\r\n", "Proxy-Authorization: Basic YWxpY2U=\r\n",
        "Authorization: Basic YWxpY2U6eA==\r\n",
      ])
    func wanted(fields: String) throws {
      let server = try FakeUpstream { $0.readToEnd() }
      let settings = try Settings.pinned(Certificates.shared().ecdsa.pin, port: server.port).with {
        $0.credentials = "users"
        $0.unpinned = "tunnel"
      }
      let pinfold = try Pinfold(settings) { try Self.setPassword($0.path("users")) }
      // Nothing is said about a host before it is known who asks.
      for host in ["api.pinfold.test:443", "blocked.test:25"] {
        let reply = try Self.reply(pinfold, fields, host: host)
        #expect(reply.statusLine.hasPrefix("HTTP/1.1 407 "), "\(reply)")
        #expect(reply.field("Proxy-Authenticate") == #"Basic realm="pinfold", charset="UTF-8""#)
        #expect(reply.field("Proxy-Status")?.contains("client_denied") == true)
      }
      #expect(server.connectionCount == 0)
      #expect(try pinfold.reasons(2) == ["client_denied", "client_denied"])
    }

    /// Guards: guessing, and a guesser who shuts others out.
    @Test("Who guesses gets 429 with Retry-After, and another address goes on being served") func guessing() throws {
      let server = try Servers.nginx(Certificates.shared().ecdsa)
      let pinfold = try Self.start(server)
      var statuses: [String] = []
      for number in 0..<14 {
        let reply = try Self.reply(pinfold, Self.basic("alice:guess\(number)"))
        statuses.append(String(reply.statusLine.split(separator: " ")[1]))
        if statuses.last == "429" { #expect(Int(reply.field("Retry-After") ?? "")! > 0) }
      }
      #expect(statuses[0] == "407" && statuses[13] == "429", "\(statuses)")
      let elsewhere = try Client.curl.fetch(
        proxy: pinfold.port, options: ["--interface", "127.0.0.9"], user: "alice:\(Self.password)")
      #expect(elsewhere.succeeded, "\(elsewhere)")
    }

    /// Guards: places kept for the seconds that others' passwords take, by clients that are gone.
    @Test("Who leaves while passwords are hashed frees its tunnel at once") func leaves() throws {
      let server = try Servers.nginx(Certificates.shared().ecdsa)
      let pinfold = try Self.start(server)
      // Nearly as many strangers as may wait, each with a password of its own.
      let clients = try (0..<46).map { number in
        let client = try RawClient(to: pinfold.port, from: UInt8(2 + number / 6))
        client.send(RawClient.head("api.pinfold.test:443", fields: Self.basic("alice:guess \(number)")))
        return client
      }
      let active = { try pinfold.metrics().sum("pinfold_tunnels_active") }
      try Wait.untilTrue("they wait") { try active() > 30 }
      for client in clients { client.socket.shutDown() }
      try Wait.untilTrue("no tunnel", seconds: 2) { try active() == 0 }
      let details = try Wait.until("all decisions") {
        pinfold.decisions.count == 46 ? pinfold.decisions.compactMap { $0["detail"] as? String } : nil
      }
      #expect(details.count { $0 == "the client went away before its password was answered" } > 30, "\(details)")
      #expect(pinfold.decisions.allSatisfy { $0["reason"] as? String == "client_denied" }, "\(pinfold.decisions)")
    }

    @Test("SIGHUP reads the file again: a user taken out is out, though he was known") func reload() throws {
      let server = try Servers.nginx(Certificates.shared().ecdsa)
      let pinfold = try Self.start(server)
      let fetch = { try Client.curl.fetch(proxy: pinfold.port, user: "alice:\(Self.password)").succeeded }
      #expect(try fetch())
      try Self.setPassword(pinfold.workspace.path("users"), "bob")
      _ = try Pinfold.command("passwd", "-f", pinfold.workspace.path("users"), "--delete", "alice")
      #expect(try fetch())
      pinfold.child.signal(SIGHUP)
      try Wait.untilTrue("the new list") { try !fetch() }
      #expect(try Client.curl.fetch(proxy: pinfold.port, user: "bob:\(Self.password)").succeeded)
      // A bad file changes nothing.
      try pinfold.workspace.write("users", "bob:plain\n")
      pinfold.child.signal(SIGHUP)
      try Wait.untilTrue("a failed reload") {
        try pinfold.metrics().sum("pinfold_policy_reloads_total", #"result="failure""#) >= 1
      }
      #expect(try Client.curl.fetch(proxy: pinfold.port, user: "bob:\(Self.password)").succeeded)
      #expect(!pinfold.child.errors.contains("plain"))
    }

    /// Guards: the user's name as the seed of a roll-out, behind the handshake as well.
    @Test("The user is the user_id of a roll-out") func rollout() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa)
      let pinfold = try Self.start(server) {
        $0 = (try? Settings.pinned(certificates.other.pin, port: server.port)) ?? $0
        $0.credentials = "users"
        $0.policy = #"rollout_strategy: { method: "whitelist", seed: "user_id", ids: ["bob"] }"#
      }
      try Self.setPassword(pinfold.workspace.path("users"), "bob")
      pinfold.child.signal(SIGHUP)
      try Wait.untilTrue("bob") {
        !(try Self.reply(pinfold, Self.basic("bob:\(Self.password)")).statusLine.contains(" 407"))
      }
      // Alice is outside and only the chain counts; bob is inside and the pin does not match.
      #expect(try Client.curl.fetch(proxy: pinfold.port, user: "alice:\(Self.password)").succeeded)
      #expect(try !Client.curl.fetch(proxy: pinfold.port, user: "bob:\(Self.password)").succeeded)
      let reasons = try Wait.until("both verdicts") {
        let reasons = Set(pinfold.decisions.compactMap { $0["reason"] as? String })
        return reasons.isSuperset(of: ["chain_verified", "pin_mismatch"]) ? reasons : nil
      }
      #expect(!reasons.contains("internal_error"))
    }

    /// Guards: passwords of clients that are refused, in the memory of a process that may dump it.
    @Test("What a client sends behind its refusal does not stay in memory") func behindRefusal() throws {
      let pinfold = try Pinfold(Settings.pinned(Certificates.shared().ecdsa.pin, port: 1))
      let secret = Self.basic("alice:behind the refusal")
      let client = try RawClient(to: pinfold.port)
      #expect(try client.connect("other.test:443").statusLine.contains(" 403"))
      client.send(RawClient.head("other.test:443", fields: secret))
      client.socket.endSending()
      _ = client.drain(seconds: 2)
      try Wait.untilTrue("its end") { try pinfold.metrics().sum("pinfold_tunnels_active") == 0 }
      #expect(try !ProcessMemory.holds(String(secret.dropFirst(30).dropLast(2)), pinfold.child.pid))
    }

    @Test("No password and no user is in the log, the audit or the process's memory of files") func secrecy() throws {
      let server = try Servers.nginx(Certificates.shared().ecdsa)
      let pinfold = try Self.start(server) { $0.audit = #"file: "audit.jsonl""# }
      #expect(try Client.curl.fetch(proxy: pinfold.port, user: "alice:\(Self.password)").succeeded)
      _ = try Self.reply(pinfold, Self.basic("mallory:hunter2"))
      _ = try pinfold.reasons(2)
      let folder = pinfold.workspace.folder.path
      let texts =
        try FileManager.default.subpathsOfDirectory(atPath: folder).filter { $0 != "users" }
        .compactMap { try? String(contentsOfFile: "\(folder)/\($0)", encoding: .utf8) }
        + [pinfold.child.errors, pinfold.child.output]
      for secret in ["battery", "b\u{e4}ttery", "hunter2", "alice", "mallory", "YWxpY2U6", "bWFsbG9yeTo"] {
        #expect(!texts.contains { $0.contains(secret) }, "\(secret)")
      }
    }
  }
}
