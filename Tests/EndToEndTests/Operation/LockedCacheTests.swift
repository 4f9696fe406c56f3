import Foundation
import Testing

extension Operation {
  /// The key of the cache is there and cannot be had: what the cache holds is unknown, and is not taken for nothing.
  @Suite struct LockedCacheTests {
    private static let host = "device.local:8443"

    /// What stands where the key was.
    enum Fault: String, CaseIterable, CustomTestStringConvertible {
      case unreadable = "a key that cannot be read"
      case empty = "an empty file"

      var testDescription: String { rawValue }

      func put(in workspace: Workspace) throws {
        try workspace.hide("state/cache.key")
        guard self == .empty else { return }
        try FileManager.default.removeItem(atPath: workspace.path("state/cache.key"))
        try workspace.write("state/cache.key", "")
      }
    }

    private static func explain(_ workspace: Workspace, _ host: String) throws -> Command {
      try Pinfold.command("explain", "-c", workspace.path("pinfold.json5"), host)
    }

    private static func expectBlocked(_ workspace: Workspace, _ host: String) throws {
      let explained = try explain(workspace, host)
      #expect(explained.ending == .exited(1) && explained.output.contains("mode: blocked"), "\(explained)")
      #expect(explained.output.contains("cannot be opened"), "\(explained)")
      #expect(!explained.output.contains("begins anew"), "\(explained)")
    }

    /// Guards: a first use that learns another key, and a paired host that is unpinned, because nothing is known of either.
    @Test("No first key is learnt and no paired device passes", arguments: Fault.allCases)
    func devices(_ fault: Fault) throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.selfSigned, protocols: "TLSv1.2")
      let other = "other.local:8443"
      let settings = try Settings.pinned(certificates.other.pin, port: 1).with {
        $0.hosts[Self.host] = "{ trust_on_first_use: true, pins: [], verify_chain: false }"
        $0.resolve[Self.host] = server.port
        $0.resolve[other] = server.port
        $0.unpinned = "tunnel"
      }
      func fetch(_ host: String, _ pinfold: Pinfold) throws -> Bool {
        try Client.curl.fetch("https://\(host)/", proxy: pinfold.port, options: ["--insecure"]).succeeded
      }
      let workspace = try Workspace("locked")
      do {
        let pinfold = try Pinfold(settings, in: workspace)
        // Another key than the device has.
        let fingerprint = certificates.ecdsa.certificatePin.dropFirst("cert-sha256/".count)
        for host in ["device.local", "other.local"] {
          let payload = """
            { "version": "1", "host": "\(host)", "port": 8443, "code": "271-828", "expiresAt": "2045-01-01T00:00:00Z",
              "certificateFingerprint": "\(fingerprint)" }
            """
          let file = workspace.path("pinfold.json5")
          #expect(try Pinfold.command("pair", "-c", file, "--offline", "-", input: payload).succeeded)
        }
        try pinfold.end()
      }
      try fault.put(in: workspace)
      do {
        let pinfold = try Pinfold(settings, in: workspace)
        #expect(try !fetch(Self.host, pinfold))
        #expect(try !fetch(other, pinfold))
        #expect(try pinfold.reasons(2) == ["pins_unavailable", "pins_unavailable"])
        #expect(pinfold.log.contains { ($0["warning"] as? String)?.contains("cannot be opened") == true })
        try Self.expectBlocked(workspace, Self.host)
        try Self.expectBlocked(workspace, other)
        try pinfold.end()
      }
      // With its key the cache is as it was.
      try workspace.reveal("state/cache.key")
      let pinfold = try Pinfold(settings, in: workspace)
      #expect(try !fetch(Self.host, pinfold))
      #expect(try !fetch(other, pinfold))
      #expect(try pinfold.reasons(2) == ["pin_mismatch", "pin_mismatch"])
    }

    /// Guards: an older record that is accepted because nobody knows any more that there was a newer one.
    @Test("No record of a service is accepted; without records everything goes on", arguments: Fault.allCases)
    func replay(_ fault: Fault) throws {
      let certificates = try Certificates.shared()
      let (old, new) = (try Servers.nginx(certificates.ecdsa), try Servers.nginx(certificates.other))
      let switchboard = try Switchboard(to: new.port)
      let signer = try RecordSigner()
      let before = try signer.record(certificates.ecdsa.pin, created: -100)
      let after = try signer.record(certificates.other.pin)
      let service = try PinService { _ in .body(after) }
      let settings = try Settings.supplied(service.section(signer), port: switchboard.port)
      let workspace = try Workspace("locked")
      do {
        let pinfold = try Pinfold(settings, in: workspace)
        #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
        try pinfold.end()
      }
      // The attacker has the old key, and plays the old record for it.
      service.answer { _ in .body(before) }
      switchboard.turn(to: old.port)
      try fault.put(in: workspace)
      do {
        let pinfold = try Pinfold(settings, in: workspace)
        #expect(try !Client.curl.fetch(proxy: pinfold.port).succeeded)
        #expect(try pinfold.reasons() == ["pins_unavailable"])
        #expect((pinfold.decisions.last?["detail"] as? String)?.hasPrefix("cache: ") == true, "\(pinfold.decisions)")
        try Self.expectBlocked(workspace, "api.pinfold.test")
        // Whoever removes the records begins anew, without a restart.
        try FileManager.default.moveItem(atPath: workspace.path("state/cache"), toPath: workspace.path("away"))
        #expect(try Self.explain(workspace, "api.pinfold.test").succeeded)
        try Wait.untilTrue("the record", seconds: 20) { try Client.curl.fetch(proxy: pinfold.port).succeeded }
        try pinfold.end()
      }
      try FileManager.default.moveItem(atPath: workspace.path("away"), toPath: workspace.path("state/cache"))
      try workspace.reveal("state/cache.key")
      let pinfold = try Pinfold(settings, in: workspace)
      #expect(try !Client.curl.fetch(proxy: pinfold.port).succeeded)
      #expect(try pinfold.reasons() == ["pin_mismatch"])
    }
  }
}
