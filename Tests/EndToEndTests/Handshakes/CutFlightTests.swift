import Testing

extension Handshakes {
  /// A genuine flight that ends early or comes in crumbs. Guards: no prefix of a flight may be enough for a verdict,
  /// and no way of cutting it may change one.
  @Suite struct CutFlightTests {
    /// Sends the hello on to the genuine server and gives its flight to a function.
    private func relay(
      to server: UInt16, _ deliver: @escaping @Sendable ([UInt8], Socket) -> Void
    ) throws -> FakeUpstream {
      try FakeUpstream { connection in
        let hello = connection.readRecord()
        guard let genuine = try? Socket.connect(to: server) else { return }
        genuine.send(hello)
        var flight: [UInt8] = []
        genuine.setTimeout(seconds: 0.3)
        while case .bytes(let bytes) = genuine.receive() { flight += bytes }
        deliver(flight, connection.socket)
      }
    }

    @Test(
      "A flight cut short is refused, and none of it passed on",
      arguments: [0, 1, 5, 6, 60, 100, 400, 700, -20, -5, -1])
    func cutShort(count: Int) throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let upstream = try relay(to: server.port) { flight, socket in
        socket.send(Array(count >= 0 ? flight.prefix(count) : flight.dropLast(-count)))
      }
      let pinfold = try Pinfold(.pinned(certificates.ecdsa.pin, port: upstream.port))
      let reply = try RawClient.exchange(proxy: pinfold.port, "api.pinfold.test:443", ClientHello().bytes)
      #expect(reply.isSilentRefusal, "\(reply)")
      #expect(try pinfold.reasons() == ["upstream_unreachable"])
    }

    @Test("A flight in pieces passes whole", arguments: [1, 2, 3, 7, 100, 1000]) func inPieces(size: Int) throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let sent = Recording()
      let upstream = try relay(to: server.port) { flight, socket in
        sent.append(flight)
        for start in stride(from: 0, to: flight.count, by: size) {
          socket.send(Array(flight[start..<min(start + size, flight.count)]))
        }
      }
      let pinfold = try Pinfold(.pinned(certificates.ecdsa.pin, port: upstream.port))
      let reply = try RawClient.exchange(proxy: pinfold.port, "api.pinfold.test:443", ClientHello().bytes)
      #expect(reply.rest == sent.all && sent.count > 800)
      #expect(try pinfold.reasons() == ["pin_match"])
    }

    /// Guards: a byte changed in what the proof rests on cannot pass. The ServerHello's random and the parameters are
    /// covered by the signature, the certificate by pin and chain. (The session id is covered by nothing before the
    /// Finished messages, which the client checks.)
    @Test("A flight with one bit turned over is refused", arguments: [0, 1, 9, 20, 42, 80, 200, 500, 900, -30, -8, -3])
    func oneBitOver(place: Int) throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let upstream = try relay(to: server.port) { flight, socket in
        var flight = flight
        guard flight.count > 900 else { return }
        flight[place >= 0 ? place : flight.count + place] ^= 0x40
        socket.send(flight)
        _ = socket.receive()
      }
      let settings = try Settings.pinned(certificates.ecdsa.pin, port: upstream.port).with {
        $0.limits["handshake_seconds"] = 1
      }
      let pinfold = try Pinfold(settings)
      let reply = try RawClient.exchange(proxy: pinfold.port, "api.pinfold.test:443", ClientHello().bytes)
      #expect(reply.isSilentRefusal, "\(reply)")
      #expect(try pinfold.reasons() != ["pin_match"])
    }

    @Test("A ClientHello in pieces is judged like a whole one", arguments: [(1, 16384), (16384, 1), (3, 5), (1, 1)])
    func helloInPieces(segment: Int, record: Int) throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      // nginx's own OpenSSL refuses more than a few records a message; the fake takes any and answers honestly.
      let upstream = try FakeUpstream { connection in
        var bytes = connection.readRecord()
        connection.socket.setTimeout(seconds: 0.3)
        while case .bytes(let more) = connection.socket.receive() { bytes += more }
        guard let genuine = try? Socket.connect(to: server.port) else { return }
        genuine.send(TLSRecords.joined(bytes))
        genuine.setTimeout(seconds: 0.3)
        while case .bytes(let flight) = genuine.receive() { connection.socket.send(flight) }
      }
      var hello = ClientHello()
      hello.recordSize = record
      let bytes = hello.bytes
      let pinfold = try Pinfold(.pinned(certificates.ecdsa.pin, port: upstream.port))
      let client = try RawClient(to: pinfold.port)
      let head = try client.connect("api.pinfold.test:443")
      #expect(head.statusLine.contains(" 200"))
      for start in stride(from: 0, to: bytes.count, by: segment) {
        client.send(Array(bytes[start..<min(start + segment, bytes.count)]))
      }
      #expect(try client.receive(atLeast: 800).first == 22)
      client.socket.shutDown()
      #expect(try pinfold.reasons() == ["pin_match"])
    }
  }
}
