import Testing

extension Handshakes {
  /// Unmodified clients against nginx. The pinned key passes; the same request to a key with a perfectly good
  /// certificate of the same authority, but not the pinned one, is refused and the client sees none of its flight.
  ///
  /// Guards: the pin check itself, in band (TLS 1.2) and by probe (TLS 1.3). The two cases differ in the pin alone.
  @Suite struct ClientMatrixTests {
    struct Row: Sendable, CustomTestStringConvertible {
      let client: Client
      let protocols: String
      var testDescription: String { "\(client.rawValue), \(protocols)" }
      /// How the key becomes known.
      var method: String { protocols == "TLSv1.2" ? "in_band" : "probe" }
    }

    static let rows = Client.allCases.flatMap { client in
      ["TLSv1.2", "TLSv1.3"].map { Row(client: client, protocols: $0) }
    }

    @Test("The pinned key passes", arguments: rows) func pinnedPasses(row: Row) throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: row.protocols)
      let pinfold = try Pinfold(.pinned(certificates.ecdsa.pin, port: server.port))
      let fetched = try row.client.fetch(proxy: pinfold.port)
      #expect(fetched.succeeded && fetched.output.contains(Servers.greeting), "\(fetched)")
      #expect(try pinfold.reasons() == ["pin_match"])
      let verified = try pinfold.metrics().sum(
        "pinfold_verifications_total", #"host="api.pinfold.test""#, #"method="\#(row.method)""#, #"result="success""#,
        #"reason="pin_match""#)
      #expect(verified == 1)
    }

    @Test("Another key of the same authority is refused, and nothing of its flight is passed on", arguments: rows)
    func otherKeyIsRefused(row: Row) throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.other, protocols: row.protocols)
      let pinfold = try Pinfold(.pinned(certificates.ecdsa.pin, port: server.port))
      let tap = try Tap(to: pinfold.port)
      let fetched = try row.client.fetch(proxy: tap.port)
      #expect(!fetched.succeeded, "\(fetched)")
      let reasons = try pinfold.reasons()
      #expect(Set(reasons) == ["pin_mismatch"])
      for connection in tap.connections {
        let reply = ProxyReply(connection.backward.all)
        #expect(reply.isSilentRefusal, "\(reply)")
      }
      let metrics = try pinfold.metrics()
      #expect(
        metrics.sum("pinfold_verifications_total", #"method="\#(row.method)""#, #"reason="pin_mismatch""#)
          == Double(reasons.count))
      #expect(
        metrics.sum("pinfold_tunnels_total", #"result="refused""#, #"reason="pin_mismatch""#) == Double(reasons.count))
      #expect(metrics.sum("pinfold_tunnels_total", #"result="allowed""#) == 0)
    }
  }
}
