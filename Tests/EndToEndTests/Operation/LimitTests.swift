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
