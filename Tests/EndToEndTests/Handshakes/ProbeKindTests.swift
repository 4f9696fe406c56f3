import Testing

extension Handshakes {
  /// Which probe vouched for a TLS 1.3 handshake, by the metric: a twin of the app's hello, for every client, server
  /// and shape of handshake here. OpenSSL's own hello can be told apart, so that it stands in must be seen.
  @Suite struct ProbeKindTests {
    struct Row: Sendable, CustomTestStringConvertible {
      let testDescription: String
      let start: @Sendable (Certificates.Identity) throws -> Servers.Running
    }

    static let rows = [
      Row(testDescription: "nginx", start: { try Servers.nginx($0, protocols: "TLSv1.3") }),
      Row(
        testDescription: "nginx, which asks most clients for another key share",
        start: { try Servers.nginx($0, protocols: "TLSv1.3", curve: "secp384r1") }),
      // It serves one connection at a time: pairs are drawn until the probe's is served first.
      Row(testDescription: "openssl s_server", start: { try Servers.openssl($0, ["-tls1_3"]) }),
    ]

    @Test("Every client is vouched for by a twin of its hello", arguments: rows) func twins(row: Row) throws {
      let certificates = try Certificates.shared()
      let server = try row.start(certificates.ecdsa)
      let settings = try Settings.pinned(certificates.ecdsa.pin, port: server.port).with {
        $0.limits["handshake_seconds"] = 15
      }
      let pinfold = try Pinfold(settings)
      for (number, client) in Client.allCases.enumerated() {
        let fetched = try client.fetch(proxy: pinfold.port)
        #expect(fetched.succeeded, "\(fetched) \(pinfold.child.errors)")
        let twins = try pinfold.metrics().sum("pinfold_probe_total", #"kind="twin""#, #"result="success""#)
        #expect(twins == Double(number + 1), "\(client)")
      }
      #expect(try pinfold.reasons(Client.allCases.count).allSatisfy { $0 == "pin_match" })
      let metrics = try pinfold.metrics()
      #expect(metrics.sum("pinfold_probe_total") == Double(Client.allCases.count))
      #expect(metrics.sum("pinfold_verifications_total", #"method="probe""#, #"result="success""#) == 5)
    }

    /// Guards: that such an upstream can be used at all, and that what a probe found ahead is held against the pins.
    @Test(
      "An upstream that serves one connection at a time and asks for a second hello is probed ahead",
      arguments: [true, false])
    func retriedAhead(isPinned: Bool) throws {
      let certificates = try Certificates.shared()
      let server = try Servers.openssl(certificates.ecdsa, ["-tls1_3", "-groups", "P-384"])
      let pin = isPinned ? certificates.ecdsa.pin : certificates.other.pin
      let settings = try Settings.pinned(pin, port: server.port).with { $0.limits["handshake_seconds"] = 20 }
      let pinfold = try Pinfold(settings)
      let tap = try Tap(to: pinfold.port)
      let fetched = try Client.curl.fetch(proxy: tap.port)
      #expect(fetched.succeeded == isPinned, "\(fetched) \(pinfold.child.errors)")
      #expect(try pinfold.reasons() == [isPinned ? "pin_match" : "pin_mismatch"])
      #expect(try pinfold.metrics().sum("pinfold_probe_total", #"kind="openssl""#, #"result="success""#) == 1)
      if !isPinned {
        #expect(tap.connections.allSatisfy { ProxyReply($0.backward.all).isSilentRefusal(allowsRetry: true) })
      }
    }

    /// Guards: that nothing is passed to the app for a key log, and no outcome is kept, before it is known that the probe
    /// is served as well.
    @Test(
      "An upstream that serves one connection at a time can be probed where a key log waits for a line, and for reuse",
      arguments: [true, false])
    func oneAtATime(hasKeyLog: Bool) throws {
      let certificates = try Certificates.shared()
      let server = try Servers.openssl(certificates.ecdsa, ["-tls1_3"])
      let settings = try Settings.pinned(certificates.ecdsa.pin, port: server.port).with {
        $0.limits["handshake_seconds"] = 20
        if hasKeyLog { $0.keyLog = "keys" } else { $0.probeReuse = 60 }
      }
      let pinfold = try Pinfold(settings)
      for _ in 0..<4 {
        let fetched = try Client.curl.fetch(proxy: pinfold.port)
        #expect(fetched.succeeded, "\(fetched) \(pinfold.child.errors)")
      }
      #expect(try pinfold.reasons(4) == Array(repeating: "pin_match", count: 4))
      let kind = hasKeyLog ? #"kind="twin""# : #"kind="openssl""#
      // A probe that is used again was made once.
      #expect(try pinfold.metrics().sum("pinfold_probe_total", kind, #"result="success""#) == (hasKeyLog ? 4 : 1))
    }

    @Test("A twin that is shown a key without its pin vouches for nothing") func mismatch() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.3")
      let pinfold = try Pinfold(.pinned(certificates.other.pin, port: server.port))
      let tap = try Tap(to: pinfold.port)
      for client in Client.allCases {
        #expect(try !client.fetch(proxy: tap.port).succeeded)
      }
      #expect(try pinfold.reasons(5).allSatisfy { $0 == "pin_mismatch" })
      #expect(tap.connections.allSatisfy { ProxyReply($0.backward.all).isSilentRefusal })
      // The handshake of the probe itself succeeded: the verdict is another matter.
      #expect(try pinfold.metrics().sum("pinfold_probe_total", #"kind="twin""#, #"result="success""#) == 5)
    }

