import Foundation
import Glibc
import Testing

extension Operation {
  /// Reload and drain.
  @Suite struct LifecycleTests {
    /// Guards: the atomic swap, and that a bad file changes nothing.
    @Test("SIGHUP takes a good policy, and keeps it when the next one is bad") func reload() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let wrong = try Settings.pinned(certificates.other.pin, port: server.port)
      let right = try Settings.pinned(certificates.ecdsa.pin, port: server.port).with { $0.version = 2 }
      let pinfold = try Pinfold(wrong)
      #expect(try !Client.curl.fetch(proxy: pinfold.port).succeeded)

      try pinfold.reload(right)
      try Wait.untilTrue("version 2") { try pinfold.metrics().sum("pinfold_policy_version") == 2 }
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)

      try pinfold.reload(brokenBundle: "{ not a bundle")
      try Wait.untilTrue("a failed reload") {
        try pinfold.metrics().sum("pinfold_policy_reloads_total", #"result="failure""#) >= 1
      }
      #expect(try pinfold.metrics().sum("pinfold_policy_version") == 2)
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
      #expect(try HTTP.get("/readyz", port: pinfold.admin)?.status == 200)

      // An older version, rightly signed, is a rollback.
      try pinfold.reload(wrong)
      try Wait.untilTrue("a second failed reload") {
        try pinfold.metrics().sum("pinfold_policy_reloads_total", #"result="failure""#) >= 2
      }
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
    }

    @Test("A bundle signed by another key is refused") func strangersBundle() throws {
      let certificates = try Certificates.shared()
      let pinfold = try Pinfold(.pinned(certificates.ecdsa.pin, port: 1))
      let stranger = try Pinfold(.pinned(certificates.other.pin, port: 1, rule: "").with { $0.version = 9 })
      try pinfold.reload(brokenBundle: stranger.workspace.read("policy.signed.json"))
      try Wait.untilTrue("a failed reload") {
        try pinfold.metrics().sum("pinfold_policy_reloads_total", #"result="failure""#) >= 1
      }
      #expect(try pinfold.metrics().sum("pinfold_policy_version") == 1)
    }

    @Test("Started with an expired policy it serves, is not ready, and blocks everything") func expiredPolicy() throws {
      let settings = try Settings.pinned(Certificates.shared().ecdsa.pin, port: 1).with {
        $0.expiresAt = "2021-01-01T00:00:00Z"
        $0.unpinned = "tunnel"
      }
      let pinfold = try Pinfold(settings)
      #expect(try HTTP.get("/healthz", port: pinfold.admin)?.status == 200)
      #expect(try HTTP.get("/readyz", port: pinfold.admin)?.status == 503)
      for authority in ["api.pinfold.test:443", "unpinned.test:443"] {
        #expect(try !RawClient(to: pinfold.port).connect(authority).statusLine.contains(" 200"))
      }
    }

    /// Guards: a key that was changed and does not count.
    @Test("A reload names every key that is read at start only") func needsRestart() throws {
      let pinfold = try Pinfold(Settings.pinned(Certificates.shared().ecdsa.pin, port: 1))
      let before = pinfold.workspace.read("pinfold.json5")
      let (port, admin) = try (FreePort.next(), FreePort.next())
      let after = before.replacing("127.0.0.1:\(pinfold.port)", with: "127.0.0.1:\(port)")
        .replacing("127.0.0.1:\(pinfold.admin)", with: "127.0.0.1:\(admin)")
        .replacing("key_log: null", with: #"key_log: "keys""#).replacing(#"format: "json""#, with: #"format: "text""#)
      try pinfold.workspace.write("pinfold.json5", after)
      pinfold.child.signal(SIGHUP)
      let line = try Wait.until("the reload") { pinfold.log.first { $0["message"] as? String == "reloaded" } }
      #expect(line["needs_restart"] as? String == "listen, admin, tls.key_log, log.format", "\(line)")
    }

    struct Denied: CustomTestStringConvertible {
      var testDescription: String { said }
      var listen = "unix:proxy.sock"
      var keyLog = "null"
      let said: String
    }

    /// Guards: words that send the operator to the network.
    @Test(
      "What cannot be listened on or made is told in the system's words, with what would be right",
      arguments: [
        Denied(
          listen: "203.0.113.77:3128",
          said: "on 203.0.113.77:3128: Cannot assign requested address; it has to be an address of this machine"),
        Denied(
          listen: "unix:/nowhere/proxy.sock",
          said: "on unix:/nowhere/proxy.sock: No such file or directory; its directory has to be there"),
        Denied(
          keyLog: "\"/nowhere/keys\"",
          said: "key-log pipe /nowhere/keys: No such file or directory; its directory has to be there"),
        Denied(
          keyLog: "\"/dev/null\"",
          said: "key-log pipe /dev/null: File exists; it has to be a named pipe, or not to exist yet"),
      ])
    func denied(_ row: Denied) throws {
      let workspace = try Workspace("denied")
      let path = try workspace.write(
        "pinfold.json5",
        """
        { listen: ["\(row.listen)"], admin: "127.0.0.1:\(try FreePort.next())", state_dir: "state",
          tls: { key_log: \(row.keyLog) } }
        """)
      let run = try Pinfold.command("run", "-c", path)
      #expect(run.ending == .exited(1))
      #expect(run.errors.contains(row.said), "\(run)")
      let check = try Pinfold.command("check", "-c", path)
      if row.keyLog != "null" { #expect(check.output.contains("warning: cannot open the \(row.said)\n"), "\(check)") }
    }

    /// Root may do everything.
    private static func checkAsNobody(_ path: String) throws -> Command {
      let nobody = geteuid() == 0 ? ["setpriv", "--reuid=65534", "--clear-groups", "--"] : []
      return try Command(nobody + [Pinfold.binary, "check", "-c", path])
    }

    @Test("A configuration that this user may not read is said to be so") func unreadableConfiguration() throws {
      let workspace = try Workspace("unreadable")
      let path = try workspace.write("pinfold.json5", "{}")
      #expect(unsafe chmod(workspace.path("."), 0o755) == 0 && chmod(path, 0) == 0)
      let check = try Self.checkAsNobody(path)
      #expect(check.ending == .exited(78))
      #expect(check.errors == "pinfold: \(path): this user may not read the file\n", "\(check)")
    }

    /// Guards: an audit whose loss shows only when it is needed.
    @Test("check warns of an audit that could not be written") func unwritableAudit() throws {
      let workspace = try Workspace("audit")
      let path = try workspace.write("pinfold.json5", #"{ state_dir: "state", audit: { file: "closed/audit.jsonl" } }"#)
      let closed = workspace.path("closed")
      #expect(unsafe mkdir(closed, 0o555) == 0)
      #expect(unsafe chmod(workspace.path("."), 0o755) == 0)
      let check = try Self.checkAsNobody(path)
      let warning = "warning: audit.file: records would be lost: cannot write in \(closed): Permission denied\n"
      #expect(check.output.contains(warning), "\(check)")
    }

    /// Guards: an operator who is told once, and forgets it, or is told of what was taken back.
    @Test("What needs a restart is named at each reload until it is taken back") func pendingRestart() throws {
      let settings = try Settings.pinned(Certificates.shared().ecdsa.pin, port: 1)
      let pinfold = try Pinfold(settings)
      for (number, workers) in [3, 3, settings.workers].enumerated() {
        try pinfold.reload(settings.with { $0.workers = workers })
        let line = try Wait.until("reload \(number)") {
          let lines = pinfold.log.filter { $0["message"] as? String == "reloaded" }
          return lines.count > number ? lines.last : nil
        }
        #expect(line["needs_restart"] as? String == (workers == settings.workers ? nil : "workers"), "\(line)")
      }
    }

    /// Guards: log lines in whatever file or socket is the first to be opened.
    @Test("What is closed at the start is no descriptor of the proxy's own") func closedDescriptors() throws {
      let settings = try Settings.pinned(Certificates.shared().ecdsa.pin, port: 1).with {
        $0.limits["drain_seconds"] = 1
      }
      let first = try Pinfold(settings)
      first.child.signal(SIGTERM)
      #expect(try first.child.wait(seconds: 10) == .exited(0))
      let child = try Child([
        "sh", "-c", #"exec "$0" run -c "$1" <&- >&- 2>&-"#, Pinfold.binary, first.workspace.path("pinfold.json5"),
      ])
      try Wait.untilTrue("the admin port") { try HTTP.get("/healthz", port: first.admin)?.status == 200 }
      for descriptor in 0...2 {
        let path = "/proc/\(child.pid)/fd/\(descriptor)"
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: path) == "/dev/null")
      }
      child.signal(SIGTERM)
      #expect(try child.wait(seconds: 10) == .exited(0))
    }

    /// Guards: a silent start leaves its operator guessing.
    @Test("At the start it says where it serves and under which policy") func start() throws {
      let pinfold = try Pinfold(Settings.pinned(Certificates.shared().ecdsa.pin, port: 1))
      let line = try Wait.until("the line of the start") { pinfold.log.first { $0["message"] as? String == "serving" } }
      #expect(line["listen"] as? String == "127.0.0.1:\(pinfold.port)")
      #expect(line["admin"] as? String == "127.0.0.1:\(pinfold.admin)")
      #expect((line["policy"] as? Int ?? 0) > 0 && (line["tunnels"] as? Int ?? 0) > 0, "\(line)")
    }

    /// Guards: a deployment must not tear what is under way.
    @Test("SIGTERM lets tunnels finish, takes no new ones and exits 0") func drain() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let pinfold = try Pinfold(
        .pinned(certificates.ecdsa.pin, port: server.port).with { $0.limits["drain_seconds"] = 20 })
      let client = try RawClient(to: pinfold.port)
      #expect(try client.connect("api.pinfold.test:443").statusLine.contains(" 200"))
      client.send(ClientHello().bytes)
      #expect(try client.receive(atLeast: 800).first == 22)
      pinfold.child.signal(SIGTERM)
      try Wait.untilTrue("not being ready") { try HTTP.get("/readyz", port: pinfold.admin)?.status != 200 }
      let newcomer = try Socket.connect(to: pinfold.port, timeout: 2).map { RawClient(socket: $0) }
      if let newcomer {
        newcomer.send(RawClient.head("api.pinfold.test:443"))
        #expect(!ProxyReply(newcomer.drain(seconds: 3).bytes).statusLine.contains(" 200"))
      }
      #expect(pinfold.child.poll() == nil, "it went although a tunnel was open")
      // The tunnel still carries: nginx answers a broken second flight with an alert.
      client.send([22, 3, 3, 0, 4, 16, 0, 0, 0])
      #expect(try client.receive(atLeast: 7).first == 21)
      client.socket.shutDown()
      #expect(try pinfold.child.wait(seconds: 10) == .exited(0))
    }

    /// Guards: a collector of logs that hangs must not keep a deployment from ending.
    @Test("SIGTERM ends it although nobody reads its standard error") func stalledLog() throws {
      let settings = try Settings.pinned(Certificates.shared().ecdsa.pin, port: 1).with {
        $0.limits["drain_seconds"] = 1
      }
      let first = try Pinfold(settings)
      first.child.signal(SIGTERM)
      #expect(try first.child.wait(seconds: 10) == .exited(0))
      let stalled = try FullPipe(at: first.workspace.path("stalled"))
      let child = try Child([
        "sh", "-c", #"exec "$0" run -c "$1" 2>"$2""#, Pinfold.binary, first.workspace.path("pinfold.json5"),
        stalled.path,
      ])
      try Wait.untilTrue("the admin port") { try HTTP.get("/healthz", port: first.admin)?.status == 200 }
      child.signal(SIGTERM)
      #expect(try child.wait(seconds: 6) == .exited(0))
    }

    @Test("SIGTERM ends tunnels that outlast drain_seconds") func drainDeadline() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
      let pinfold = try Pinfold(
        .pinned(certificates.ecdsa.pin, port: server.port).with { $0.limits["drain_seconds"] = 1 })
      let client = try RawClient(to: pinfold.port)
      _ = try client.connect("api.pinfold.test:443")
      client.send(ClientHello().bytes)
      #expect(try client.receive(atLeast: 800).first == 22)
      pinfold.child.signal(SIGTERM)
      #expect(client.drain(seconds: 10).ended)
      #expect(try pinfold.child.wait(seconds: 10) == .exited(0))
    }
  }
}

/// A named pipe that is full, open, and never read.
private final class FullPipe {
  let path: String
  private let descriptor: Int32

  init(at path: String) throws {
    self.path = path
    guard unsafe mkfifo(path, 0o600) == 0 else { throw HarnessError("mkfifo: error \(errno)") }
    descriptor = unsafe open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { throw HarnessError("open: error \(errno)") }
    let page = [UInt8](repeating: 0, count: 4096)
    while unsafe page.withUnsafeBytes({ unsafe write(descriptor, $0.baseAddress, $0.count) }) > 0 {}
  }

  deinit { close(descriptor) }
}
