import Foundation
import Glibc
import Testing

extension Operation {
  /// Devices on the local network: trust on first use, pairing, forgetting.
  @Suite struct DeviceTests {
    private static let host = "device.local:8443"

    /// A rule that learns the device's first key.
    private static func learning(_ port: UInt16, rule: String = "verify_chain: false") throws -> Settings {
      try Settings.pinned(Certificates.shared().other.pin, port: 1).with {
        $0.hosts[host] = "{ trust_on_first_use: true, pins: [], \(rule) }"
        $0.resolve[host] = port
        $0.audit = #"file: "audit.jsonl""#
      }
    }

    /// No rule for the device.
    private static func bare(_ port: UInt16) throws -> Settings {
      try Settings.pinned(Certificates.shared().other.pin, port: 1).with {
        $0.resolve[host] = port
        $0.audit = #"file: "audit.jsonl""#
      }
    }

    private static func fetch(_ pinfold: Pinfold) throws -> Command {
      try Client.curl.fetch("https://\(host)/", proxy: pinfold.port, options: ["--insecure"])
    }

    private static func trust(_ pinfold: Pinfold, _ words: String...) throws -> Command {
      try Command([Pinfold.binary, "trust"] + words + ["-c", pinfold.workspace.path("pinfold.json5")])
    }

    private static func reason(_ pinfold: Pinfold) -> String? { pinfold.decisions.last?["reason"] as? String }

