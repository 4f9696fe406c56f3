import Glibc
import Testing

extension Operation {
  /// Limits. Guards: a full house turns newcomers away and keeps its guests.
  @Suite struct LimitTests {
    private func echo() throws -> FakeUpstream {
      try FakeUpstream { connection in
        connection.socket.setTimeout(seconds: 50)
        while case .bytes(let bytes) = connection.socket.receive() { connection.socket.send(bytes) }
      }
    }

    private func open(_ upstream: FakeUpstream, _ change: (inout Settings) -> Void) throws -> Pinfold {
      try Pinfold(
        Settings.pinned(Certificates.shared().ecdsa.pin, port: 1).with {
          $0.unpinned = "tunnel"
          $0.allow = ["127.0.0.0/8"]
          $0.resolve["free.pinfold.test:443"] = upstream.port
          change(&$0)
        })
    }

    private static let authority = "free.pinfold.test:443"

    @Test("Past limits.tunnels a newcomer is told to come back, and may once there is room") func tunnels() throws {
      let upstream = try echo()
      let pinfold = try open(upstream) {
        $0.limits["tunnels"] = 2
        $0.workers = 1
      }
      let guests = try (0..<2).map { _ in try RawClient(to: pinfold.port) }
      for guest in guests { #expect(try guest.connect(Self.authority).statusLine.contains(" 200")) }
      let refused = try RawClient(to: pinfold.port).connect(Self.authority)
      #expect(["429", "503"].contains { refused.statusLine.hasPrefix("HTTP/1.1 \($0) ") }, "\(refused)")
      #expect(refused.field("Proxy-Status")?.contains(#"details="limit_reached""#) == true, "\(refused)")
      for guest in guests {
        guest.send("still here")
        #expect(try guest.receive(atLeast: 10) == Array("still here".utf8))
      }
      guests[0].socket.shutDown()
      try Wait.untilTrue("room for another") {
        try RawClient(to: pinfold.port).connect(Self.authority).statusLine.contains(" 200")
      }
      #expect(try pinfold.metrics().sum("pinfold_tunnels_total", #"reason="limit_reached""#) >= 1)
    }

    private static func isServed(_ pinfold: Pinfold) throws -> Bool {
      try RawClient(to: pinfold.port).connect(authority).statusLine.contains(" 200")
    }

    /// Guards: places that addresses outside `access.clients` take from those inside, by a connection and no byte.
    @Test("Silent clients that are not served take no place of those who are") func strangers() throws {
      let upstream = try echo()
      let pinfold = try open(upstream) {
        $0.limits["tunnels"] = 2
        $0.clients = ["127.0.0.1/32"]
      }
      let strangers = try (0..<32).map { _ in try RawClient(to: pinfold.port, from: 2) }
      try Wait.untilTrue("they are there") { try pinfold.metrics().sum("pinfold_tunnels_active") == 32 }
      #expect(try Self.isServed(pinfold))
      // One more is not waited for.
      let next = try RawClient(to: pinfold.port, from: 2)
      let said = ProxyReply(try next.receive(atLeast: 30) + next.drain().bytes)
      #expect(said.statusLine.hasPrefix("HTTP/1.1 403 "), "\(said)")
      #expect(said.field("Proxy-Status")?.contains(#"details="client_denied""#) == true, "\(said)")
      // Those who are there already hear the same once they ask.
      let asked = try strangers[0].connect(Self.authority)
      #expect(asked.statusLine == said.statusLine, "\(asked)")
      strangers[0].socket.shutDown()
      let lines = try Wait.until("both lines") {
        let lines = pinfold.decisions.filter { $0["reason"] as? String == "client_denied" }
        return lines.count == 2 ? lines : nil
      }
      #expect(lines.allSatisfy { $0["detail"] as? String == "the address is not in access.clients" }, "\(lines)")
      #expect(try pinfold.metrics().sum("pinfold_tunnels_total", #"reason="client_denied""#) == 2)
      // The place that was left is another's, who may ask.
      try Wait.untilTrue("a place") {
        let another = try RawClient(to: pinfold.port, from: 2)
        return another.drain(seconds: 0.3).bytes.isEmpty
      }
    }

    /// Guards: places taken by clients that are served and ask for nothing.
    @Test("Who has sent no head takes no place of limits.tunnels, and makes room past a bound") func silent() throws {
      let upstream = try echo()
      let pinfold = try open(upstream) {
        // 96 for clients: 16 of them may dawdle.
        $0.descriptors = "128"
        $0.limits["tunnels"] = 2
        $0.workers = 1
      }
      let silent = try (0..<20).map { _ in try RawClient(to: pinfold.port) }
      try Wait.untilTrue("they are there") { try pinfold.metrics().sum("pinfold_tunnels_active") == 20 }
      #expect(try Self.isServed(pinfold))
      // Nobody has to leave for a second; their time for the head is ten.
      try Wait.untilTrue("room was made") {
        try Self.isServed(pinfold) && pinfold.child.errors.contains("too many clients have sent no CONNECT")
      }
      for client in silent.prefix(4) { #expect(client.drain(seconds: 2).ended) }
      #expect(!silent[19].drain(seconds: 0.1).ended)
    }

    /// Guards: a full house that stays full by those whom it refuses.
    @Test("Who is refused and does not leave keeps no place") func refused() throws {
      let upstream = try echo()
      let pinfold = try open(upstream) { $0.limits["tunnels"] = 1 }
      let lingering = try RawClient(to: pinfold.port)
      #expect(try lingering.connect("free.pinfold.test:25").statusLine.contains(" 403"))
      #expect(try Self.isServed(pinfold))
      withExtendedLifetime(lingering) {}
    }

    /// Guards: a full house that stays full by those whose handshake it refuses.
    @Test("Who is refused behind the 200 and does not leave keeps no place") func refusedInside() throws {
      let upstream = try echo()
      let pinfold = try open(upstream) {
        $0.limits["tunnels"] = 1
        $0.resolve["api.pinfold.test:443"] = upstream.port
      }
      let lingering = try RawClient(to: pinfold.port)
      #expect(try lingering.connect("api.pinfold.test:443").statusLine.contains(" 200"))
      lingering.send("GET / HTTP/1.1\r\n\r\n")
      // The alert comes behind the record of the audit: the place is free by then.
      #expect(try lingering.receive(atLeast: 7).first == 21)
      #expect(try Self.isServed(pinfold))
      withExtendedLifetime(lingering) {}
    }

    @Test("Out of descriptors, newcomers get 503 and the others go on") func descriptors() throws {
      let upstream = try echo()
      let pinfold = try open(upstream) {
        // By itself the proxy takes no more tunnels than it has descriptors for; this asks for more than there are.
        $0.descriptors = "128"
        $0.limits["tunnels"] = 1000
        $0.workers = 1
      }
      let guest = try RawClient(to: pinfold.port)
      #expect(try guest.connect(Self.authority).statusLine.contains(" 200"))
      var others: [RawClient] = []
      var refused: ProxyReply?
      while refused == nil, others.count < 128 {
        let client = try RawClient(to: pinfold.port)
        let reply = try client.connect(Self.authority)
        if reply.statusLine.contains(" 200") { others.append(client) } else { refused = reply }
      }
      #expect(refused?.statusLine.hasPrefix("HTTP/1.1 503 ") == true, "\(String(describing: refused))")
      guest.send("still here")
      #expect(try guest.receive(atLeast: 10) == Array("still here".utf8))
      for client in others { client.socket.shutDown() }
      try Wait.untilTrue("room for another") {
        try RawClient(to: pinfold.port).connect(Self.authority).statusLine.contains(" 200")
      }
    }

    /// Guards: clients for which there was no descriptor, in the audit by an id that no line has, and credentials of them
    /// that stay in memory.
    @Test("Out of descriptors, each client that is turned away has a line, and leaves no password") func turnedAway()
      throws
    {
      let pinfold = try open(try echo()) {
        $0.descriptors = "96"
        $0.workers = 1
        $0.audit = #"file: "audit.jsonl""#
      }
      let secret = "VHVybmVkQXdheTpUcjB1YjRkb3I="
      // All of them have come before the first is accepted: there is no time in which one of them could make room.
      pinfold.child.signal(SIGSTOP)
      let crowd = try (0..<120).map { _ in try RawClient(to: pinfold.port) }
      for client in crowd {
        client.send(RawClient.head(Self.authority, fields: "Proxy-Authorization: Basic \(secret)\r\n"))
      }
      pinfold.child.signal(SIGCONT)
      let lines = try Wait.until("lines") {
        let lines = pinfold.decisions.filter { $0["detail"] as? String == "out of descriptors" }
        return lines.count >= 10 ? lines : nil
      }
      for client in crowd { client.socket.shutDown() }
      #expect(lines.allSatisfy { $0["reason"] as? String == "limit_reached" }, "\(lines)")
      try Wait.untilTrue("they are gone") { try pinfold.metrics().sum("pinfold_tunnels_active") == 0 }
      #expect(try !ProcessMemory.holds(secret, pinfold.child.pid))
      pinfold.child.signal(SIGTERM)
      _ = try pinfold.child.wait()
      let ids = Set(pinfold.decisions.compactMap { $0["id"] as? String })
      let records = try AuditTests.records(pinfold)
      #expect(records.count >= lines.count)
      #expect(records.allSatisfy { ids.contains($0["id"] as? String ?? "") })
    }

    /// Guards: what is shown to operators must not cost the proxy its descriptors, nor a probe of health its answer.
    @Test("Idle connections to the admin port cost no tunnel, and hide nothing") func adminCrowd() throws {
      let upstream = try echo()
      let pinfold = try open(upstream) {
        $0.descriptors = "200"
        $0.workers = 1
      }
      var idle: [Socket] = []
      for _ in 0..<300 {
        let socket = try #require(try Socket.connect(to: pinfold.admin))
        socket.send(Array("GET /healthz HTTP/1.1\r\n".utf8))
        idle.append(socket)
      }
      let client = try RawClient(to: pinfold.port)
      #expect(try client.connect(Self.authority).statusLine.contains(" 200"))
      #expect(try pinfold.metrics().sum("process_open_fds") < 150)
      for socket in idle { socket.shutDown() }
      #expect(try HTTP.get("/metrics", port: pinfold.admin)?.status == 200)
    }

    /// Guards: most systems start a program with 1,024 descriptors and allow it many more.
    @Test("As many tunnels fit as the hard limit of descriptors allows") func hardLimit() throws {
      let upstream = try echo()
      let pinfold = try open(upstream) { $0.descriptors = "200:1000" }
      #expect(try pinfold.metrics().sum("process_max_fds") == 1000)
      let status = try #require(try HTTP.get("/status", port: pinfold.admin)).body
      let tunnels = try #require(status.firstMatch(of: /"limit" ?: ?([0-9]+)/)).1
      #expect(Int(tunnels).map { (200...500).contains($0) } == true, "\(tunnels)")
    }

    /// Guards: one slow client must not keep another waiting, on one worker.
    @Test("Clients that dawdle over their head hold nobody up") func dawdlers() throws {
      let upstream = try echo()
      let pinfold = try open(upstream) { $0.workers = 1 }
      let dawdlers = try (0..<50).map { _ in try RawClient(to: pinfold.port) }
      for dawdler in dawdlers { dawdler.send("CONN") }
      let client = try RawClient(to: pinfold.port)
      #expect(try client.connect(Self.authority).statusLine.contains(" 200"))
      withExtendedLifetime(dawdlers) {}
    }
  }
}
