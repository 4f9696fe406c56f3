import Testing

extension Operation {
  /// What a client is told before the 200. Guards: the strict reader of the CONNECT head. What another reader could
  /// take for something else is refused, not guessed at.
  @Suite struct ConnectHeadTests {
    struct Row: Sendable, CustomTestStringConvertible {
      let testDescription: String
      let head: String
      init(_ name: String, _ head: String) {
        testDescription = name
        self.head = head
      }
    }

    private static func line(_ target: String, _ fields: String = "") -> String {
      "CONNECT \(target) HTTP/1.1\r\n\(fields)\r\n"
    }

    static let malformed = [
      Row("bare line feeds", "CONNECT api.pinfold.test:443 HTTP/1.1\nHost: api.pinfold.test:443\n\n"),
      Row("a bare carriage return in a field", line("api.pinfold.test:443", "Host: api.pinfold.test:443\rX: y\r\n")),
      Row("two Host fields", line("api.pinfold.test:443", "Host: api.pinfold.test:443\r\nHost: b.test:443\r\n")),
      Row("a body by length", line("api.pinfold.test:443", "Content-Length: 5\r\n")),
      Row("a body in chunks", line("api.pinfold.test:443", "Transfer-Encoding: chunked\r\n")),
      Row("a folded field", line("api.pinfold.test:443", "X: a\r\n b\r\n")),
      Row("a space before the colon", line("api.pinfold.test:443", "Host : api.pinfold.test:443\r\n")),
      Row("a field without a name", line("api.pinfold.test:443", ": x\r\n")),
      Row("a NUL in a field", line("api.pinfold.test:443", "X: a\0b\r\n")),
      Row("a NUL in the host", line("api.pinfold.test\0.evil.test:443")),
      Row("no port", line("api.pinfold.test")),
      Row("port zero", line("api.pinfold.test:0")),
      Row("a port past 65535", line("api.pinfold.test:65536")),
      Row("a port with a sign", line("api.pinfold.test:+443")),
      Row("a port with a leading zero", line("api.pinfold.test:0443")),
      Row("user information", line("user@api.pinfold.test:443")),
      Row("a path", line("api.pinfold.test:443/")),
      Row("an absolute form", line("https://api.pinfold.test:443")),
      Row("an empty host", line(":443")),
      Row("an empty label", line("api..pinfold.test:443")),
      Row("IPv6 without brackets", line("::1:443")),
      Row("a number that some readers take for an address", line("2130706433:443")),
      Row("an address in short form", line("127.1:443")),
      Row("two spaces in the request line", "CONNECT  api.pinfold.test:443 HTTP/1.1\r\n\r\n"),
      Row("a version that does not exist", "CONNECT api.pinfold.test:443 HTTP/3.7\r\n\r\n"),
      Row("no version", "CONNECT api.pinfold.test:443\r\n\r\n"),
      Row("a head of more than 8 KiB", line("api.pinfold.test:443", "X: \(String(repeating: "x", count: 9000))\r\n")),
      Row("a TLS record", "\u{16}\u{3}\u{1}\u{0}\u{4}abcd\r\n\r\n"),
    ]

    /// One proxy for all rows: a refusal must not disturb the next tunnel either.
    private static let shared = Result { try Pinfold(.pinned(Certificates.shared().ecdsa.pin, port: 1)) }

    private func reply(to text: String) throws -> ProxyReply {
      let client = try RawClient(to: Self.shared.get().port)
      client.send(text)
      let (bytes, ended) = client.drain(seconds: 5)
      #expect(ended, "the connection stays open")
      return ProxyReply(bytes)
    }

    @Test("400 for a malformed head", arguments: malformed) func malformedHead(row: Row) throws {
      let reply = try reply(to: row.head)
      #expect(reply.statusLine.hasPrefix("HTTP/1.1 400 "), "\(reply)")
      #expect(reply.field("Proxy-Status")?.contains("error=") == true, "\(reply)")
    }

