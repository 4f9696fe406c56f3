import Foundation
import Glibc
import Testing

extension Operation {
  /// The pin server before real upstreams, asked by curl, its records verified by Python and openssl. A server that put
  /// keys of a chain it had not verified into a record would be found here, and nowhere else.
  @Suite struct PinServerTests {
    private static let host = "api.pinfold.test"

    private func server(
      _ key: PinServer.Key = .keygen, upstream port: UInt16, host: String = host, _ more: String...
    ) throws -> PinServer {
      let root = try Certificates.shared().rootFile
      let options =
        ["--domain", host, "--domain", "*.pinfold.test", "--ca-file", root, "--resolve", "\(host)=127.0.0.1:\(port)"]
        + more
      return try PinServer(key, options)
    }

    @Test(
      "A record of each format holds the keys of the verified chain, and verifies elsewhere",
      arguments: [
        (.keygen, "ed25519"), (.ed25519, "ed25519"), (.p256, "jws"), (.ed25519, "jws"), (.keygen, "fingerprint"),
      ] as [(PinServer.Key, String)])
    func formats(_ key: PinServer.Key, _ format: String) throws {
      let certificates = try Certificates.shared()
      let upstream = try Servers.nginx(certificates.ecdsa)
      let server = try server(key, upstream: upstream.port, "--format", format, "--ttl", "900")
      #expect(server.fact("format") == format)
      let pins = [certificates.ecdsa.pin, certificates.intermediatePin].map(Certificates.hex)
      let plain = try server.record(Self.host)
      #expect(plain.pins == (format == "ed25519" ? pins : Array(pins.prefix(1))))
      #expect(plain.domain == Self.host && plain.ttl == 900)
      #expect(format == "fingerprint" || plain.key == server.fact("key_id"))
      let all = try server.record("\(Self.host)&include-backup-pins=true")
      #expect(all.pins == (format == "fingerprint" ? Array(pins.prefix(1)) : pins))
      #expect(try server.record("API.Pinfold.Test").domain == "API.Pinfold.Test")
      let body = try server.curl("/v1/pins?domain=\(Self.host)").body
      let changed = body.replacing(/[0-9]/, maxReplacements: 1) { "\((Int($0.output) ?? 0) ^ 1)" }
      #expect(changed != body)
      #expect(try PinServer.verify(changed, format: format, key: server.fact("trusted_key")) == nil)
      #expect(server.child.errors.contains("warning: ") == (format == "fingerprint"), "\(server.child.errors)")
    }

    @Test(
      "Upstreams of openssl and gnutls are looked up too, and each TLS version", arguments: ["1.2", "1.3", "gnutls"])
    func upstreams(_ kind: String) throws {
      let certificates = try Certificates.shared()
      let upstream =
        switch kind {
        case "1.2": try Servers.openssl(certificates.rsa, ["-tls1_2"])
        case "1.3": try Servers.openssl(certificates.ed25519, ["-tls1_3"])
        default: try Servers.gnutls(certificates.ecdsa, priority: "NORMAL")
        }
      let leaf = ["1.2": certificates.rsa, "1.3": certificates.ed25519][kind] ?? certificates.ecdsa
      let pins = [leaf.pin, certificates.intermediatePin].map(Certificates.hex)
      #expect(try server(upstream: upstream.port).record(Self.host).pins == pins)
    }

