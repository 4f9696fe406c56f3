import Testing

extension Handshakes {
  /// Upstreams that do not play by the rules, and clients that do not either, byte by byte. The hello is made by hand
  /// and knows TLS 1.2 only, so one connection goes upstream and all of it can be counted.
  @Suite struct HostileUpstreamTests {
    private static let authority = "api.pinfold.test:443"

    /// Runs one exchange against a script; the reply and the reasons given.
    private func run(
      _ upstream: FakeUpstream, hello: [UInt8] = ClientHello().bytes, change: (inout Settings) -> Void = { _ in }
    ) throws -> (reply: ProxyReply, reason: String) {
      let settings = try Settings.pinned(Certificates.shared().ecdsa.pin, port: upstream.port).with {
        $0.limits["handshake_seconds"] = 2
        change(&$0)
      }
      let pinfold = try Pinfold(settings)
      let reply = try RawClient.exchange(proxy: pinfold.port, Self.authority, hello)
      return (reply, try pinfold.reasons()[0])
    }

    /// Guards: the handshake deadline. A stalled upstream must not hold a tunnel, and must not open one.
    @Test("An upstream that never answers ends in handshake_timeout") func stalled() throws {
      let upstream = try FakeUpstream { $0.readToEnd(seconds: 10) }
      let hello = ClientHello().bytes
      let (reply, reason) = try run(upstream, hello: hello)
      #expect(reply.isSilentRefusal && reason == "handshake_timeout", "\(reason) \(reply)")
      #expect(upstream.received == [hello])
    }

    /// Guards: the deadline counts from the start of the handshake and is not pushed back by every byte.
    @Test("An upstream that drips a byte now and then ends in handshake_timeout too") func dripping() throws {
      let upstream = try FakeUpstream { connection in
        connection.readRecord()
        connection.socket.send([22, 3, 3, 0x20, 0])
        connection.socket.setTimeout(seconds: 0.2)
        for _ in 0..<40 {
          guard connection.socket.send([2]), connection.socket.receive() == .timeout else { return }
        }
      }
      let (reply, reason) = try run(upstream)
      #expect(reply.isSilentRefusal && reason == "handshake_timeout", "\(reason) \(reply)")
    }

    /// Guards: bytes before the ClientHello are no part of TLS and must neither pass nor be parsed as an answer.
    @Test("An upstream that speaks first is refused") func speaksFirst() throws {
      let upstream = try FakeUpstream { connection in
        connection.socket.send(Array("SSH-2.0-OpenSSH_9.2\r\n".utf8))
        connection.readToEnd(seconds: 3)
      }
      let (reply, reason) = try run(upstream)
      #expect(reply.isSilentRefusal && reason == "not_tls", "\(reason) \(reply)")
    }

    /// Guards: what is not TLS is not relayed as if it were.
    @Test("An upstream that answers in plain HTTP is refused") func plainAnswer() throws {
      let upstream = try FakeUpstream { connection in
        connection.readRecord()
        connection.socket.send(Array("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".utf8))
        connection.readToEnd(seconds: 3)
      }
      let (reply, reason) = try run(upstream)
      #expect(reply.isSilentRefusal && reason == "not_tls", "\(reason) \(reply)")
    }

    /// Guards: the signature over both randoms. The flight is genuine down to the last byte, only made for another
    /// client random: an attacker who relays a recorded Certificate message without its key looks exactly so. The
    /// pin, the chain and the name are right.
    @Test("A genuine flight made for another client random is refused with key_not_proven") func replayed() throws {
      let certificates = try Certificates.shared()
      let genuine = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let upstream = try FakeUpstream { connection in
        var hello = connection.readRecord()
        guard hello.count > 20, let server = try? Socket.connect(to: genuine.port) else { return }
        hello[15] ^= 1
        server.send(hello)
        server.setTimeout(seconds: 1)
        while case .bytes(let bytes) = server.receive() { connection.socket.send(bytes) }
        connection.readToEnd(seconds: 3)
      }
      let (reply, reason) = try run(upstream)
      #expect(reply.isSilentRefusal && reason == "key_not_proven", "\(reason) \(reply)")

      // The same relay with the random left alone passes, so the signature was the only cause.
      let honest = try FakeUpstream { connection in
        let hello = connection.readRecord()
        guard let server = try? Socket.connect(to: genuine.port) else { return }
        server.send(hello)
        server.setTimeout(seconds: 1)
        while case .bytes(let bytes) = server.receive() { connection.socket.send(bytes) }
      }
      let (passing, allowed) = try run(honest)
      #expect(allowed == "pin_match" && passing.rest.count > 800, "\(allowed)")
    }

    /// Guards: a fatal alert is for the app to read, and is no way through.
    @Test("A fatal alert instead of a ServerHello is passed on") func alertIsPassedOn() throws {
      let alert: [UInt8] = [21, 3, 3, 0, 2, 2, 40]
      let upstream = try FakeUpstream { connection in
        connection.readRecord()
        connection.socket.send(alert)
      }
      let (reply, reason) = try run(upstream)
      #expect(reply.rest == alert && reason == "upstream_unreachable", "\(reason) \(reply)")
    }

    /// Guards: memory. A flight without end must be cut off by its limit, not by the machine's.
    @Test("A flight without end is refused") func endless() throws {
      let upstream = try FakeUpstream { connection in
        connection.readRecord()
        // A Certificate message that claims its full 16 MiB, in full records.
        var record: [UInt8] = [22, 3, 3, 0x40, 0] + [11, 0xff, 0xff, 0xff] + [UInt8](repeating: 0, count: 16380)
        for _ in 0..<2000 {
          guard connection.socket.send(record) else { return }
          record = [22, 3, 3, 0x40, 0] + [UInt8](repeating: 0, count: 16384)
        }
      }
      let (reply, reason) = try run(upstream)
      #expect(reply.isSilentRefusal && reason == "malformed_handshake", "\(reason) \(reply)")
    }
  }
}
