import Foundation
import Glibc
import Synchronization
import Testing

/// A server that resumes sessions, and how.
struct ResumingServer: CustomTestStringConvertible, Sendable {
  let testDescription: String
  let make: @Sendable (Certificates.Identity) throws -> Servers.Running

  init(_ name: String, _ make: @escaping @Sendable (Certificates.Identity) throws -> Servers.Running) {
    testDescription = name
    self.make = make
  }

  static let tls12 = [
    ResumingServer("nginx with tickets") { try Servers.nginx($0, protocols: "TLSv1.2") },
    ResumingServer("nginx with session ids") {
      try Servers.nginx(
        $0, protocols: "TLSv1.2", options: "ssl_session_tickets off; ssl_session_cache shared:ids:1m;")
    },
    ResumingServer("gnutls-serv with tickets") { try Servers.gnutls($0, priority: "NORMAL:-VERS-ALL:+VERS-TLS1.2") },
    ResumingServer("openssl s_server, TLS 1.0 with tickets") {
      try Servers.openssl($0, ["-tls1", "-cipher", "ALL@SECLEVEL=0"])
    },
  ]

  static let tls13 = ResumingServer("nginx, TLS 1.3") { try Servers.nginx($0, protocols: "TLSv1.3") }
}

extension Handshakes {
  /// Resumed sessions show no certificate. Under `tls.resumption: "refuse"` nothing but what Pinfold remembers of their
  /// full handshake lets them pass, so that a pass here can have no other cause.
  @Suite struct ResumptionTests {
    /// An OpenSSL client whose session lies in a file between two connections.
    private struct SessionClient {
      let workspace: Workspace
      let options: [String]

      init(_ options: [String] = []) throws {
        workspace = try Workspace("session")
        self.options = options
      }

      /// Connects through the proxy on that port, or right to a server; `nil` input sends no data.
      @discardableResult
      func connect(
        _ route: [String], resuming: Bool, request: String = "GET / HTTP/1.0\r\nHost: api.pinfold.test\r\n\r\n"
      ) throws -> Command {
        let file = workspace.path("session.pem")
        let session = resuming ? ["-sess_in", file] : ["-sess_out", file]
        return try Command(
          ["openssl", "s_client", "-servername", "api.pinfold.test", "-CAfile", Certificates.shared().rootFile]
            + route + session + options + (request.isEmpty ? [] : ["-ign_eof"]), input: request)
      }

      static func through(_ pinfold: Pinfold) -> [String] {
        ["-proxy", "127.0.0.1:\(pinfold.port)", "-connect", "api.pinfold.test:443"]
      }

      static func direct(_ server: Servers.Running) -> [String] { ["-connect", "127.0.0.1:\(server.port)"] }
    }

    private static func wasResumed(_ command: Command) -> Bool { command.output.contains("Reused, TLSv1") }

    private static func options(_ row: ResumingServer) -> [String] {
      row.testDescription.contains("1.0") ? ["-tls1", "-cipher", "ALL@SECLEVEL=0"] : []
    }

    private static func settings(_ pin: String, _ server: Servers.Running, resumption: String = "refuse") throws
      -> Settings
    {
      try Settings.pinned(pin, port: server.port).with { $0.resumption = resumption }
    }