    @Test(
      "What does not verify has no record",
      arguments: [
        ("stranger", "its chain does not verify"), ("strangerWithOurChain", "its chain does not verify"),
        ("selfSigned", "its chain does not verify"), ("expired", "its chain does not verify"),
        ("wrongName", "its certificate is for other names"),
      ] as [(String, String)])
    func unverified(_ name: String, _ why: String) throws {
      let certificates = try Certificates.shared()
      let identities = [
        "stranger": certificates.stranger, "strangerWithOurChain": certificates.strangerWithOurChain,
        "selfSigned": certificates.selfSigned, "expired": certificates.expired, "wrongName": certificates.wrongName,
      ]
      let upstream = try Servers.nginx(#require(identities[name]))
      let server = try server(upstream: upstream.port)
      let answer = try server.curl("/v1/pins?domain=\(Self.host)")
      #expect(answer.status == 422)
      #expect(answer.body == "{\"error\":\"Failed to retrieve certificate for domain\",\"code\":422}")
      #expect(server.child.errors.contains("\(Self.host): no pins: \(why)"), "\(server.child.errors)")
    }

    @Test("A certificate that is sent beside the chain is nobody's pin") func appended() throws {
      let certificates = try Certificates.shared()
      let workspace = try Workspace("appended")
      let texts = try [certificates.ecdsa.chainFile, certificates.strangerRootFile].map {
        try String(contentsOfFile: $0, encoding: .utf8)
      }
      let chain = try workspace.write("chain.pem", texts.joined())
      let identity = Certificates.Identity(
        name: "appended", keyFile: certificates.ecdsa.keyFile, chainFile: chain, issuersFile: chain,
        pin: certificates.ecdsa.pin, certificatePin: certificates.ecdsa.certificatePin)
      let upstream = try Servers.nginx(identity)
      let pins = try server(upstream: upstream.port).record(Self.host).pins
      #expect(pins == [certificates.ecdsa.pin, certificates.intermediatePin].map(Certificates.hex))
    }

    @Test("Statuses and bodies are those of the family's server") func statuses() throws {
      let upstream = try Servers.nginx(Certificates.shared().ecdsa)
      let server = try server(upstream: upstream.port, "--domain", "127.0.0.1", "--domain", "nohost.invalid")
      let rows: [(target: String, status: Int, body: String?)] = [
        ("/health", 200, "{\"status\":\"healthy\"}"), ("/readiness", 200, nil),
        ("/v1/pins", 400, "{\"error\":\"Missing required query parameter: domain\",\"code\":400}"),
        ("/v1/pins?domain=", 400, nil), ("/v1/pins?domain=\(String(repeating: "a", count: 254))", 400, nil),
        ("/v1/pins?domain=evil.example", 403, "{\"error\":\"Domain not found in whitelist\",\"code\":403}"),
        ("/v1/pins?domain=deep.api.pinfold.test", 403, nil), ("/v1/pins?domain=\(Self.host).", 403, nil),
        ("/v1/pins?domain=evil.example&domain=\(Self.host)", 403, nil), ("/v1/pins?domain=127.0.0.1", 403, nil),
        ("/v1/pins?domain=nohost.invalid", 422, nil), ("/v1/pins?domain=*.pinfold.test", 422, nil),
        ("/v1/pins?domain=%20\(Self.host)%20", 422, nil), ("/v1/pins/", 404, nil), ("/metrics", 404, nil),
      ]
      for row in rows {
        let answer = try server.curl(row.target)
        #expect(answer.status == row.status, "\(row.target): \(answer)")
        #expect(answer.type == "application/json", "\(row.target)")
        if let body = row.body { #expect(answer.body == body) }
      }
      let id = server.fact("key_id")
      #expect(
        try server.curl("/readiness").body == "{\"allowed_domains\":4,\"key_id\":\"\(id)\",\"status\":\"ready\"}")
      let posted = try server.curl("/v1/pins?domain=\(Self.host)", "-X", "POST")
      #expect(posted.status == 405 && posted.body == "{\"error\":\"Method not allowed\",\"code\":405}")
      for method in ["POST", "HEAD", "DELETE"] {
        let options = method == "HEAD" ? "-I" : "-X\(method)"
        #expect(try server.curl("/health", options).status == 405)
      }
      #expect(server.child.errors.contains("127.0.0.1 is an IP address, for which --allow-ip-literals is missing"))
    }

    @Test("Addresses are served when that was asked for") func addresses() throws {
      let certificates = try Certificates.shared()
      let upstream = try Servers.nginx(certificates.ecdsa)
      let server = try server(upstream: upstream.port, host: "127.0.0.1", "--allow-ip-literals")
      #expect(try server.record("127.0.0.1").pins.first == Certificates.hex(certificates.ecdsa.pin))
    }

    @Test("An upstream is dialled once for many askers, and not again while its pins are kept") func cached() throws {
      let certificates = try Certificates.shared()
      let tap: Tap
      let server: PinServer
      do {
        let upstream = try Servers.nginx(certificates.ecdsa)
        tap = try Tap(to: upstream.port)
        server = try self.server(upstream: tap.port)
        let urls = Array(repeating: "http://\(server.fact("listen"))/v1/pins?domain=\(Self.host)", count: 30)
        let answers = try Command.output(["curl", "-q", "-sS", "-Z", "--max-time", "30"] + urls)
        #expect(answers.components(separatedBy: "\"signature\"").count == 31)
        #expect(tap.connections.count == 1)
      }
      // The upstream is gone, and nobody asks for it.
      #expect(try server.record(Self.host).pins.first == Certificates.hex(certificates.ecdsa.pin))
      #expect(tap.connections.count == 1)
    }

    @Test("What was kept long enough is looked up again, and a rotated key with it") func rotated() throws {
      let certificates = try Certificates.shared()
      let first = try Servers.nginx(certificates.ecdsa)
      let second = try Servers.nginx(certificates.other)
      let tap = try Tap(to: first.port, second.port)
      let server = try server(upstream: tap.port, "--cache", "1")
      #expect(try server.record(Self.host).pins.first == Certificates.hex(certificates.ecdsa.pin))
      Thread.sleep(forTimeInterval: 1.1)
      #expect(try server.record(Self.host).pins.first == Certificates.hex(certificates.other.pin))
    }

    @Test("An upstream that never answers costs ten seconds, and nobody else waits for it") func silent() throws {
      let listener = try Listener { socket in
        Thread.sleep(forTimeInterval: 30)
        socket.shutDown()
      }
      let server = try server(upstream: listener.port)
      let start = ContinuousClock.now
      let waiting = try Child([
        "curl", "-q", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "30",
        "http://\(server.fact("listen"))/v1/pins?domain=\(Self.host)",
      ])
      #expect(try server.curl("/health").status == 200)
      #expect(ContinuousClock.now - start < .seconds(5))
      try waiting.wait()
      #expect(waiting.output == "422")
      #expect((8.0...15.0).contains(Double((ContinuousClock.now - start).components.seconds)))
    }

    @Test("SIGTERM ends it at once, also amid a look-up", arguments: [SIGTERM, SIGINT]) func ends(_ signal: Int32)
      throws
    {
      let listener = try Listener { socket in
        Thread.sleep(forTimeInterval: 30)
        socket.shutDown()
      }
      let server = try server(upstream: listener.port)
      let waiting = try Child([
        "curl", "-q", "-s", "--max-time", "30", "http://\(server.fact("listen"))/v1/pins?domain=\(Self.host)",
      ])
      try Wait.untilTrue("the look-up") { listener.connectionCount == 1 }
      server.child.signal(signal)
      #expect(try server.child.wait(seconds: 5) == .exited(0))
      #expect(server.child.errors == "")
      try waiting.wait()
    }

    @Test("A list of pins is served without dialling, and read again on SIGHUP") func listed() throws {
      let pins = ["ab", "cd", "ef"].map { String(repeating: $0, count: 32) }
      let workspace = try Workspace("pins")
      let list = try workspace.write(
        "pins.json5",
        "{ \"\(Self.host)\": { primary: \"sha256/\(pins[0])\", backup: \"sha256/\(pins[1])\" } }")
      let server = try PinServer(.p256, in: workspace, ["--pins", list])
      #expect(try server.record(Self.host).pins == [pins[0]])
      #expect(try server.record("\(Self.host)&include-backup-pins=true").pins == [pins[0], pins[1]])
      #expect(try server.curl("/v1/pins?domain=other.pinfold.test").status == 403)
      try workspace.write("pins.json5", "{ \"\(Self.host)\": [] }")
      server.child.signal(SIGHUP)
      try Wait.untilTrue("the complaint") { server.child.errors.contains("kept the pins as they were: ") }
      #expect(try server.record(Self.host).pins == [pins[0]])
      try workspace.write("pins.json5", "{ \"\(Self.host)\": [\"sha256/\(pins[2])\"] }")
      server.child.signal(SIGHUP)
      try Wait.untilTrue("the new list") { server.child.errors.contains("read the pins of 1 hosts again") }
      #expect(try server.record(Self.host).pins == [pins[2]])
    }

    /// Guards: a line for each request lets anybody who asks fill the disk that standard error goes to.
    @Test("A flood of hosts without pins is told in a few lines") func flood() throws {
      let free = try FreePort.next()
      let server = try server(upstream: free)
      func ask(_ targets: [String]) throws {
        let urls = targets.map { "http://\(server.fact("listen"))/v1/pins?domain=\($0)" }
        let answers = try Command.output(["curl", "-q", "-sS", "-Z", "--max-time", "30"] + urls)
        #expect(answers.components(separatedBy: "\"code\":422").count == targets.count + 1)
      }
      try ask(Array(repeating: Self.host, count: 30))
      let once = "pinfold: \(Self.host): no pins: cannot connect: connection refused\n"
      #expect(server.child.errors == once)
      let workspace = try Workspace("flood")
      let list = try workspace.write(
        "pins.json5", "{ \"\(Self.host)\": [\"sha256/\(String(repeating: "ab", count: 32))\"] }")
      let listed = try PinServer(.keygen, in: workspace, ["--pins", list, "--domain", "*.pinfold.test"])
      let urls = (0..<90).map { "http://\(listed.fact("listen"))/v1/pins?domain=h\($0).pinfold.test" }
      _ = try Command.output(["curl", "-q", "-sS", "-Z", "--max-time", "30"] + urls)
      #expect(listed.child.errors.split(separator: "\n").count == 20, "\(listed.child.errors)")
      try Wait.untilTrue("the number of the others") {
        listed.child.errors.hasSuffix("pinfold: 70 more complaints like these within 10 s\n")
      }
      #expect(listed.child.errors.split(separator: "\n").count == 21)
    }

    /// Guards: most systems start a program with 1,024 descriptors and allow it many more.
    @Test("It takes as many descriptors as the hard limit allows") func descriptors() throws {
      let server = try PinServer(descriptors: "100:900", ["--domain", Self.host])
      let limits = try String(contentsOfFile: "/proc/\(server.child.pid)/limits", encoding: .utf8)
      let line = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max open files") })
      #expect(line.split(separator: " ").dropFirst(3).prefix(2) == ["900", "900"], "\(line)")
    }

    @Test("What released servers sent verifies by the programs that judge ours") func captured() throws {
      struct Row: Decodable {
        let response, format, key, keyID: String
      }
      let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Fixtures/PinServices/captured.json")
      let rows = try JSONDecoder().decode([Row].self, from: Data(contentsOf: file))
      #expect(rows.count == 7)
      for row in rows {
        #expect(try PinServer.verify(row.response, format: row.format, key: row.key)?.key == row.keyID)
      }
    }

    @Test("A port that is taken, and a key that does not fit the format, are told") func mistakes() throws {
      let running = try PinServer(.p256, ["--domain", Self.host])
      let again = try Pinfold.command(
        "pin-server", "-k", running.workspace.path("key"), "--domain", Self.host, "--listen", running.fact("listen"))
      #expect(again.ending == .exited(1) && again.errors.contains("cannot serve at "), "\(again)")
      for format in ["ed25519", "fingerprint"] {
        let wrong = try Pinfold.command(
          "pin-server", "-k", running.workspace.path("key"), "--domain", Self.host, "--format", format)
        #expect(wrong.ending == .exited(1) && wrong.errors.contains("a P-256 key signs jws records only"), "\(wrong)")
      }
    }
  }
}
