import Testing

/// The harness on itself: a check that cannot see a leak, or a server that does not serve, would make every test
/// behind it worthless.
extension Handshakes {
  @Suite struct HarnessTests {
    /// Would catch a port that is called free, and taken by the copy of its descriptor that a child holds for the moment
    /// before it runs its own program.
    @Test func `a free port stays free while children are started`() async throws {
      let start: @Sendable () throws -> Void = { for _ in 0..<150 { _ = try Child(["true"]) } }
      try await withThrowingTaskGroup { group in
        group.addTask(operation: start)
        group.addTask(operation: start)
        for _ in 0..<3000 {
          let port = try FreePort.next()
          #expect(try Socket.listen(on: port) != nil, "\(port)")
        }
        try await group.waitForAll()
      }
    }

    @Test(
      "A client reaches a server through a proxy that enforces nothing, and the tap sees its flight",
      arguments: Client.allCases)
    func clientsWork(client: Client) throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let proxy = try OpenProxy(to: server.port)
      let tap = try Tap(to: proxy.port)
      let fetched = try client.fetch(proxy: tap.port)
      #expect(fetched.succeeded && fetched.output.contains(Servers.greeting), "\(fetched)")
      let reply = ProxyReply(try #require(tap.connections.first).backward.all)
      #expect(!reply.isSilentRefusal, "a leak would not be seen")
      #expect(reply.rest.count > 1000)
    }

    @Test("Every server answers") func serversWork() throws {
      let certificates = try Certificates.shared()
      let legacy = ["--tlsv1.0", "--ciphers", "ALL:@SECLEVEL=0"]
      let servers: [(Servers.Running, [String])] = [
        (try Servers.nginx(certificates.rsa, certificates.ecdsa), []),
        (try Servers.openssl(certificates.rsa, ["-tls1", "-cipher", "ALL:@SECLEVEL=0"]), legacy),
        (try Servers.openssl(certificates.rsa, ["-tls1_2", "-cipher", "AES128-GCM-SHA256:@SECLEVEL=0"]), legacy),
        (
          try Servers.openssl(certificates.rsa, ["-tls1_2", "-cipher", "DHE-RSA-AES128-GCM-SHA256:@SECLEVEL=0"]), legacy
        ),
        (try Servers.openssl(certificates.ed25519, ["-tls1_3"]), []),
        (try Servers.gnutls(certificates.ecdsa, priority: "NORMAL:-VERS-ALL:+VERS-TLS1.2"), []),
        (try Servers.gnutls(certificates.ecdsa, priority: "NORMAL:-VERS-ALL:+VERS-TLS1.3"), []),
      ]
      for (server, options) in servers {
        let proxy = try OpenProxy(to: server.port)
        let fetched = try Client.curl.fetch(proxy: proxy.port, options: options)
        #expect(fetched.succeeded, "\(fetched)")
      }
    }

    @Test("A ClientHello made by hand is answered with a whole flight") func helloWorks() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let client = try RawClient(to: server.port)
      client.send(ClientHello().bytes)
      let (types, areWhole) = TLSRecords.types(try client.receive(atLeast: 800))
      #expect(types.allSatisfy { $0 == 22 } && !types.isEmpty && areWhole)
    }

    @Test("A ClientHello cut into records of one byte says the same") func helloIsCut() throws {
      var hello = ClientHello()
      hello.recordSize = 1
      let bytes = hello.bytes
      #expect(bytes.count == ClientHello().bytes.count - 5 + 5 * (bytes.count / 6))
      #expect(TLSRecords.types(bytes) == (Array(repeating: 22, count: bytes.count / 6), true))
    }

    @Test("A fake upstream counts what it is sent") func fakeUpstreamCounts() throws {
      let upstream = try FakeUpstream { connection in
        connection.readRecord()
        connection.socket.send([1, 2, 3])
        connection.readToEnd()
      }
      let client = try RawClient(to: upstream.port)
      let hello = ClientHello().bytes
      client.send(hello)
      #expect(try client.receive(atLeast: 3) == [1, 2, 3])
      client.send([9])
      client.socket.endSending()
      #expect(client.drain().ended)
      #expect(upstream.received == [hello + [9]])
      #expect(upstream.connectionCount == 1)
    }

    @Test(
      "What is not a silent refusal is not taken for one",
      arguments: [
        ("HTTP/1.1 200 OK\r\n\r\n", [], true),
        ("HTTP/1.1 200 OK\r\n\r\n", [21, 3, 3, 0, 2, 2, 49], true),
        ("HTTP/1.1 200 OK\r\n\r\n", [21, 3, 3, 0, 2, 2, 40], false),
        ("HTTP/1.1 200 OK\r\n\r\n", [22], false),
        ("HTTP/1.1 403 Forbidden\r\n\r\n", [], false),
      ] as [(String, [UInt8], Bool)])
    func refusalShape(head: String, rest: [UInt8], expected: Bool) {
      #expect(ProxyReply(Array(head.utf8) + rest).isSilentRefusal == expected)
    }

    @Test("A byte more than the ServerHello record is seen") func serverHelloAlone() {
      let head = Array("HTTP/1.1 200 OK\r\n\r\n".utf8)
      let hello: [UInt8] = [22, 3, 3, 0, 6, 2, 0, 0, 2, 3, 3]
      let change: [UInt8] = [20, 3, 3, 0, 1, 1]
      let alert: [UInt8] = [21, 3, 3, 0, 2, 2, 49]
      for bytes in [hello, hello + alert] { #expect(ProxyReply(head + bytes).isServerHelloAlone()) }
      for bytes in [hello + hello, hello + change + hello] {
        #expect(ProxyReply(head + bytes).isServerHelloAlone(retries: true))
        #expect(!ProxyReply(head + bytes).isServerHelloAlone())
      }
      let merged: [UInt8] = [22, 3, 3, 0, 10, 2, 0, 0, 2, 3, 3, 8, 0, 0, 0]
      for bytes in [
        [], alert, hello + [23], hello + change, hello + [23, 3, 3, 0, 1, 7], hello.dropLast(), merged,
        hello + alert + [0],
      ] {
        #expect(!ProxyReply(head + bytes).isServerHelloAlone(), "\(bytes)")
      }
    }
  }
}

/// The smallest CONNECT proxy: every tunnel goes to one port, nothing is looked at.
struct OpenProxy {
  private let listener: Listener
  var port: UInt16 { listener.port }

  init(to target: UInt16) throws {
    listener = try Listener { near in
      var head: [UInt8] = []
      while ProxyReply(head).head.isEmpty {
        guard case .bytes(let bytes) = near.receive(atMost: 1) else { return near.shutDown() }
        head += bytes
      }
      guard let far = try? Socket.connect(to: target) else { return near.shutDown() }
      near.send(Array("HTTP/1.1 200 OK\r\n\r\n".utf8))
      Tap.join(near, far, Tap.Connection())
    }
  }
}