    private static func audit(_ pinfold: Pinfold) throws -> String {
      let found = try Pinfold.command("audit", "-c", pinfold.workspace.path("pinfold.json5"))
      return found.output.split(separator: "\n").filter { $0.contains(#""event":"trust""#) }.joined(separator: "\n")
    }

    /// A server with another key at the same place.
    private static func server(
      _ identity: Certificates.Identity, _ protocols: String, port: UInt16? = nil
    ) throws -> Servers.Running {
      try Servers.nginx(identity, protocols: protocols, at: port)
    }

    // MARK: Trust on first use

    /// Guards: the second key. In band for TLS 1.2, by a probe for TLS 1.3.
    @Test("The first key seen is trusted, and no other passes", arguments: ["TLSv1.2", "TLSv1.3"])
    func firstUse(protocols: String) throws {
      let certificates = try Certificates.shared()
      var server: Servers.Running? = try Self.server(certificates.selfSigned, protocols)
      let port = try #require(server?.port)
      let pinfold = try Pinfold(Self.learning(port))
      for _ in 0..<2 {
        let fetched = try Self.fetch(pinfold)
        #expect(fetched.succeeded && fetched.output.contains(Servers.greeting), "\(fetched)")
      }
      try Wait.untilTrue("its record") {
        try Self.audit(pinfold).contains(#""action":"first_use","host":"device.local:8443""#)
      }
      let list = try Self.trust(pinfold, "list")
      #expect(list.succeeded && list.output.hasPrefix("device.local:8443  \(certificates.selfSigned.pin)  "), "\(list)")
      #expect(list.output.hasSuffix("  first_use\n"))

      server = nil
      server = try Self.server(certificates.ecdsa, protocols, port: port)
      #expect(try !Self.fetch(pinfold).succeeded)
      _ = try pinfold.reasons(3)
      #expect(Self.reason(pinfold) == "pin_mismatch")

      // Forgotten by another process while the proxy runs: the next key is the first one.
      let forgotten = try Self.trust(pinfold, "forget", "device.local")
      #expect(forgotten.succeeded && forgotten.output.contains("device.local:8443"), "\(forgotten)")
      try Wait.untilTrue("the new key", seconds: 15) { try Self.fetch(pinfold).succeeded }
      #expect(try Self.trust(pinfold, "list").output.contains(certificates.ecdsa.pin))
      try Wait.untilTrue("its record") { try Self.audit(pinfold).contains(#""action":"forgotten""#) }
      #expect(try Self.trust(pinfold, "forget", "nobody.local").ending == .exited(1))
      withExtendedLifetime(server) {}
    }

    /// Guards: that nobody teaches a key by a copy of its certificate, which is all it takes to begin such a handshake.
    @Test("A key that signs nothing is not learnt") func staticRSA() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(
        certificates.rsa, protocols: "TLSv1.2", options: "ssl_ciphers AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256;")
      let pinfold = try Pinfold(Self.learning(server.port))
      let options = ["--insecure", "--tls-max", "1.2", "--ciphers"]
      func succeeds(_ cipher: String) throws -> Bool {
        try Client.curl.fetch("https://\(Self.host)/", proxy: pinfold.port, options: options + [cipher]).succeeded
      }
      #expect(try !succeeds("AES128-GCM-SHA256"))
      #expect(try pinfold.reasons() == ["key_not_proven"])
      #expect(try Self.trust(pinfold, "list").output.isEmpty)
      #expect(try succeeds("ECDHE-RSA-AES128-GCM-SHA256"))
      // What was learnt by a signature is as good as any pin.
      #expect(try succeeds("AES128-GCM-SHA256"))
    }

    /// Guards: that what is known of a device does not depend on how its address is written.
    @Test("Its address as an IPv4-mapped one is the same device") func mappedAddress() throws {
      let certificates = try Certificates.shared()
      var server: Servers.Running? = try Self.server(certificates.selfSigned, "TLSv1.2")
      let port = try #require(server?.port)
      let pinfold = try Pinfold(
        Settings.pinned(certificates.other.pin, port: 1).with {
          $0.hosts["127.0.0.1:\(port)"] = "{ trust_on_first_use: true, pins: [], verify_chain: false }"
        })
      func succeeds(_ host: String) throws -> Bool {
        try Client.curl.fetch("https://\(host):\(port)/", proxy: pinfold.port, options: ["--insecure"]).succeeded
      }
      #expect(try succeeds("127.0.0.1"))
      #expect(try succeeds("[::ffff:127.0.0.1]"))
      server = nil
      server = try Self.server(certificates.ecdsa, "TLSv1.2", port: port)
      #expect(try !succeeds("[::ffff:127.0.0.1]"))
      #expect(try !succeeds("127.0.0.1"))
      #expect(try pinfold.reasons(4).suffix(2) == ["pin_mismatch", "pin_mismatch"])
      #expect(try Self.trust(pinfold, "list").output.split(separator: "\n").count == 1)
    }

    @Test("The key is remembered over a restart, and nothing in the state directory names the device") func restart()
      throws
    {
      let certificates = try Certificates.shared()
      let server = try Self.server(certificates.selfSigned, "TLSv1.2")
      let first = try Pinfold(Self.learning(server.port))
      #expect(try Self.fetch(first).succeeded)
      first.child.signal(SIGTERM)
      _ = try first.child.wait()
      let state = first.workspace.path("state")
      let names = try FileManager.default.subpathsOfDirectory(atPath: state)
      #expect(names.contains { $0.hasPrefix("cache/trust-") })
      for name in names {
        let bytes = FileManager.default.contents(atPath: "\(state)/\(name)") ?? Data()
        #expect(!name.contains("device") && bytes.range(of: Data("device.local".utf8)) == nil, "\(name)")
      }
      let other = try Self.server(certificates.ecdsa, "TLSv1.2")
      let second = try Pinfold(Self.learning(other.port)) {
        try FileManager.default.copyItem(atPath: state, toPath: $0.path("state"))
        try FileManager.default.removeItem(atPath: $0.path("state/policy.state"))
      }
      #expect(try !Self.fetch(second).succeeded)
      #expect(try second.reasons() == ["pin_mismatch"])
    }

    @Test("Where the key cannot be kept it holds in memory, with a warning") func unwritable() throws {
      let certificates = try Certificates.shared()
      var server: Servers.Running? = try Self.server(certificates.selfSigned, "TLSv1.2")
      let port = try #require(server?.port)
      let pinfold = try Pinfold(Self.learning(port)) {
        try FileManager.default.createDirectory(atPath: $0.path("state"), withIntermediateDirectories: false)
        try $0.write("state/cache", "")
      }
      #expect(try Self.fetch(pinfold).succeeded)
      try Wait.untilTrue("a warning") {
        pinfold.log.contains { $0["message"] as? String == "trust" && $0["warning"] != nil }
      }
      server = nil
      server = try Self.server(certificates.ecdsa, "TLSv1.2", port: port)
      #expect(try !Self.fetch(pinfold).succeeded)
      withExtendedLifetime(server) {}
    }

    /// Guards: trust that begins with a damaged record.
    @Test("A record that is damaged lets no key be learnt, until it is forgotten") func damaged() throws {
      let server = try Self.server(Certificates.shared().selfSigned, "TLSv1.2")
      let first = try Pinfold(Self.learning(server.port))
      #expect(try Self.fetch(first).succeeded)
      let state = first.workspace.path("state")
      first.child.signal(SIGTERM)
      _ = try first.child.wait()
      let name = try #require(
        try FileManager.default.contentsOfDirectory(atPath: "\(state)/cache").first { $0.hasPrefix("trust-") })
      var bytes = try #require(FileManager.default.contents(atPath: "\(state)/cache/\(name)"))
      bytes[bytes.count - 1] ^= 1
      try bytes.write(to: URL(filePath: "\(state)/cache/\(name)"))
      let second = try Pinfold(Self.learning(server.port)) {
        try FileManager.default.copyItem(atPath: state, toPath: $0.path("state"))
        try FileManager.default.removeItem(atPath: $0.path("state/policy.state"))
      }
      #expect(try !Self.fetch(second).succeeded)
      #expect(try second.reasons() == ["pins_unavailable"])
      try Self.expectRefusalExplained(second)
      #expect(try Self.trust(second, "list").ending == .exited(1))
      #expect(try Self.trust(second, "forget", Self.host).succeeded)
      try Wait.untilTrue("the key learnt anew", seconds: 15) { try Self.fetch(second).succeeded }
    }

    /// Guards: a damaged record of a paired device that makes it an unpinned host, relayed unseen.
    @Test("A paired device whose record is damaged is refused, also where unpinned hosts are tunnelled")
    func damagedPairing() throws {
      let server = try Self.server(Certificates.shared().selfSigned, "TLSv1.2")
      let settings = try Self.bare(server.port).with { $0.unpinned = "tunnel" }
      let first = try Pinfold(settings)
      #expect(try Self.pair(first, Self.payload(Certificates.shared().selfSigned), "--offline").succeeded)
      let state = first.workspace.path("state")
      let name = try #require(
        try FileManager.default.contentsOfDirectory(atPath: "\(state)/cache").first { $0.hasPrefix("trust-") })
      var bytes = try #require(FileManager.default.contents(atPath: "\(state)/cache/\(name)"))
      bytes[bytes.count - 1] ^= 1
      try bytes.write(to: URL(filePath: "\(state)/cache/\(name)"))
      let second = try Pinfold(settings) {
        try FileManager.default.copyItem(atPath: state, toPath: $0.path("state"))
        try FileManager.default.removeItem(atPath: $0.path("state/policy.state"))
      }
      #expect(try !Self.fetch(second).succeeded)
      #expect(try second.reasons() == ["pins_unavailable"])
      try Self.expectRefusalExplained(second)
      #expect(try Self.trust(second, "forget", Self.host).succeeded)
      #expect(try !Self.explain(second).output.contains("begins anew"))
      try Wait.untilTrue("the device forgotten", seconds: 15) {
        _ = try Self.fetch(second)
        return Self.reason(second) != "pins_unavailable"
      }
    }

    private static func explain(_ pinfold: Pinfold) throws -> Command {
      try Pinfold.command("explain", "-c", pinfold.workspace.path("pinfold.json5"), host)
    }

    /// What `explain` says of a device whose record is damaged is what the proxy does.
    private static func expectRefusalExplained(_ pinfold: Pinfold) throws {
      let explained = try explain(pinfold)
      #expect(explained.ending == .exited(1), "\(explained)")
      let lines = explained.output.split(separator: "\n")
      #expect(lines.contains("mode: blocked") && lines.contains("pins: none"))
      #expect(lines.contains("steps: refused with pins_unavailable: pinfold trust forget \(host) begins anew"))
    }

    @Test("With verify_chain the first key needs a good chain") func chain() throws {
      let server = try Self.server(Certificates.shared().selfSigned, "TLSv1.2")
      let pinfold = try Pinfold(Self.learning(server.port, rule: ""))
      #expect(try !Self.fetch(pinfold).succeeded)
      #expect(try pinfold.reasons() == ["chain_invalid"])
      #expect(try Self.trust(pinfold, "list").output.isEmpty)
    }

    // MARK: cert-sha256

    @Test("A self-signed certificate is pinned by its own hash", arguments: ["TLSv1.2", "TLSv1.3"])
    func certificatePin(protocols: String) throws {
      let certificates = try Certificates.shared()
      let server = try Self.server(certificates.selfSigned, protocols)
      for (pin, passes) in [
        (certificates.selfSigned.certificatePin, true), (certificates.other.certificatePin, false),
        // The certificate's hash is no key's hash.
        (certificates.selfSigned.certificatePin.replacing("cert-sha256/", with: "sha256/"), false),
      ] {
        let settings = try Self.bare(server.port).with {
          $0.hosts[Self.host] = "{ pins: [\"\(pin)\"], verify_chain: false }"
        }
        let pinfold = try Pinfold(settings)
        #expect(try Self.fetch(pinfold).succeeded == passes, "\(pin)")
        #expect(try pinfold.reasons() == [passes ? "pin_match" : "pin_mismatch"])
      }
    }

    // MARK: Pairing

    private static func payload(
      _ identity: Certificates.Identity, host: String = "device.local", version: String = "1",
      expires: String = "2045-01-01T00:00:00Z"
    ) -> String {
      let fingerprint = identity.certificatePin.dropFirst("cert-sha256/".count)
      return #"{"version":"\#(version)","host":"\#(host)","port":8443,"code":"SECRET-271828","#
        + #""expiresAt":"\#(expires)","certificateFingerprint":"\#(fingerprint)"}"#
    }

    private static func pair(_ pinfold: Pinfold, _ payload: String, _ words: String...) throws -> Command {
      try Command(
        [Pinfold.binary, "pair", "-c", pinfold.workspace.path("pinfold.json5")] + words + ["-"], input: payload)
    }

    @Test("A paired device is reached by the running proxy, and only with its certificate") func pairing() throws {
      let certificates = try Certificates.shared()
      var server: Servers.Running? = try Self.server(certificates.selfSigned, "TLSv1.3")
      let port = try #require(server?.port)
      let pinfold = try Pinfold(Self.bare(port))
      #expect(try !Self.fetch(pinfold).succeeded)
      let paired = try Self.pair(pinfold, Self.payload(certificates.selfSigned))
      #expect(
        paired.succeeded && paired.output == "paired: device.local:8443 \(certificates.selfSigned.certificatePin)\n")
      try Wait.untilTrue("the paired device", seconds: 15) { try Self.fetch(pinfold).succeeded }
      // The client can be gone before the line of its tunnel is written.
      try Wait.untilTrue("its decision line") { pinfold.decisions.last?["source"] as? String == "device" }
      try Wait.untilTrue("its record") { try Self.audit(pinfold).contains(#""action":"paired""#) }
      let explained = try Pinfold.command("explain", "-c", pinfold.workspace.path("pinfold.json5"), Self.host)
      #expect(explained.succeeded && explained.output.contains("source: device"), "\(explained)")
      #expect(explained.output.contains(certificates.selfSigned.certificatePin))

      server = nil
      server = try Self.server(certificates.ecdsa, "TLSv1.3", port: port)
      #expect(try !Self.fetch(pinfold).succeeded)
      try Wait.untilTrue("the mismatch") { Self.reason(pinfold) == "pin_mismatch" }

      #expect(try Self.trust(pinfold, "forget", Self.host).succeeded)
      pinfold.child.signal(SIGHUP)
      try Wait.untilTrue("the device forgotten", seconds: 15) {
        _ = try Self.fetch(pinfold)
        return Self.reason(pinfold) != "pin_mismatch"
      }
      #expect(["unpinned_blocked", "destination_denied"].contains(Self.reason(pinfold) ?? ""))
      let texts =
        [paired.output, paired.errors, pinfold.child.errors, try Self.audit(pinfold)]
        + (try FileManager.default.subpathsOfDirectory(atPath: pinfold.workspace.folder.path).map(
          pinfold.workspace.read))
      #expect(!texts.contains { $0.contains("SECRET-271828") })
      withExtendedLifetime(server) {}
    }

    @Test("A device that shows another certificate is not paired, and --offline asks nobody") func mismatch() throws {
      let certificates = try Certificates.shared()
      let server = try Self.server(certificates.ecdsa, "TLSv1.3")
      let pinfold = try Pinfold(Self.bare(server.port))
      let refused = try Self.pair(pinfold, Self.payload(certificates.selfSigned))
      #expect(refused.ending == .exited(1))
      #expect(refused.errors.contains(certificates.ecdsa.certificatePin), "\(refused)")
      #expect(try Self.trust(pinfold, "list").output.isEmpty)
      #expect(try Self.pair(pinfold, Self.payload(certificates.selfSigned), "--offline").succeeded)
      let again = try Self.pair(pinfold, Self.payload(certificates.ecdsa))
      #expect(again.succeeded && again.errors.contains(certificates.selfSigned.certificatePin), "\(again)")
      #expect(try Self.trust(pinfold, "list").output.split(separator: "\n").count == 1)
    }

    @Test("Other versions, hosts elsewhere and expired payloads are refused, and the code is not shown") func refused()
      throws
    {
      let certificates = try Certificates.shared()
      let pinfold = try Pinfold(Self.bare(1))
      for (payload, word) in [
        (Self.payload(certificates.ecdsa, version: "2"), "version"),
        (Self.payload(certificates.ecdsa, host: "device.example.com"), "local network"),
        (Self.payload(certificates.ecdsa, host: "8.8.8.8"), "local network"),
        (Self.payload(certificates.ecdsa, expires: "2021-01-01T00:00:00Z"), "expired"),
        (Self.payload(certificates.ecdsa).replacing("8443", with: "\"SECRET-271828\""), "port"), ("{", "JSON"),
        (Self.payload(certificates.ecdsa), "cannot be asked"),
      ] {
        let command = try Self.pair(pinfold, payload)
        #expect(command.ending == .exited(1) && command.output.isEmpty, "\(command)")
        #expect(command.errors.contains(word) && !command.errors.contains("SECRET"), "\(command)")
      }
      #expect(try Self.trust(pinfold, "list").output.isEmpty)
    }

    /// Guards: the store as root leaves it to the proxy's own user.
    @Test("What root pairs belongs to the owner of the state directory", .enabled(if: geteuid() == 0)) func owner()
      throws
    {
      let pinfold = try Pinfold(Self.bare(1))
      let state = pinfold.workspace.path("state")
      for path in [state] + (try FileManager.default.subpathsOfDirectory(atPath: state).map { "\(state)/\($0)" }) {
        #expect(unsafe chown(path, 65_534, 65_534) == 0)
      }
      #expect(unsafe chmod(pinfold.workspace.folder.path, 0o755) == 0)
      let paired = try Self.pair(pinfold, Self.payload(Certificates.shared().ecdsa), "--offline")
      #expect(paired.succeeded, "\(paired)")
      for name in try FileManager.default.contentsOfDirectory(atPath: "\(state)/cache") {
        var status = stat()
        #expect(unsafe stat("\(state)/cache/\(name)", &status) == 0 && status.st_uid == 65_534, "\(name)")
      }
    }
  }
}
