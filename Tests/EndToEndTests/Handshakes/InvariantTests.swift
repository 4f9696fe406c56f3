import Testing

extension Handshakes {
  /// Before an allow verdict no client byte but the ClientHello goes up, and no flight byte comes down.
  @Suite struct InvariantTests {
    /// Guards: the held client side. Whatever is sent behind the hello waits for the verdict.
    @Test("Bytes sent behind the ClientHello do not reach an upstream that has not proven its key")
    func clientBytesWait() throws {
      let certificates = try Certificates.shared()
      let genuine = try Servers.nginx(certificates.other, protocols: "TLSv1.2")
      let tap = try Tap(to: genuine.port)
      let pinfold = try Pinfold(.pinned(certificates.ecdsa.pin, port: tap.port))
      let hello = ClientHello().bytes
      let reply = try RawClient.exchange(
        proxy: pinfold.port, "api.pinfold.test:443", hello + [23, 3, 3, 0, 4, 1, 2, 3, 4])
      #expect(reply.isSilentRefusal, "\(reply)")
      #expect(try pinfold.reasons() != ["pin_match"])
      for connection in tap.connections { #expect(connection.forward.all.count <= hello.count) }
      #expect(tap.connections.contains { $0.backward.count > 800 }, "the upstream did answer")
    }

    /// Guards: SNI and CONNECT host are one; else a pinned name could be fetched under another name's rule.
    @Test(
      "The SNI has to be the CONNECT host",
      arguments: [("www.pinfold.test", "sni_mismatch"), (nil, "sni_missing")] as [(String?, String)])
    func serverName(name: String?, reason: String) throws {
      let upstream = try FakeUpstream { $0.readToEnd() }
      let pinfold = try Pinfold(.pinned(Certificates.shared().ecdsa.pin, port: upstream.port))
      var hello = ClientHello()
      hello.serverName = name
      let reply = try RawClient.exchange(proxy: pinfold.port, "api.pinfold.test:443", hello.bytes)
      #expect(reply.isSilentRefusal)
      #expect(try pinfold.reasons() == [reason])
      #expect(upstream.received.joined().isEmpty, "not even the hello may go up")
    }

    @Test("SNI and CONNECT host are compared in their normal form") func serverNameIsNormalised() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let pinfold = try Pinfold(.pinned(certificates.ecdsa.pin, port: server.port))
      let client = try RawClient(to: pinfold.port)
      #expect(try client.connect("API.Pinfold.Test.:443").statusLine.contains(" 200"))
      client.send(ClientHello().bytes)
      #expect(try client.receive(atLeast: 800).first == 22)
    }

    struct Opening: Sendable, CustomTestStringConvertible {
      let testDescription: String
      let bytes: [UInt8]
      let reason: String
    }

    static let openings = [
      Opening(
        testDescription: "plain HTTP", bytes: Array("GET / HTTP/1.1\r\nHost: api.pinfold.test\r\n\r\n".utf8),
        reason: "not_tls"),
      Opening(
        testDescription: "an SSL 2.0 hello",
        bytes: [0x80, 0x2e, 1, 3, 1, 0, 0x15, 0, 0, 0, 0x10] + [UInt8](repeating: 1, count: 37),
        reason: "not_tls"),
      Opening(
        testDescription: "a DTLS 1.2 ClientHello",
        bytes: [22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64] + [1, 0, 0, 52, 0, 0, 0, 0, 0, 0, 0, 52, 0xfe, 0xfd],
        reason: "not_tls"),
      Opening(
        testDescription: "a mail program that would begin with STARTTLS", bytes: Array("EHLO app.test\r\n".utf8),
        reason: "not_tls"),
      Opening(testDescription: "an IMAP command", bytes: Array("a1 STARTTLS\r\n".utf8), reason: "not_tls"),
      Opening(
        testDescription: "a handshake message that is no ClientHello", bytes: [22, 3, 1, 0, 4, 2, 0, 0, 0],
        reason: "malformed_handshake"),
      Opening(
        testDescription: "a ClientHello of a megabyte",
        bytes: [22, 3, 1, 0x40, 0, 1, 0x10, 0, 0] + [UInt8](repeating: 0, count: 16380), reason: "hello_too_large"),
      Opening(
        testDescription: "two server names",
        bytes: {
          var hello = ClientHello()
          hello.extraExtensions = [0, 0, 0, 4, 0, 2, 0, 0]
          return hello.bytes
        }(), reason: "malformed_handshake"),
    ]

    /// Guards: what the client opens with is judged before anything goes up.
    @Test("What is no plain ClientHello never goes up", arguments: openings) func opening(row: Opening) throws {
      let upstream = try FakeUpstream { $0.readToEnd() }
      let pinfold = try Pinfold(.pinned(Certificates.shared().ecdsa.pin, port: upstream.port))
      let reply = try RawClient.exchange(proxy: pinfold.port, "api.pinfold.test:443", row.bytes)
      #expect(reply.isSilentRefusal, "\(reply)")
      #expect(try pinfold.reasons() == [row.reason])
      #expect(upstream.received.joined().isEmpty)
    }

    @Test("A client that sends nothing is timed out") func silentClient() throws {
      let upstream = try FakeUpstream { $0.readToEnd() }
      let settings = try Settings.pinned(Certificates.shared().ecdsa.pin, port: upstream.port).with {
        $0.limits["handshake_seconds"] = 1
      }
      let pinfold = try Pinfold(settings)
      let reply = try RawClient.exchange(proxy: pinfold.port, "api.pinfold.test:443", [])
      #expect(reply.isSilentRefusal)
      #expect(try pinfold.reasons() == ["handshake_timeout"])
    }
  }
}
