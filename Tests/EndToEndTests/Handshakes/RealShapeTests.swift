import Foundation
import Testing

extension Handshakes {
  /// Shapes of handshakes that take real programs on both sides.
  @Suite struct RealShapeTests {
    private static let keyLog = #"tls13: "key_log""#

    /// Guards: that a CertificateRequest is no obstacle, and that what the client answers is not touched.
    @Test(
      "Mutual TLS passes: the server knows the client by its certificate",
      arguments: [("TLSv1.2", "in_band", ""), ("TLSv1.3", "probe", ""), ("TLSv1.3", "key_log", Self.keyLog)])
    func mutual(protocols: String, method: String, rule: String) throws {
      let certificates = try Certificates.shared()
      let options = """
        ssl_verify_client on; ssl_verify_depth 3; ssl_client_certificate \(certificates.rootFile);
        location /who { return 200 "$ssl_client_s_dn"; }
        """
      let server = try Servers.nginx(certificates.ecdsa, protocols: protocols, options: options)
      let settings = try KeyLogTests.settings(certificates.ecdsa.pin, port: server.port, rule: rule)
      let pinfold = try Pinfold(settings.with { if rule.isEmpty { $0.keyLog = nil } })
      let identity = ["--cert", certificates.client.chainFile, "--key", certificates.client.keyFile]
      let fetched = try Client.curl.fetch(
        "https://api.pinfold.test/who", proxy: pinfold.port, options: identity,
        keyLog: rule.isEmpty ? nil : pinfold.workspace.path("keys"))
      #expect(fetched.succeeded && fetched.output == "CN=client", "\(fetched)")
      #expect(try pinfold.reasons() == ["pin_match"])
      let count = try pinfold.metrics().sum("pinfold_verifications_total", #"method="\#(method)""#)
      #expect(count == 1, "\(pinfold.decisions)")
    }

    /// Guards: invariant 1. 0-RTT data is the client's application data, and the server has to discard it anyway.
    @Test("0-RTT data between two hellos is dropped") func earlyData() throws {
      let certificates = try Certificates.shared()
      let first = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.3", options: "ssl_early_data on;")
      let second = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.3", curve: "secp384r1")
      let tap = try Tap(to: second.port)
      let pinfold = try Pinfold(.pinned(certificates.ecdsa.pin, port: tap.port))
      let workspace = try Workspace("early")
      let request = try workspace.write("request", "GET / HTTP/1.0\r\n\r\n")
      let session = workspace.path("session")
      // s_client ends with its input: the server needs a moment for its tickets, and for its answer.
      let base =
        "openssl s_client -servername api.pinfold.test -tls1_3 -quiet -ign_eof -CAfile \(certificates.rootFile)"
      try Command.output([
        "sh", "-c", "\(base) -connect 127.0.0.1:\(first.port) -sess_out \(session) < \(request)",
      ])
      let client = try Command([
        "sh", "-c",
        "\(base) -proxy 127.0.0.1:\(pinfold.port) -connect api.pinfold.test:443 -groups X25519:P-384"
          + " -sess_in \(session) -early_data \(request) < \(request)",
      ])
      #expect(client.succeeded && client.output.contains(Servers.greeting), "\(client)")
      #expect(try pinfold.reasons() == ["pin_match"])
      var announced = 0
      for connection in tap.connections {
        let types = TLSRecords.types(connection.forward.all).types
        let hellos = types.indices.filter { types[$0] == 22 }
        try #require(hellos.count >= 2, "\(types)")
        #expect(!types[..<hellos[1]].contains(23), "\(types)")
        announced += 1
      }
      #expect(announced == 2)
    }

    /// A session of TLS 1.2 is offered by a ticket, or by the id under which the server keeps it.
    private static let kinds = ["", "ssl_session_tickets off; ssl_session_cache shared:ids:1m;"]

    /// Guards: a twin carries the app's session of TLS 1.2, so an old server resumes there too and shows no key.
    @Test(
      "A session of TLS 1.2 in a hello that offers 1.3: an unknown one is probed by a hello without it",
      arguments: [true, false], kinds)
    func oldSession(isPinned: Bool, kind: String) throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2", options: kind)
      let pin = isPinned ? certificates.ecdsa.pin : certificates.other.pin
      let pinfold = try Pinfold(.pinned(pin, port: server.port))
      let client = try offerOldSession(madeAt: server.port, through: pinfold)
      #expect(client.succeeded == isPinned, "\(client)")
      if isPinned { #expect(client.output == "resumed\n") }
      #expect(try pinfold.reasons() == [isPinned ? "pin_match" : "pin_mismatch"])
      let metrics = try pinfold.metrics()
      #expect(metrics.sum("pinfold_probe_total", #"kind="openssl""#, #"result="success""#) == 1)
      #expect(metrics.sum("pinfold_verifications_total", #"method="probe""#) == 1)
    }

    /// Two servers behind one address, of which only one knows the ticket: whichever of a pair it resumes, the other one
    /// shows a key. Guards: that a twin which is resumed vouches for nothing, whatever the app's connection shows.
    @Test("A twin that is resumed vouches for nothing", arguments: [true, false]) func resumedTwin(isPinned: Bool)
      throws
    {
      let certificates = try Certificates.shared()
      let old = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let new = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.3")
      let pin = isPinned ? certificates.ecdsa.pin : certificates.other.pin
      for _ in 0..<6 {
        let tap = try Tap(to: old.port, new.port)
        let pinfold = try Pinfold(.pinned(pin, port: tap.port))
        let client = try offerOldSession(madeAt: old.port, through: pinfold)
        let reason = try pinfold.reasons()[0]
        // The app's connection was TLS 1.3 and the twin resumed; or the other way round, and a third was probed.
        let reasons = ["probe_failed", isPinned ? "pin_match" : "pin_mismatch"]
        #expect(reasons.contains(reason), "\(pinfold.decisions)")
        #expect(client.succeeded == (reason == "pin_match"), "\(client)")
      }
    }

    /// Guards: that no look at the two hellos says which is the app's. OpenSSL makes the session id a hash of the ticket,
    /// and an id without a ticket was seen when the server gave it.
    @Test("Both hellos offer a session of TLS 1.2 by the same id, and so do the second ones", arguments: kinds)
    func sameSession(kind: String) throws {
      let certificates = try Certificates.shared()
      let old = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2", options: kind)
      let new = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.3", curve: "secp384r1")
      let tap = try Tap(to: new.port)
      let pinfold = try Pinfold(.pinned(certificates.ecdsa.pin, port: tap.port))
      let client = try offerOldSession(madeAt: old.port, through: pinfold)
      #expect(client.succeeded && client.output == "full\n", "\(client)")
      #expect(try pinfold.reasons() == ["pin_match"])
      let legs = try tap.connections.map { try Self.hellos($0.forward.all) }
      #expect(legs.map(\.count) == [2, 2])
      let hellos = legs.joined()
      #expect(Set(hellos.map(\.random)).count == 2 && Set(hellos.map { $0.random.prefix(4) }).count == 1)
      let offers = Set(hellos.map { [$0.sessionID, $0.ticket] })
      let offer = try #require(offers.first)
      #expect(offers.count == 1 && offer[0].count == 32 && offer[1].isEmpty != kind.isEmpty, "\(offers)")
      guard kind.isEmpty else { return }
      let workspace = try Workspace("ticket")
      try Data(offer[1]).write(to: workspace.folder.appending(path: "ticket"))
      let hash = try Command.output(["openssl", "dgst", "-sha256", "-r", workspace.path("ticket")])
      #expect(hash.hasPrefix(offer[0].map { String(format: "%02x", $0) }.joined()))
    }

    /// The ClientHellos among the records of a client.
    private static func hellos(_ bytes: [UInt8]) throws -> [HelloFingerprint] {
      var found: [HelloFingerprint] = []
      var rest = bytes[...]
      while let length = TLSRecords.firstLength(Array(rest.prefix(5))), rest.count >= length {
        if rest.first == 22 { found.append(try HelloFingerprint(Array(rest.prefix(length)))) }
        rest = rest.dropFirst(length)
      }
      return found
    }

    private func offerOldSession(madeAt port: UInt16, through pinfold: Pinfold) throws -> Command {
      try Command([
        "python3", "\(Client.scripts)/offer_session.py", "\(pinfold.port)", Certificates.shared().rootFile, "\(port)",
        "https://api.pinfold.test/", "--old",
      ])
    }
  }
}