    @Test(
      "A session of a handshake that was judged is resumed", arguments: ResumingServer.tls12 + [ResumingServer.tls13])
    func known(_ row: ResumingServer) throws {
      let identity = try Certificates.shared().ecdsa
      let server = try row.make(identity)
      let pinfold = try Pinfold(Self.settings(identity.pin, server))
      let client = try SessionClient(Self.options(row))
      let first = try client.connect(SessionClient.through(pinfold), resuming: false)
      let second = try client.connect(SessionClient.through(pinfold), resuming: true)
      #expect(!Self.wasResumed(first) && Self.wasResumed(second), "\(first)\n\(second)")
      #expect(second.output.contains("200"), "\(second)")
      #expect(try pinfold.reasons(2) == ["pin_match", "pin_match"])
      let metrics = try pinfold.metrics()
      #expect(
        metrics.sum("pinfold_verifications_total", #"method="resumption""#, #"reason="pin_match""#) == 1)
    }

    @Test(
      "After the pin has left the policy its sessions are refused",
      arguments: ResumingServer.tls12 + [ResumingServer.tls13])
    func policyChange(_ row: ResumingServer) throws {
      let certificates = try Certificates.shared()
      let server = try row.make(certificates.ecdsa)
      let settings = try Self.settings(certificates.ecdsa.pin, server, resumption: "probe")
      let pinfold = try Pinfold(settings)
      let client = try SessionClient(Self.options(row))
      try client.connect(SessionClient.through(pinfold), resuming: false)
      try pinfold.reload(Self.settings(certificates.other.pin, server, resumption: "probe").with { $0.version = 2 })
      try Wait.untilTrue("the new policy") { try pinfold.metrics().sum("pinfold_policy_version") == 2 }
      let second = try client.connect(SessionClient.through(pinfold), resuming: true)
      #expect(!Self.wasResumed(second) && !second.output.contains("200 OK"), "\(second)")
      #expect(try pinfold.reasons(2) == ["pin_match", "pin_mismatch"])
      let metrics = try pinfold.metrics()
      #expect(
        metrics.sum("pinfold_verifications_total", #"method="resumption""#, #"reason="pin_mismatch""#) == 1)
    }

    @Test(
      "A session of unknown origin is refused, or left to a probe",
      arguments: ResumingServer.tls12 + [ResumingServer.tls13], ["refuse", "probe"])
    func unknown(_ row: ResumingServer, resumption: String) throws {
      let identity = try Certificates.shared().ecdsa
      let server = try row.make(identity)
      let pinfold = try Pinfold(Self.settings(identity.pin, server, resumption: resumption))
      let client = try SessionClient(Self.options(row))
      try client.connect(SessionClient.direct(server), resuming: false)
      let second = try client.connect(SessionClient.through(pinfold), resuming: true)
      let passes = resumption == "probe"
      #expect(Self.wasResumed(second) == passes, "\(second)")
      #expect(try pinfold.reasons() == [passes ? "pin_match" : "resumption_unverified"])
      let method = passes ? #"method="probe""# : #"method="resumption""#
      #expect(try pinfold.metrics().sum("pinfold_verifications_total", method) == 1)
    }

    @Test("A session whose client sent no data is not learnt", arguments: ResumingServer.tls12.prefix(2))
    func uncommitted(_ row: ResumingServer) throws {
      let identity = try Certificates.shared().ecdsa
      let server = try row.make(identity)
      let pinfold = try Pinfold(Self.settings(identity.pin, server))
      let client = try SessionClient()
      try client.connect(SessionClient.through(pinfold), resuming: false, request: "")
      try client.connect(SessionClient.through(pinfold), resuming: true)
      #expect(try pinfold.reasons(2) == ["pin_match", "resumption_unverified"])
    }

    /// Guards: a session that goes on because an authority vouched for it that nobody trusts any more.
    @Test(
      "Once a system authority was removed, its sessions are of unknown origin",
      arguments: [ResumingServer.tls12[0], ResumingServer.tls13], [true, false])
    func systemAuthority(_ row: ResumingServer, isRemoved: Bool) throws {
      let certificates = try Certificates.shared()
      let server = try row.make(certificates.ecdsa)
      let folder = try Workspace("authorities")
      try folder.write("root.pem", String(contentsOfFile: certificates.rootFile, encoding: .utf8))
      try Command.output(["openssl", "rehash", folder.folder.path])
      let settings = try Self.settings(certificates.ecdsa.pin, server).with {
        $0.rootFile = nil
        $0.environment = ["SSL_CERT_DIR": folder.folder.path, "SSL_CERT_FILE": folder.path("none")]
      }
      let pinfold = try Pinfold(settings)
      let client = try SessionClient(Self.options(row))
      try client.connect(SessionClient.through(pinfold), resuming: false)
      if isRemoved {
        try FileManager.default.removeItem(atPath: folder.path("root.pem"))
        try Command.output(["openssl", "rehash", folder.folder.path])
      }
      try pinfold.reload(settings.with { $0.version = 2 })
      try Wait.untilTrue("the new rules") { try pinfold.metrics().sum("pinfold_policy_version") == 2 }
      let second = try client.connect(SessionClient.through(pinfold), resuming: true)
      #expect(Self.wasResumed(second) != isRemoved, "\(second)")
      #expect(try pinfold.reasons(2) == ["pin_match", isRemoved ? "resumption_unverified" : "pin_match"])
    }

    @Test("A restart forgets all sessions") func restart() throws {
      let identity = try Certificates.shared().ecdsa
      let server = try Servers.nginx(identity, protocols: "TLSv1.2")
      let client = try SessionClient()
      for (resuming, reason) in [(false, "pin_match"), (true, "resumption_unverified")] {
        let pinfold = try Pinfold(Self.settings(identity.pin, server))
        try client.connect(SessionClient.through(pinfold), resuming: resuming)
        #expect(try pinfold.reasons() == [reason])
      }
    }

    @Test("curl, Python and Java resume by themselves", arguments: ["TLSv1.2", "TLSv1.3"]) func clients(
      protocols: String
    )
      throws
    {
      let identity = try Certificates.shared().ecdsa
      let server = try Servers.nginx(
        identity, protocols: protocols, options: "ssl_session_cache shared:ids:1m;")
      let pinfold = try Pinfold(Self.settings(identity.pin, server))
      let url = "https://api.pinfold.test/"
      let curl = try Client.curl.fetch(url, proxy: pinfold.port, options: ["-v", "-H", "Connection: close", url])
      #expect(curl.succeeded && curl.output.components(separatedBy: Servers.greeting).count == 3, "\(curl)")
      let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "Clients/resume.py").path
      let python = try Command(["python3", script, "\(pinfold.port)", Certificates.shared().rootFile, url])
      #expect(python.succeeded && python.output.contains("full") && python.output.contains("resumed"), "\(python)")
      let java = try Client.java.fetch(url, proxy: pinfold.port, options: ["-Dtimes=2", "-Dhttp.keepAlive=false"])
      #expect(java.succeeded, "\(java)")
      #expect(try pinfold.reasons(6) == Array(repeating: "pin_match", count: 6))
      #expect(try pinfold.metrics().sum("pinfold_verifications_total", #"method="resumption""#) == 3)
    }

    @Test("A body that follows the handshake at once arrives whole") func whole() throws {
      let identity = try Certificates.shared().ecdsa
      let server = try Servers.nginx(identity, protocols: "TLSv1.2")
      let body = String(repeating: "0123456789abcdef", count: 65_536)
      try body.write(toFile: server.path("body"), atomically: true, encoding: .utf8)
      let pinfold = try Pinfold(Self.settings(identity.pin, server))
      for _ in 0..<5 {
        let fetched = try Client.curl.fetch("https://api.pinfold.test/body", proxy: pinfold.port)
        #expect(fetched.output == body)
      }
    }

    /// Guards: tunnels that keep their places for handshake_seconds though nobody is there any more, and a process that
    /// ends without their lines.
    @Test("Who waits for a probe is let go when the client leaves, or a drain ends it", arguments: [true, false])
    func departure(leaves: Bool) throws {
      let dials = Atomic<Int>(0)
      let upstream = try FakeUpstream { near in
        let hello = near.readRecord()
        guard hello.count > 76 else { return }
        let isProbe = dials.add(1, ordering: .relaxed).newValue > 1
        // A probe that hears something at all is waited for.
        near.socket.send(isProbe ? [22, 3, 3] : StagedPath.resumption(answering: hello))
        near.readToEnd(seconds: 60)
      }
      let pinfold = try Pinfold(
        Settings.pinned(Certificates.shared().ecdsa.pin, port: upstream.port).with {
          $0.limits["handshake_seconds"] = 60
          $0.limits["drain_seconds"] = 1
        })
      let client = try RawClient(to: pinfold.port)
      #expect(try client.connect("api.pinfold.test:443").statusLine.contains(" 200"))
      // With a ticket, so that the upstream has something to resume.
      client.send(ClientHello(extraExtensions: [0, 35, 0, 4, 1, 2, 3, 4]).bytes)
      try Wait.untilTrue("the probe's hello") { upstream.received.count == 2 && upstream.received[1].count > 76 }
      Thread.sleep(forTimeInterval: 0.1)
      if leaves {
        client.socket.shutDown()
        #expect(try pinfold.reasons() == ["handshake_timeout"])
      } else {
        pinfold.child.signal(SIGTERM)
        #expect(try pinfold.child.wait(seconds: 20) == .exited(0))
        #expect(try pinfold.reasons() == ["limit_reached"])
      }
    }
  }
}
