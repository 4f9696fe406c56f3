import Foundation
import Glibc
import Testing

extension Operation {
  /// The proxy and the pin server together, over real upstreams. What one of them writes and the other reads otherwise
  /// would be found here.
  @Suite struct PinServerProxyTests {
    private static let host = "api.pinfold.test"

    private func section(_ server: PinServer, query: String = "", more: String = "") -> String {
      """
      { urls: ["http://\(server.fact("listen"))/v1/pins\(query)"], domains: ["*.pinfold.test"],
        trusted_keys: ["\(server.fact("trusted_key"))"], min_ttl_seconds: 1, \(more) }
      """
    }

    private func list(_ workspace: Workspace, _ pins: String...) throws -> String {
      let texts = pins.map { "\"\($0)\"" }.joined(separator: ", ")
      return try workspace.write("pins.json5", "{ \"\(Self.host)\": [\(texts)] }")
    }

    @Test(
      "A host that the pin server dialled is reached, in each format and with each key",
      arguments: [
        (.keygen, "ed25519"), (.ed25519, "ed25519"), (.p256, "jws"), (.ed25519, "jws"), (.keygen, "fingerprint"),
      ] as [(PinServer.Key, String)])
    func reached(_ key: PinServer.Key, _ format: String) throws {
      let certificates = try Certificates.shared()
      let upstream = try Servers.nginx(certificates.ecdsa)
      let server = try PinServer(
        key,
        [
          "--format", format, "--domain", "*.pinfold.test", "--ca-file", certificates.rootFile, "--resolve",
          "\(Self.host)=127.0.0.1:\(upstream.port)",
        ])
      let more = format == "fingerprint" ? "allow_unbound_signatures: true" : ""
      let pinfold = try Pinfold(.supplied(section(server, more: more), port: upstream.port))
      #expect(try Client.curl.fetch(proxy: pinfold.port).output.contains(Servers.greeting))
      #expect(try pinfold.reasons() == ["pin_match"])
      #expect(pinfold.decisions.first?["source"] as? String == "service")
    }

    @Test("A fingerprint is refused where unbound signatures are, and the refusal says so") func unbound() throws {
      let certificates = try Certificates.shared()
      let upstream = try Servers.nginx(certificates.ecdsa)
      let workspace = try Workspace("pins")
      let path = try list(workspace, certificates.ecdsa.pin)
      let server = try PinServer(.keygen, in: workspace, ["--format", "fingerprint", "--pins", path])
      let pinfold = try Pinfold(.supplied(section(server), port: upstream.port))
      #expect(try !Client.curl.fetch(proxy: pinfold.port).succeeded)
      #expect(try pinfold.reasons() == ["pins_unavailable"])
      #expect((pinfold.decisions.first?["detail"] as? String)?.hasPrefix("unbound") == true)
    }

    @Test("Backup pins of a JWS come when the URL asks for them", arguments: [true, false]) func backup(asks: Bool)
      throws
    {
      let certificates = try Certificates.shared()
      let upstream = try Servers.nginx(certificates.ecdsa)
      let workspace = try Workspace("pins")
      let path = try list(workspace, certificates.other.pin, certificates.ecdsa.pin)
      let server = try PinServer(.p256, in: workspace, ["--pins", path])
      let query = asks ? "?include-backup-pins=true" : ""
      let pinfold = try Pinfold(.supplied(section(server, query: query), port: upstream.port))
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded == asks)
      #expect(try pinfold.reasons() == [asks ? "pin_match" : "pin_mismatch"])
    }

    @Test("A list that is read again reaches the proxy with the next record") func changed() throws {
      let certificates = try Certificates.shared()
      let upstream = try Servers.nginx(certificates.ecdsa)
      let workspace = try Workspace("pins")
      let path = try list(workspace, certificates.other.pin)
      let server = try PinServer(.ed25519, in: workspace, ["--pins", path, "--ttl", "2"])
      let pinfold = try Pinfold(.supplied(section(server), port: upstream.port))
      #expect(try !Client.curl.fetch(proxy: pinfold.port).succeeded)
      _ = try list(workspace, certificates.ecdsa.pin)
      server.child.signal(SIGHUP)
      try Wait.untilTrue("the new list") { server.child.errors.contains("read the pins of 1 hosts again") }
      try Wait.untilTrue("the new pins") { try Client.curl.fetch(proxy: pinfold.port).succeeded }
      #expect(try pinfold.reasons(2).first == "pin_mismatch")
      // How often it was tried is not known, and the client can be gone before the line of its tunnel is written.
      try Wait.untilTrue("its decision line") { try pinfold.reasons(2).last == "pin_match" }
    }

    @Test("A host that the pin server does not answer for has no pins") func unlisted() throws {
      let upstream = try Servers.nginx(Certificates.shared().ecdsa)
      let server = try PinServer(.keygen, ["--domain", "www.pinfold.test"])
      let pinfold = try Pinfold(.supplied(section(server), port: upstream.port))
      #expect(try !Client.curl.fetch(proxy: pinfold.port).succeeded)
      #expect(try pinfold.reasons() == ["pins_unavailable"])
      #expect((pinfold.decisions.first?["detail"] as? String)?.hasPrefix("status") == true)
    }
  }
}