    private struct Offer {
      let client: Command
      let reasons: [String]
      let twins: Double
    }

    /// A client that made a session at one server and offers it at `api`. Both servers have one identity, and keys of
    /// their own for tickets: what one gave out the other declines.
    private func offer(fromAnother: Bool, _ change: (inout Settings) -> Void) throws -> Offer {
      let certificates = try Certificates.shared()
      let another = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.3")
      let api = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.3")
      let pinfold = try Pinfold(Settings.pinned(certificates.ecdsa.pin, port: api.port).with(change))
      let client = try Command([
        "python3", "\(Client.scripts)/offer_session.py", "\(pinfold.port)", certificates.rootFile,
        "\(fromAnother ? another.port : api.port)", "https://api.pinfold.test/",
      ])
      return Offer(
        client: client, reasons: try pinfold.reasons(),
        twins: try pinfold.metrics().sum("pinfold_probe_total", #"kind="twin""#, #"result="success""#))
    }

    /// Guards: the hello that offers a session can be told from its twin by replaying both to the server that gave it
    /// out, so an upstream that declines it may be somebody else.
    @Test("An upstream that declines the offered session: probed, or refused where the policy is strict")
    func declined() throws {
      let lax = try offer(fromAnother: true) { $0.pskDeclined = "probe" }
      #expect(lax.client.succeeded && lax.client.output == "full\n", "\(lax.client)")
      #expect(lax.reasons == ["pin_match"] && lax.twins == 1)

      let strict = try offer(fromAnother: true) { $0.pskDeclined = "refuse" }
      #expect(strict.client.ending == .exited(1), "\(strict.client)")
      #expect(strict.reasons == ["psk_declined"])
    }

    /// Guards: in a resumed session no certificate is shown.
    @Test("A session that Pinfold has not seen made: probed, or refused where the policy is strict")
    func accepted() throws {
      let lax = try offer(fromAnother: false) { $0.resumption = "probe" }
      #expect(lax.client.succeeded && lax.client.output == "resumed\n", "\(lax.client)")
      #expect(lax.reasons == ["pin_match"] && lax.twins == 1)

      let strict = try offer(fromAnother: false) { $0.resumption = "refuse" }
      #expect(strict.client.ending == .exited(1), "\(strict.client)")
      #expect(strict.reasons == ["resumption_unverified"])
    }
  }
}
