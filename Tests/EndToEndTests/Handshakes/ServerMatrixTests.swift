import Testing

extension Handshakes {
  /// Other servers, old versions, every key exchange and signature algorithm: each passes by its own pin and is
  /// refused by another's, since a scheme that cannot be verified must not pass, and one that can must not be refused.
  ///
  /// Guards: the ServerKeyExchange signature for each scheme, cipher and version; the choice between two identities.
  @Suite struct ServerMatrixTests {
    enum Software: Sendable {
      case nginx(String, curve: String = "auto")
      case openssl([String])
      case gnutls(String)
    }

    struct Row: Sendable, CustomTestStringConvertible {
      let testDescription: String
      let software: Software
      let identity: @Sendable (Certificates) -> Certificates.Identity
      var options: [String] = []
      /// Whether a HelloRetryRequest comes first.
      var retries: Bool { testDescription.contains("HelloRetryRequest") }
    }

    private static let old = ["--tlsv1.0", "--ciphers", "ALL:@SECLEVEL=0"]
    private static func openssl(_ version: String, _ ciphers: String) -> Software {
      .openssl([version, "-cipher", "\(ciphers):@SECLEVEL=0"])
    }
    private static func capped(_ version: String) -> [String] { old + ["--tls-max", version] }

    static let rows = [
      Row(
        testDescription: "TLS 1.0, ECDHE, RSA over MD5 and SHA-1", software: openssl("-tls1", "ECDHE"),
        identity: \.rsa, options: capped("1.0")),
      Row(
        testDescription: "TLS 1.0, ECDHE, ECDSA over SHA-1", software: openssl("-tls1", "ECDHE"),
        identity: \.ecdsa, options: capped("1.0")),
      Row(
        testDescription: "TLS 1.1, DHE, RSA", software: openssl("-tls1_1", "DHE"), identity: \.rsa,
        options: capped("1.1")),
      Row(
        testDescription: "TLS 1.2, ECDHE, RSA", software: openssl("-tls1_2", "ECDHE-RSA-AES128-GCM-SHA256"),
        identity: \.rsa, options: capped("1.2")),
      Row(
        testDescription: "TLS 1.2, DHE, RSA", software: openssl("-tls1_2", "DHE-RSA-AES256-GCM-SHA384"),
        identity: \.rsa, options: capped("1.2")),
      Row(
        testDescription: "TLS 1.2, static RSA", software: openssl("-tls1_2", "AES128-SHA"), identity: \.rsa,
        options: capped("1.2")),
      Row(
        testDescription: "TLS 1.2, ECDHE, ChaCha20, ECDSA",
        software: openssl("-tls1_2", "ECDHE-ECDSA-CHACHA20-POLY1305"), identity: \.ecdsa, options: capped("1.2")),
      Row(
        testDescription: "TLS 1.2, ECDHE, Ed25519", software: openssl("-tls1_2", "ECDHE"), identity: \.ed25519,
        options: capped("1.2")),
      Row(
        testDescription: "gnutls-serv, TLS 1.2", software: .gnutls("NORMAL:-VERS-ALL:+VERS-TLS1.2"), identity: \.ecdsa),
      Row(
        testDescription: "gnutls-serv, TLS 1.2, RSA-PSS",
        software: .gnutls("NORMAL:-VERS-ALL:+VERS-TLS1.2:-SIGN-ALL:+SIGN-RSA-PSS-RSAE-SHA256"), identity: \.rsa),
      Row(
        testDescription: "gnutls-serv, TLS 1.3", software: .gnutls("NORMAL:-VERS-ALL:+VERS-TLS1.3"), identity: \.rsa),
      Row(
        testDescription: "nginx, TLS 1.3 after a HelloRetryRequest",
        software: .nginx("TLSv1.3", curve: "secp384r1"), identity: \.ecdsa),
      Row(testDescription: "TLS 1.3, ECDSA", software: .openssl(["-tls1_3"]), identity: \.ecdsa),
      Row(
        testDescription: "TLS 1.3, finite-field groups after a HelloRetryRequest",
        software: .openssl(["-tls1_3", "-groups", "ffdhe2048"]), identity: \.rsa,
        options: ["--curves", "X25519:ffdhe2048"]),
      Row(testDescription: "nginx, TLS 1.3, Ed25519", software: .nginx("TLSv1.3"), identity: \.ed25519),
      Row(testDescription: "nginx, TLS 1.3, RSA-PSS", software: .nginx("TLSv1.3"), identity: \.rsa),
      Row(testDescription: "nginx, TLS 1.2 or 1.3", software: .nginx("TLSv1.2 TLSv1.3"), identity: \.ecdsa),
    ]

    /// A port where the software answers, and what has to live as long.
    private func start(_ row: Row) throws -> (port: UInt16, owners: [AnyObject]) {
      let identity = row.identity(try Certificates.shared())
      switch row.software {
      case .nginx(let protocols, let curve):
        let server = try Servers.nginx(identity, protocols: protocols, curve: curve)
        return (server.port, [server])
      case .openssl(let options):
        // s_server takes one connection at a time. The probe's stands beside the app's, so two take turns.
        let servers = try [Servers.openssl(identity, options), Servers.openssl(identity, options)]
        let tap = try Tap(to: servers[0].port, servers[1].port)
        return (tap.port, servers + [tap])
      case .gnutls(let priority):
        let server = try Servers.gnutls(identity, priority: priority)
        return (server.port, [server])
      }
    }

    @Test("The right pin passes, another is refused with pin_mismatch", arguments: rows) func pins(row: Row) throws {
      let certificates = try Certificates.shared()
      let server = try start(row)
      defer { withExtendedLifetime(server.owners) {} }
      let right = try Settings.pinned(row.identity(certificates).pin, port: server.port)
      let passing = try Pinfold(right)
      let fetched = try Client.curl.fetch(proxy: passing.port, options: row.options)
      #expect(fetched.succeeded, "\(fetched)")
      #expect(try passing.reasons() == ["pin_match"])

      let refusing = try Pinfold(.pinned(certificates.other.pin, port: server.port))
      let tap = try Tap(to: refusing.port)
      #expect(try !Client.curl.fetch(proxy: tap.port, options: row.options).succeeded)
      let reasons = try refusing.reasons()
      #expect(reasons == ["pin_mismatch"], "\(reasons) \(refusing.child.errors)")
      for connection in tap.connections {
        let reply = ProxyReply(connection.backward.all)
        #expect(reply.isSilentRefusal(allowsRetry: row.retries), "\(reply)")
      }
    }

    @Test(
      "Of two identities on one server the one that this client was shown is judged",
      arguments: [("ECDHE-ECDSA-AES128-GCM-SHA256", true), ("ECDHE-RSA-AES128-GCM-SHA256", false)], [false, true])
    func twoIdentities(shown: (ciphers: String, isECDSA: Bool), pinsECDSA: Bool) throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.rsa, certificates.ecdsa, protocols: "TLSv1.2")
      let pin = pinsECDSA ? certificates.ecdsa.pin : certificates.rsa.pin
      let pinfold = try Pinfold(.pinned(pin, port: server.port))
      let options = ["--tls-max", "1.2", "--ciphers", shown.ciphers]
      let fetched = try Client.curl.fetch(proxy: pinfold.port, options: options)
      let isPinned = shown.isECDSA == pinsECDSA
      #expect(fetched.succeeded == isPinned, "\(fetched)")
      #expect(try pinfold.reasons() == [isPinned ? "pin_match" : "pin_mismatch"])
    }
  }
}
