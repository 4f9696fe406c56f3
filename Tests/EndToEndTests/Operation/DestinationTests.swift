import Glibc
import Testing

extension Operation {
  /// Where tunnels may go, and who may ask for one.
  @Suite struct DestinationTests {
    private func connect(_ authority: String, _ settings: Settings) throws -> (reply: ProxyReply, reason: String) {
      let pinfold = try Pinfold(settings)
      let reply = try RawClient(to: pinfold.port).connect(authority)
      return (reply, try pinfold.reasons()[0])
    }

    private func open(_ unpinned: String = "tunnel") throws -> Settings {
      try Settings.pinned(Certificates.shared().ecdsa.pin, port: 1).with { $0.unpinned = unpinned }
    }

    /// Guards: the proxy as a way into the network it stands in. The guard looks at the resolved address, in every
    /// form an address can hide in.
    @Test(
      "An unpinned host at a private address is refused",
      arguments: [
        "127.0.0.1:443", "localhost:443", "[::1]:443", "10.1.2.3:443", "192.168.1.1:443", "172.16.0.1:443",
        "169.254.169.254:443", "100.64.0.1:443", "0.0.0.0:443", "[::ffff:127.0.0.1]:443", "[64:ff9b::7f00:1]:443",
        "[2002:7f00:1::]:443", "[fe80::1]:443", "[fd00::1]:443", "[::]:443",
      ])
    func privateAddress(authority: String) throws {
      let (reply, reason) = try connect(authority, open())
      #expect(reply.statusLine.hasPrefix("HTTP/1.1 403 "), "\(reply)")
      #expect(reply.field("Proxy-Status")?.contains("error=destination_ip_prohibited") == true, "\(reply)")
      #expect(reason == "destination_denied")
    }

    @Test("A block in `allow` opens it") func allowed() throws {
      let upstream = try FakeUpstream { $0.readToEnd() }
      let settings = try open().with {
        $0.allow = ["127.0.0.0/8"]
        $0.ports = [443, upstream.port]
      }
      let pinfold = try Pinfold(settings)
      #expect(try RawClient(to: pinfold.port).connect("127.0.0.1:\(upstream.port)").statusLine.contains(" 200"))
    }

    /// Guards: the proxy as its own upstream, by an address that only the system knows to be this machine's.
    @Test(
      "A listener on all addresses is no destination at any of them",
      .enabled(if: OwnAddress.outside != nil, "this machine has no address but loopback's"))
    func ownAddress() throws {
      let own = try #require(OwnAddress.outside)
      let settings = try open().with { $0.allow = ["0.0.0.0/0"] }
      let first = try Pinfold(settings)
      let ports = [first.port, first.admin]
      try first.workspace.write(
        "pinfold.json5",
        settings.with { $0.ports = ports }.configurationText(
          proxy: ports[0], admin: ports[1], trustedKey: first.trustedKey))
      first.child.signal(SIGTERM)
      _ = try first.child.wait()
      let pinfold = try Pinfold(
        after: first,
        environment: ["PINFOLD_LISTEN": "0.0.0.0:\(ports[0])", "PINFOLD_ADMIN": "0.0.0.0:\(ports[1])"])
      for port in ports {
        let reply = try RawClient(to: pinfold.port).connect("\(own):\(port)")
        #expect(reply.statusLine.hasPrefix("HTTP/1.1 403 "), "\(reply)")
      }
      #expect(try pinfold.reasons(2) == ["destination_denied", "destination_denied"])
    }

    @Test("A rule with a port opens that port for that host alone") func portOfRule() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let settings = try Settings.pinned(certificates.other.pin, port: 1).with {
        $0.hosts["api.pinfold.test:8443"] = "{ pins: [\"\(certificates.ecdsa.pin)\"] }"
        $0.resolve["api.pinfold.test:8443"] = server.port
      }
      let pinfold = try Pinfold(settings)
      let fetched = try Client.curl.fetch("https://api.pinfold.test:8443/", proxy: pinfold.port)
      #expect(fetched.succeeded, "\(fetched)")
      #expect(try RawClient(to: pinfold.port).connect("www.pinfold.test:8443").statusLine.contains(" 403"))
    }

    @Test("A client that is not listed is refused") func clients() throws {
      let (reply, reason) = try connect("api.pinfold.test:443", open().with { $0.clients = ["10.0.0.0/8"] })
      #expect(reply.statusLine.hasPrefix("HTTP/1.1 403 "), "\(reply)")
      #expect(reply.field("Proxy-Status")?.contains(#"details="client_denied""#) == true, "\(reply)")
      #expect(reason == "client_denied")
    }

    @Test("A name that does not resolve is 502 or, where no resolver answers, 504") func unresolved() throws {
      let (reply, reason) = try connect("no-such-host.invalid:443", open())
      #expect(["502", "504"].contains { reply.statusLine.hasPrefix("HTTP/1.1 \($0) ") }, "\(reply)")
      #expect(reply.field("Proxy-Status")?.contains("error=dns_") == true, "\(reply)")
      #expect(reason == "upstream_unreachable")
    }

    /// A listener whose queue is full answers no SYN: the one way to stall a connection on loopback.
    @Test("A destination that does not answer is 504 after connect_seconds") func connectTimeout() throws {
      let port = try FreePort.next()
      let listener = try #require(try Socket.listen(on: port, backlog: 0))
      var queued: [Socket] = []
      while queued.count < 8, let socket = try Socket.connect(to: port, timeout: 0.3) { queued.append(socket) }
      let settings = try Settings.pinned(Certificates.shared().ecdsa.pin, port: port).with {
        $0.limits["connect_seconds"] = 1
      }
      let (reply, reason) = try connect("api.pinfold.test:443", settings)
      #expect(reply.statusLine.hasPrefix("HTTP/1.1 504 "), "\(reply)")
      #expect(reply.field("Proxy-Status")?.contains("error=connection_timeout") == true, "\(reply)")
      #expect(reason == "upstream_unreachable")
      withExtendedLifetime((listener, queued)) {}
    }

    /// Guards: pins do not outlive their date.
    @Test("A rule whose pins have expired is refused") func expiredPins() throws {
      let settings = try Settings.pinned(
        Certificates.shared().ecdsa.pin, port: 1, rule: #"expires_at: "2021-01-01T00:00:00Z""#)
      let (reply, reason) = try connect("api.pinfold.test:443", settings)
      #expect(!reply.statusLine.contains(" 200"), "\(reply)")
      #expect(reason == "pins_expired")
    }
  }
}
