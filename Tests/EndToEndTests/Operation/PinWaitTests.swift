import Foundation
import Testing

extension Operation {
  /// Clients that wait for pins which a service is slow to give.
  @Suite struct PinWaitTests {
    private static let authority = "api.pinfold.test:443"

    private func active(_ pinfold: Pinfold) throws -> Double { try pinfold.metrics().sum("pinfold_tunnels_active") }

    /// Guards: tunnels that keep their places for ten seconds each though nobody is there any more: with a service that
    /// is silent, a handful of impatient clients would fill the house.
    @Test(
      "A client that leaves while its pins are fetched frees its tunnel at once", arguments: ["end", "reset", "half"])
    func leaves(_ how: String) throws {
      let service = try PinService { _ in .silence }
      let pinfold = try Pinfold(.supplied(service.section(RecordSigner()), port: 1))
      let clients = try (0..<5).map { _ in try RawClient(to: pinfold.port) }
      for client in clients { client.send(RawClient.head(Self.authority)) }
      try Wait.untilTrue("the service asked") { service.asked.count == 1 }
      #expect(try active(pinfold) == 5)
      Thread.sleep(forTimeInterval: 0.3)
      let left = ContinuousClock.now
      for client in clients {
        switch how {
        case "reset": client.socket.abort()
        case "half": client.socket.endSending()
        default: client.socket.shutDown()
        }
      }
      try Wait.untilTrue("no tunnel", seconds: 5) { try active(pinfold) == 0 }
      #expect(ContinuousClock.now - left < .seconds(2))
      #expect(try pinfold.reasons(5) == Array(repeating: "pins_unavailable", count: 5))
      for decision in pinfold.decisions {
        #expect(decision["detail"] as? String == "the client went away before its pins were there", "\(decision)")
      }
    }

    /// Guards: a fetch for all that ends with the client that happened to be first.
    @Test("The fetch goes on for whoever stays, and for whoever comes later") func others() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa)
      let signer = try RecordSigner()
      let record = try signer.record(certificates.ecdsa.pin)
      let service = try PinService { _ in .body(record) }
      service.delay(2)
      let pinfold = try Pinfold(.supplied(service.section(signer), port: server.port))
      let first = try RawClient(to: pinfold.port)
      first.send(RawClient.head(Self.authority))
      try Wait.untilTrue("the service asked") { service.asked.count == 1 }
      let second = try RawClient(to: pinfold.port)
      second.send(RawClient.head(Self.authority))
      try Wait.untilTrue("both wait") { try active(pinfold) == 2 }
      first.socket.shutDown()
      #expect(try pinfold.reasons() == ["pins_unavailable"])
      #expect(ProxyReply(try second.receive(atLeast: 12)).statusLine.contains(" 200"))
      second.socket.shutDown()
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
      #expect(service.asked.count == 1)
    }

    /// Guards: one client that asks for hosts nobody knows, each of which a silent service holds for ten seconds, until
    /// no other client gets pins for anything.
    @Test("A client that floods the service with unknown hosts keeps no other from its pins") func flood() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa)
      let signer = try RecordSigner()
      let service = try PinService { host in
        guard !host.hasPrefix("unknown"), let record = try? signer.record(certificates.ecdsa.pin, domain: host) else {
          return .silence
        }
        return .body(record)
      }
      let settings = try Settings.supplied(service.section(signer), port: server.port).with {
        $0.resolve["www.pinfold.test:443"] = server.port
        $0.limits["tunnels"] = 2000
      }
      let pinfold = try Pinfold(settings)
      // The last ones are hosts that others want: they wait behind the flood, or join it.
      let hosts = (0..<60).map { "unknown\($0)" } + ["www", "api"]
      let flood = try hosts.map { name in
        let client = try RawClient(to: pinfold.port, from: 2)
        client.send(RawClient.head("\(name).pinfold.test:443"))
        return client
      }
      try Wait.untilTrue("the flood") { try active(pinfold) == Double(flood.count) && service.asked.count >= 16 }
      Thread.sleep(forTimeInterval: 0.3)
      #expect(service.asked.count == 16)
      let start = ContinuousClock.now
      for url in ["https://api.pinfold.test/", "https://www.pinfold.test/"] {
        #expect(try Client.curl.fetch(url, proxy: pinfold.port).succeeded)
      }
      #expect(ContinuousClock.now - start < .seconds(5))
      #expect(service.asked.suffix(2) == ["api.pinfold.test", "www.pinfold.test"])
      // Those who flood are answered too, within their time.
      for client in flood.suffix(2) {
        #expect(ProxyReply(try client.receive(atLeast: 12)).statusLine.contains(" 200"))
      }
      // Nobody waits any more: what had not its turn is not asked for.
      for client in flood { client.socket.shutDown() }
      try Wait.untilTrue("no tunnel", seconds: 5) { try active(pinfold) == 0 }
      Thread.sleep(forTimeInterval: 11)
      #expect(service.asked.count == 18, "\(service.asked.count)")
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
    }

    @Test("What a client sends while it waits is neither lost nor taken for its leaving") func early() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.openssl(certificates.ecdsa, ["-tls1_2"])
      let signer = try RecordSigner()
      let record = try signer.record(certificates.ecdsa.pin)
      let service = try PinService { _ in .body(record) }
      service.delay(1)
      let pinfold = try Pinfold(.supplied(service.section(signer), port: server.port))
      let client = try RawClient(to: pinfold.port)
      client.send(RawClient.head(Self.authority))
      try Wait.untilTrue("the service asked") { service.asked.count == 1 }
      client.send("no TLS")
      let bytes = client.drain().bytes
      #expect(ProxyReply(bytes).statusLine.contains(" 200"), "\(String(decoding: bytes, as: UTF8.self))")
      #expect(try pinfold.reasons() == ["not_tls"])
    }

    @Test("A drain ends the wait") func drain() throws {
      let service = try PinService { _ in .silence }
      let settings = try Settings.supplied(service.section(RecordSigner()), port: 1).with {
        $0.limits["drain_seconds"] = 1
      }
      let pinfold = try Pinfold(settings)
      let client = try RawClient(to: pinfold.port)
      client.send(RawClient.head(Self.authority))
      try Wait.untilTrue("the service asked") { service.asked.count == 1 }
      let start = ContinuousClock.now
      pinfold.child.signal(SIGTERM)
      #expect(try pinfold.child.wait() == .exited(0))
      #expect(ContinuousClock.now - start < .seconds(6))
      #expect(pinfold.decisions.compactMap { $0["reason"] as? String } == ["limit_reached"], "\(pinfold.decisions)")
    }
  }
}
