import Foundation
import Testing

extension Operation {
  /// After the verdict. Guards: every byte arrives, in order, and the ends of both directions are passed on apart.
  @Suite struct RelayTests {
    /// A proxy that lets anything through to the upstream, so that the relay can be seen without TLS in between.
    private func open(_ upstream: FakeUpstream, change: (inout Settings) -> Void = { _ in }) throws -> Pinfold {
      let settings = try Settings.pinned(Certificates.shared().ecdsa.pin, port: 1).with {
        $0.unpinned = "tunnel"
        $0.allow = ["127.0.0.0/8"]
        $0.resolve["free.pinfold.test:443"] = upstream.port
        change(&$0)
      }
      return try Pinfold(settings)
    }

    private static let authority = "free.pinfold.test:443"

    @Test("A large download arrives whole", arguments: ["TLSv1.2", "TLSv1.3"]) func download(protocols: String) throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: protocols)
      let size = 30_000_000
      var generator = SystemRandomNumberGenerator()
      let data = Data((0..<size / 8).flatMap { _ in unsafe withUnsafeBytes(of: generator.next()) { unsafe Array($0) } })
      try data.write(to: URL(filePath: server.path("large")))
      let pinfold = try Pinfold(.pinned(certificates.ecdsa.pin, port: server.port))
      let workspace = try Workspace("download")
      let fetched = try Client.curl.fetch(
        "https://api.pinfold.test/large", proxy: pinfold.port, options: ["-o", workspace.path("large")])
      #expect(fetched.succeeded, "\(fetched)")
      #expect(try Data(contentsOf: URL(filePath: workspace.path("large"))) == data)
      _ = try pinfold.reasons()
      #expect(try pinfold.metrics().sum("pinfold_relayed_bytes_total", #"direction="down""#) > Double(size))
    }

    @Test("Both directions at once, in uneven pieces, arrive whole") func bothDirections() throws {
      let upstream = try FakeUpstream { connection in
        while case .bytes(let bytes) = connection.socket.receive() {
          guard connection.socket.send(bytes) else { return }
        }
      }
      let pinfold = try open(upstream)
      let client = try RawClient(to: pinfold.port)
      #expect(try client.connect(Self.authority).statusLine.contains(" 200"))
      let sent = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 9) }
      let socket = client.socket
      Thread.detachNewThread {
        var place = 0
        for size in [1, 100, 70_000, 3, 1_000_000].cycled(while: { place < sent.count }) {
          let end = min(place + size, sent.count)
          guard socket.send(Array(sent[place..<end])) else { return }
          place = end
        }
        socket.endSending()
      }
      let (received, ended) = client.drain()
      #expect(received == sent && ended)
    }

    @Test("A half-closed client still gets its answer") func halfClose() throws {
      let upstream = try FakeUpstream { connection in
        connection.readToEnd()
        connection.socket.send(Array("answer".utf8))
      }
      let pinfold = try open(upstream)
      let client = try RawClient(to: pinfold.port)
      #expect(try client.connect(Self.authority).statusLine.contains(" 200"))
      client.send("question")
      client.socket.endSending()
      let (bytes, ended) = client.drain()
      #expect(String(decoding: bytes, as: UTF8.self) == "answer" && ended)
      #expect(upstream.received == [Array("question".utf8)])
    }

    @Test("A half-closed upstream still gets what follows") func upstreamHalfClose() throws {
      let upstream = try FakeUpstream { connection in
        connection.socket.send(Array("greeting".utf8))
        connection.socket.endSending()
        connection.readToEnd()
      }
      let pinfold = try open(upstream)
      let client = try RawClient(to: pinfold.port)
      // The greeting may come right behind the head.
      let reply = try client.connect(Self.authority)
      let (bytes, ended) = client.drain()
      #expect(String(decoding: reply.rest + bytes, as: UTF8.self) == "greeting" && ended)
      client.send("late")
      client.socket.endSending()
      try Wait.untilTrue("the late word") { upstream.received == [Array("late".utf8)] }
    }

    /// Guards: an idle tunnel ends, a busy one does not.
    @Test("A tunnel ends idle_seconds after its last byte, not after its first") func idle() throws {
      let upstream = try FakeUpstream { connection in
        while case .bytes(let bytes) = connection.socket.receive() { connection.socket.send(bytes) }
      }
      let pinfold = try open(upstream) { $0.limits["idle_seconds"] = 2 }
      let client = try RawClient(to: pinfold.port)
      #expect(try client.connect(Self.authority).statusLine.contains(" 200"))
      for _ in 0..<4 {
        client.send("tick")
        #expect(try client.receive(atLeast: 4) == Array("tick".utf8))
        Thread.sleep(forTimeInterval: 0.8)
      }
      let start = ContinuousClock.now
      #expect(client.drain(seconds: 10).ended)
      #expect(ContinuousClock.now - start < .seconds(6))
    }

    @Test("A reset on one side ends the other") func reset() throws {
      let upstream = try FakeUpstream { connection in
        _ = connection.socket.receive()
        connection.socket.abort()
      }
      let pinfold = try open(upstream)
      let client = try RawClient(to: pinfold.port)
      #expect(try client.connect(Self.authority).statusLine.contains(" 200"))
      client.send("x")
      #expect(client.drain().ended)
      try Wait.untilTrue("the tunnel's end") { try pinfold.metrics().sum("pinfold_tunnels_active") == 0 }
    }
  }
}

extension Array {
  /// The elements over and over, as long as the condition holds.
  func cycled(while holds: @escaping () -> Bool) -> some Sequence<Element> {
    sequence(state: 0) { index in
      guard holds(), !self.isEmpty else { return nil }
      defer { index += 1 }
      return self[index % self.count]
    }
  }
}
