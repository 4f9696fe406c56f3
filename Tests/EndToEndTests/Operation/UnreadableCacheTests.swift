import Foundation
import Glibc
import Testing

extension Operation {
  /// What the cache has and the system does not give: nothing is known of it, and so nothing may pass for lack of it. A
  /// link that leads to itself stands for it, which root cannot open either.
  @Suite struct UnreadableCacheTests {
    private static let device = "device.local:8443"

    private static func explain(_ workspace: Workspace, _ host: String) throws -> Command {
      try Pinfold.command("explain", "-c", workspace.path("pinfold.json5"), host)
    }

    private static func expectBlocked(_ workspace: Workspace, _ host: String) throws {
      let explained = try explain(workspace, host)
      #expect(explained.ending == .exited(1) && explained.output.contains("mode: blocked"), "\(explained)")
      #expect(explained.output.contains("cannot be read"), "\(explained)")
    }

    /// Guards: a folder that cannot be listed and is taken for an empty one, so that every paired device is unpinned.
    @Test("Where the cache cannot be listed a paired device is refused, also where unpinned hosts are tunnelled")
    func devices() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.selfSigned, protocols: "TLSv1.2")
      let settings = try Settings.pinned(certificates.other.pin, port: 1).with {
        $0.resolve[Self.device] = server.port
        $0.unpinned = "tunnel"
      }
      let workspace = try Workspace("unlisted")
      func fetch(_ pinfold: Pinfold) throws -> Bool {
        try Client.curl.fetch("https://\(Self.device)/", proxy: pinfold.port, options: ["--insecure"]).succeeded
      }
      func list() throws -> Command { try Pinfold.command("trust", "list", "-c", workspace.path("pinfold.json5")) }
      do {
        let pinfold = try Pinfold(settings, in: workspace)
        // Another key than the device has: only a pin that is not known lets it pass.
        let fingerprint = certificates.ecdsa.certificatePin.dropFirst("cert-sha256/".count)
        let payload = """
          { "version": "1", "host": "device.local", "port": 8443, "code": "271-828", "expiresAt": "2045-01-01T00:00:00Z",
            "certificateFingerprint": "\(fingerprint)" }
          """
        let file = workspace.path("pinfold.json5")
        #expect(try Pinfold.command("pair", "-c", file, "--offline", "-", input: payload).succeeded)
        try pinfold.end()
      }
      try workspace.hide("state/cache")
      let pinfold = try Pinfold(settings, in: workspace)
      #expect(try !fetch(pinfold))
      #expect(try pinfold.reasons() == ["pins_unavailable"])
      #expect(pinfold.log.contains { ($0["warning"] as? String)?.contains("cannot be listed") == true })
      try Self.expectBlocked(workspace, Self.device)
      let unlisted = try list()
      #expect(unlisted.ending == .exited(1) && unlisted.errors.contains("cannot be listed"), "\(unlisted)")
      try workspace.reveal("state/cache")
      try Wait.untilTrue("the device's pin", seconds: 15) {
        _ = try fetch(pinfold)
        return pinfold.decisions.last?["reason"] as? String == "pin_mismatch"
      }
      #expect(try list().succeeded)

