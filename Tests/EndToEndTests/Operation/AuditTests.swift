import Foundation
import Glibc
import Testing

extension Operation {
  /// The audit file of a running proxy.
  @Suite struct AuditTests {
    private static func settings(port: UInt16 = 1, _ audit: String = #"file: "audit.jsonl""#) throws -> Settings {
      try Settings.pinned(Certificates.shared().ecdsa.pin, port: port).with { $0.audit = audit }
    }

    /// What the audit files of the proxy hold now.
    private static func text(_ pinfold: Pinfold) throws -> String {
      try FileManager.default.contentsOfDirectory(atPath: pinfold.workspace.folder.path)
        .filter { $0.wholeMatch(of: /audit-\d{4}-\d\d-\d\d\.jsonl/) != nil }.sorted()
        .map { pinfold.workspace.read($0) }.joined()
    }

    static func records(_ pinfold: Pinfold, _ event: String = "tunnel") throws -> [[String: Any]] {
      try text(pinfold).split(separator: "\n").map {
        try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any], "\($0)")
      }.filter { $0["event"] as? String == event }
    }

    /// Guards: the order of record and answer. Fifty times the process is killed at the first byte of its answer; a
    /// record that were still in memory would be missing from at least some of the files.
    @Test("A refusal is on disk before the client hears of it: kill -9 at once loses none") func crash() throws {
      for round in 0..<50 {
        let pinfold = try Pinfold(Self.settings())
        let host = "host-\(round).unpinned.test:443"
        let client = try RawClient(to: pinfold.port)
        client.send(RawClient.head(host))
        _ = try client.receive(atLeast: 1)
        pinfold.child.signal(SIGKILL)
        _ = try pinfold.child.wait()
        let records = try Self.records(pinfold)
        #expect(records.count == 1 && records.first?["host"] as? String == host, "round \(round): \(records)")
        #expect(records.first?["reason"] as? String == "unpinned_blocked")
        #expect((records.first?["id"] as? String)?.isEmpty == false)
      }
    }

    /// Guards: the same behind the 200, where the answer is an alert.
    @Test("So is a mismatch, before its alert") func mismatchCrash() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.other, protocols: "TLSv1.2")
      for _ in 0..<10 {
        let pinfold = try Pinfold(Self.settings(port: server.port))
        let client = try RawClient(to: pinfold.port)
        _ = try client.connect("api.pinfold.test:443")
        client.send(ClientHello().bytes)
        _ = try client.receive(atLeast: 1)
        pinfold.child.signal(SIGKILL)
        _ = try pinfold.child.wait()
        let record = try #require(try Self.records(pinfold).first)
        #expect(record["reason"] as? String == "pin_mismatch")
        #expect(record["key"] as? String == certificates.other.pin)
        #expect(record["method"] as? String == "in_band")
        #expect(record["upstream"] as? String == "127.0.0.1:\(server.port)")
        #expect(record["rule"] as? String == "api.pinfold.test")
        #expect(record["policy"] as? Int == 1)
      }
    }

    @Test("A tunnel that passed is one record, and the ids are those of the log") func allowed() throws {
      let server = try Servers.nginx(Certificates.shared().ecdsa)
      let pinfold = try Pinfold(Self.settings(port: server.port))
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
      #expect(try !Client.curl.fetch("https://other.test/", proxy: pinfold.port).succeeded)
      _ = try pinfold.reasons(2)
      pinfold.child.signal(SIGTERM)
      #expect(try pinfold.child.wait() == .exited(0))
      let records = try Self.records(pinfold)
      #expect(records.map { $0["reason"] as? String } == ["pin_match", "unpinned_blocked"])
      #expect(records.map { $0["id"] as? String } == pinfold.decisions.map { $0["id"] as? String })
      #expect(records.map { $0["verdict"] as? String } == ["allow", "refuse"])
      #expect(try Self.records(pinfold, "start").count == 1)
      #expect(try Self.records(pinfold, "stop").count == 1)
      #expect(try Self.records(pinfold, "policy_accepted").first?["policy"] as? Int == 1)
    }

    /// Guards: what peers send reaches a file that people and programs read.
    @Test("No address of a client, no credential and no byte of a peer stands in it as it came") func privacy() throws {
      let upstream = try FakeUpstream { $0.readToEnd() }
      let pinfold = try Pinfold(Self.settings(port: upstream.port))
      let secret = "dXNlcjpzM2NyM3Q="
      for head in [
        RawClient.head("evil.test:443", fields: "Proxy-Authorization: Basic \(secret)\r\n"),
        "CONNECT a\u{1b}[2J.test:443 HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT x:443\u{2028}{\"event\":\"start\"} HTTP/1.1\r\n\r\n", "GET /\" HTTP/1.1\r\n\r\n",
        "\u{16}\u{3}\u{1}\r\n\r\n",
      ] {
        let client = try RawClient(to: pinfold.port)
        client.send(head)
        _ = client.drain(seconds: 2)
      }
      for name in ["x\",\"event\":\"start", "a\nb", "\u{1b}[31m", "evil.test"] {
        var hello = ClientHello()
        hello.serverName = name
        _ = try RawClient.exchange(proxy: pinfold.port, "api.pinfold.test:443", hello.bytes, seconds: 2)
      }
      let text = try Self.text(pinfold)
      #expect(text.utf8.allSatisfy { $0 == 0x0a || (0x20..<0x7f).contains($0) })
      let records = try Self.records(pinfold)
      #expect(records.count >= 9, "\(text)")
      #expect(try Self.records(pinfold, "start").count == 1)
      #expect(!text.contains(secret) && !text.contains("s3cr3t"))
      #expect(records.allSatisfy { ($0["client"] as? String)?.wholeMatch(of: /[0-9a-f]{16}/) != nil })
      #expect(Set(records.map { $0["client"] as? String }).count == 1)
      for record in records {
        for (key, value) in record where key != "upstream" { #expect("\(value)" != "127.0.0.1", "\(key)") }
        #expect(!"\(record["detail"] ?? "")".contains("127.0.0.1"))
      }
    }

    @Test("The pseudonym is the same after a restart, and an address only where it is asked for") func client() throws {
      let pinfold = try Pinfold(Self.settings())
      let refuse = { _ = try RawClient(to: pinfold.port).connect("unpinned.test:443") }
      try refuse()
      let first = try #require(try Self.records(pinfold).last?["client"] as? String)
      try pinfold.reload(Self.settings(port: 1, #"file: "audit.jsonl""#).with { $0.version = 2 })
      try Wait.untilTrue("a reload") { try Self.records(pinfold, "reload").count == 1 }
      try refuse()
      #expect(try Self.records(pinfold).last?["client"] as? String == first)
      try pinfold.reload(Self.settings(port: 1, #"file: "audit.jsonl", client: "address""#).with { $0.version = 3 })
      try Wait.untilTrue("another reload") { try Self.records(pinfold, "reload").count == 2 }
      try refuse()
      #expect(try Self.records(pinfold).last?["client"] as? String == "127.0.0.1")
    }

    /// Guards: a disk that does not take records must not let a tunnel through, nor keep one waiting.
    @Test("A file that cannot be written is said, and tunnels go on being judged") func unwritable() throws {
      let server = try Servers.nginx(Certificates.shared().ecdsa)
      let pinfold = try Pinfold(Self.settings(port: server.port, #"file: "logs/audit.jsonl""#)) { workspace in
        try FileManager.default.createDirectory(
          atPath: workspace.path("logs"), withIntermediateDirectories: true)
        // Root may write anywhere, so that permissions would stop nobody here: a directory in the file's place does.
        for day in 0..<3 {
          let name = ISO8601DateFormatter.string(
            from: Date().addingTimeInterval(Double(day - 1) * 86_400), timeZone: .gmt,
            formatOptions: [.withFullDate, .withDashSeparatorInDate])
          try FileManager.default.createDirectory(
            atPath: workspace.path("logs/audit-\(name).jsonl"), withIntermediateDirectories: false)
        }
      }
      try Wait.untilTrue("an error line") {
        pinfold.log.contains { ($0["message"] as? String)?.hasPrefix("audit records cannot be written") == true }
      }
      let start = ContinuousClock.now
      for _ in 0..<10 {
        #expect(try RawClient(to: pinfold.port).connect("unpinned.test:443").statusLine.contains(" 403"))
      }
      #expect(ContinuousClock.now - start < .seconds(5))
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
      let status = try #require(try HTTP.get("/status", port: pinfold.admin)).body
      #expect(status.contains("\"audit\"") && status.contains("cannot open"), "\(status)")
    }

    @Test("SIGHUP begins a new file where the old one was moved away, even with a bad configuration") func moved()
      throws
    {
      let pinfold = try Pinfold(Self.settings())
      let refuse = { _ = try RawClient(to: pinfold.port).connect("unpinned.test:443") }
      try refuse()
      let folder = pinfold.workspace.folder.path
      let name = try #require(
        try FileManager.default.contentsOfDirectory(atPath: folder).first { $0.hasPrefix("audit-") })
      try FileManager.default.moveItem(atPath: "\(folder)/\(name)", toPath: "\(folder)/moved")
      try pinfold.reload(brokenBundle: "{")
      try Wait.untilTrue("the new file") { FileManager.default.fileExists(atPath: "\(folder)/\(name)") }
      try refuse()
      #expect(try Self.records(pinfold).count == 1)
      #expect(try Self.records(pinfold, "policy_refused").first?["cause"] as? String == "envelope")
      #expect(try Self.records(pinfold, "reload").first?["result"] as? String == "failure")
    }

    /// Guards: an audit that begins without a word of what began it.
    @Test("An audit that SIGHUP switches on begins with that reload") func switchedOn() throws {
      let pinfold = try Pinfold(Self.settings(port: 1, ""))
      try pinfold.reload(Self.settings().with { $0.version = 2 })
      try Wait.untilTrue("the reload's record") { try Self.records(pinfold, "reload").count == 1 }
      #expect(try Self.records(pinfold, "reload").first?["policy"] as? Int == 2)
      #expect(try Self.records(pinfold, "policy_accepted").first?["policy"] as? Int == 2)
    }

    /// Guards: an audit that a wrong clock wipes, today's file included. What is old by the right one goes after ten minutes
    /// (AuditRetentionTests).
    @Test("A clock that is ahead at the start, and at a SIGHUP, removes no file") func ahead() throws {
      let clock = try ShiftedClock()
      try clock.shift(by: 100 * 86_400)
      let yesterday = Date.now.addingTimeInterval(-86_400).formatted(.iso8601).prefix(10)
      let old = ["audit-2020-01-01.jsonl", "audit-\(yesterday).jsonl"]
      let settings = try Self.settings(port: 1, #"file: "audit.jsonl", retention_days: 30"#).with {
        $0.environment = clock.environment
      }
      let pinfold = try Pinfold(settings) { workspace in for name in old { try workspace.write(name, "{}\n") } }
      pinfold.child.signal(SIGHUP)
      try Wait.untilTrue("a reload") { pinfold.log.contains { $0["message"] as? String == "reloaded" } }
      // An end in order waits for whatever the audit was told to do.
      try pinfold.end()
      for name in old { #expect(pinfold.workspace.read(name) == "{}\n") }
    }

    @Test("`pinfold audit` prints what a running proxy wrote") func command() throws {
      let pinfold = try Pinfold(Self.settings())
      for host in ["one.test:443", "two.test:443"] { _ = try RawClient(to: pinfold.port).connect(host) }
      let file = pinfold.workspace.path("pinfold.json5")
      let found = try Pinfold.command("audit", "-c", file, "--host", "two.test", "--reason", "unpinned_blocked")
      #expect(found.succeeded, "\(found)")
      #expect(found.output.split(separator: "\n").count == 1)
      #expect(found.output.contains(#""host":"two.test:443""#))
    }
  }
}