    @Test(
      "405 for other methods, with a sentence saying why",
      arguments: [
        "GET http://api.pinfold.test/ HTTP/1.1\r\nHost: api.pinfold.test\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST http://api.pinfold.test/ HTTP/1.1\r\nHost: api.pinfold.test\r\nContent-Length: 0\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: api.pinfold.test\r\n\r\n",
      ])
    func otherMethods(head: String) throws {
      let reply = try reply(to: head)
      #expect(reply.statusLine.hasPrefix("HTTP/1.1 405 "), "\(reply)")
      #expect(reply.field("Allow") == "CONNECT")
      let body = String(decoding: reply.rest, as: UTF8.self)
      #expect(body.split(separator: "\n").count == 1, "\(body)")
      if head.contains("http://") { #expect(body.contains("cannot be pinned"), "\(body)") }
      #expect(reply.field("Content-Length") == "\(reply.rest.count)")
    }

    @Test("403 for a host without pins, saying the reason twice over") func unpinned() throws {
      let reply = try reply(to: RawClient.head("unpinned.test:443"))
      #expect(reply.statusLine.hasPrefix("HTTP/1.1 403 "), "\(reply)")
      let status = reply.field("Proxy-Status") ?? ""
      #expect(
        status.contains("error=http_request_denied") && status.contains(#"details="unpinned_blocked""#), "\(status)")
      #expect(reply.field("Content-Length") == "\(reply.rest.count)")
    }

    @Test("403 for a port that is not listed") func port() throws {
      let reply = try reply(to: RawClient.head("api.pinfold.test:8443"))
      #expect(reply.statusLine.hasPrefix("HTTP/1.1 403 "), "\(reply)")
      #expect(reply.field("Proxy-Status")?.contains(#"details="destination_denied""#) == true, "\(reply)")
    }

    @Test("502 where nobody listens") func refused() throws {
      let reply = try reply(to: RawClient.head("api.pinfold.test:443"))
      #expect(reply.statusLine.hasPrefix("HTTP/1.1 502 "), "\(reply)")
      #expect(reply.field("Proxy-Status")?.contains("error=connection_refused") == true, "\(reply)")
    }

    /// Guards: the deadline on the head, against clients that send it a byte at a time or not at all.
    @Test("A head that never ends is given up") func slowHead() throws {
      let client = try RawClient(to: Self.shared.get().port)
      client.send("CONNECT api.pinfold.test:443 HTTP/1.1\r\nHo")
      let (bytes, ended) = client.drain(seconds: 30)
      #expect(ended)
      #expect(!ProxyReply(bytes).statusLine.contains(" 200"))
    }

    @Test("The ClientHello may come with the head in one segment, and the head byte by byte") func segments() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let pinfold = try Pinfold(.pinned(certificates.ecdsa.pin, port: server.port))
      let head = Array(RawClient.head("api.pinfold.test:443").utf8)
      let together = try RawClient(to: pinfold.port)
      together.send(head + ClientHello().bytes)
      #expect(try together.receive(atLeast: 800).count >= 800)
      let apart = try RawClient(to: pinfold.port)
      for byte in head { apart.send([byte]) }
      #expect(try !apart.receive(atLeast: 19).isEmpty)
      apart.send(ClientHello().bytes)
      #expect(try apart.receive(atLeast: 800).first == 22)
      // The decision line is written when a tunnel ends.
      for client in [together, apart] { client.socket.shutDown() }
      #expect(try pinfold.reasons(2) == ["pin_match", "pin_match"])
    }

    @Test("What is refused before the 200 counts in the tunnels' total alone") func counted() throws {
      let pinfold = try Pinfold(.pinned(Certificates.shared().ecdsa.pin, port: 1))
      let client = try RawClient(to: pinfold.port)
      #expect(try client.connect("unpinned.test:443").statusLine.contains(" 403"))
      #expect(try pinfold.reasons() == ["unpinned_blocked"])
      let metrics = try pinfold.metrics()
      #expect(metrics.sum("pinfold_tunnels_total", #"result="refused""#, #"reason="unpinned_blocked""#) == 1)
      #expect(metrics.sum("pinfold_verifications_total") == 0)
    }
  }
}