      // A folder whose files can be opened by name, and not listed: what a start would refuse, `explain` refuses.
      try pinfold.end()
      #expect(unsafe chmod(workspace.path("state/cache"), 0o311) == 0)
      defer { unsafe chmod(workspace.path("state/cache"), 0o700) }
      // Root is kept from listing by nothing but the want of its capabilities.
      let plain = geteuid() == 0 ? ["setpriv", "--bounding-set=-all", "--"] : []
      let explained = try Command(
        plain + [Pinfold.binary, "explain", "-c", workspace.path("pinfold.json5"), Self.device])
      #expect(explained.ending == .exited(1) && explained.output.contains("cannot be listed"), "\(explained)")
    }

    /// Guards: a SIGHUP that forgets all devices because the folder of the cache is away for a moment.
    @Test("Where the folder of the cache is gone a SIGHUP forgets no device") func gone() throws {
      let certificates = try Certificates.shared()
      var server: Servers.Running? = try Servers.nginx(certificates.selfSigned, protocols: "TLSv1.2")
      let port = try #require(server?.port)
      let settings = try Settings.pinned(certificates.other.pin, port: 1).with {
        $0.hosts[Self.device] = "{ trust_on_first_use: true, pins: [], verify_chain: false }"
        $0.resolve[Self.device] = port
      }
      let pinfold = try Pinfold(settings)
      func fetch() throws -> Bool {
        try Client.curl.fetch("https://\(Self.device)/", proxy: pinfold.port, options: ["--insecure"]).succeeded
      }
      #expect(try fetch())
      let folder = pinfold.workspace.path("state/cache")
      try FileManager.default.moveItem(atPath: folder, toPath: folder + ".away")
      pinfold.child.signal(SIGHUP)
      try Wait.untilTrue("the warning") {
        pinfold.log.contains { ($0["warning"] as? String)?.contains("cannot be listed") == true }
      }
      #expect(try fetch(), "the key is in memory")
      server = nil
      server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2", at: port)
      #expect(try !fetch())
      #expect(try pinfold.reasons(3).last == "pin_mismatch")
      #expect(!FileManager.default.fileExists(atPath: folder))
      withExtendedLifetime(server) {}
    }

    /// Guards: a record that cannot be read and is taken for none, so that an older one is accepted and kept in its place.
    @Test("Where the record of a host cannot be read, an older one is not taken in its place") func replay() throws {
      let certificates = try Certificates.shared()
      let (old, new) = (try Servers.nginx(certificates.ecdsa), try Servers.nginx(certificates.other))
      let switchboard = try Switchboard(to: new.port)
      let signer = try RecordSigner()
      let before = try signer.record(certificates.ecdsa.pin, created: -100)
      let after = try signer.record(certificates.other.pin)
      let service = try PinService { _ in .body(after) }
      let settings = try Settings.supplied(service.section(signer), port: switchboard.port)
      let workspace = try Workspace("unread")
      do {
        let pinfold = try Pinfold(settings, in: workspace)
        #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
        try pinfold.end()
      }
      // The attacker has the old key, and plays the old record for it.
      service.answer { _ in .body(before) }
      switchboard.turn(to: old.port)
      let files = try FileManager.default.contentsOfDirectory(atPath: workspace.path("state/cache"))
      let file = "state/cache/" + (try #require(files.first { $0.hasPrefix("pins-") }))
      try workspace.hide(file)
      let pinfold = try Pinfold(settings, in: workspace)
      #expect(try !Client.curl.fetch(proxy: pinfold.port).succeeded)
      #expect(try pinfold.reasons() == ["pins_unavailable"])
      #expect((pinfold.decisions.last?["detail"] as? String)?.hasPrefix("cache: ") == true, "\(pinfold.decisions)")
      try Self.expectBlocked(workspace, "api.pinfold.test")
      // Once it can be read it counts, without a restart.
      try workspace.reveal(file)
      try Wait.untilTrue("the record", seconds: 20) {
        guard try !Client.curl.fetch(proxy: pinfold.port).succeeded else { throw HarnessError("the old key passed") }
        return pinfold.decisions.last?["reason"] as? String == "pin_mismatch"
      }
      switchboard.turn(to: new.port)
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
    }

    @Test("A mark that is damaged costs its own place: a wildcard's record speaks on, and is explained so")
    func damaged() throws {
      let certificates = try Certificates.shared()
      let (old, new) = (try Servers.nginx(certificates.ecdsa), try Servers.nginx(certificates.other))
      let switchboard = try Switchboard(to: old.port)
      let signer = try RecordSigner()
      let own = try signer.record(certificates.ecdsa.pin, created: -100)
      let wide = try signer.record(certificates.other.pin, domain: "*.pinfold.test")
      let service = try PinService { _ in .body(own) }
      let settings = try Settings.supplied(service.section(signer), port: switchboard.port)
      let workspace = try Workspace("damaged")
      func records() throws -> Set<String> {
        let files = try FileManager.default.contentsOfDirectory(atPath: workspace.path("state/cache"))
        return Set(files.filter { $0.hasPrefix("pins-") && !$0.contains(".") })
      }
      let mark: String
      do {
        let pinfold = try Pinfold(settings, in: workspace)
        #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
        try Wait.untilTrue("the host's record") { try records().count == 1 }
        mark = workspace.path("state/cache/" + (try #require(records().first)))
        service.answer { _ in .body(wide) }
        switchboard.turn(to: new.port)
        #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
        try pinfold.end()
      }
      #expect(try records().count == 2)
      var bytes = try Data(contentsOf: URL(filePath: mark))
      bytes[bytes.count / 2] ^= 1
      try bytes.write(to: URL(filePath: mark))
      service.stop()
      let explained = try Self.explain(workspace, "api.pinfold.test")
      #expect(explained.succeeded && explained.output.contains("pins: \(certificates.other.pin)"), "\(explained)")
      #expect(explained.output.contains("api.pinfold.test not used: "), "\(explained)")
      let pinfold = try Pinfold(settings, in: workspace)
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
    }
  }
}

extension Workspace {
  /// Puts a link that leads to itself in the place of a file or folder; `reveal` puts that back.
  func hide(_ name: String) throws {
    try FileManager.default.moveItem(atPath: path(name), toPath: path("hidden"))
    try FileManager.default.createSymbolicLink(atPath: path(name), withDestinationPath: path(name))
  }

  func reveal(_ name: String) throws {
    try FileManager.default.removeItem(atPath: path(name))
    try FileManager.default.moveItem(atPath: path("hidden"), toPath: path(name))
  }
}
