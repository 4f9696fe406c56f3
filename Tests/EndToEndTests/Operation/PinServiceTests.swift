import Foundation
import Testing

extension Operation {
  /// Hosts whose pins come from a service: what is fetched, when, and what comes of every way it can fail.
  @Suite struct PinServiceTests {
    private static let url = "https://api.pinfold.test/"

    /// Runs `count` clients at once and returns how they ended.
    static func fetch(_ count: Int, proxy: UInt16, url: String = url) async throws -> [Command] {
      try await withThrowingTaskGroup(of: Command.self) { group in
        for _ in 0..<count { group.addTask { try Client.curl.fetch(url, proxy: proxy) } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
    }

    @Test("The first tunnel waits for its pins, the others find them", arguments: RecordSigner.Kind.allCases)
    func firstWaits(_ kind: RecordSigner.Kind) throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa)
      let signer = try RecordSigner(kind)
      let record = try signer.record(certificates.ecdsa.pin)
      let service = try PinService { _ in .body(record) }
      service.delay(0.3)
      let pinfold = try Pinfold(.supplied(service.section(signer), port: server.port))
      for _ in 0..<3 {
        let fetched = try Client.curl.fetch(proxy: pinfold.port)
        #expect(fetched.succeeded && fetched.output.contains(Servers.greeting), "\(fetched)")
      }
      #expect(service.targets == ["/v1/pins?domain=api.pinfold.test"])
      #expect(try pinfold.reasons(3) == ["pin_match", "pin_match", "pin_match"])
      #expect(
        pinfold.decisions.allSatisfy { $0["source"] as? String == "service" && $0["mode"] as? String == "enforce" })
      let metrics = try pinfold.metrics()
      let origin = "service=\"http://127.0.0.1:\(service.port)\""
      #expect(metrics.sum("pinfold_pin_fetches_total", origin, #"result="success""#) == 1)
      #expect(metrics.sum("pinfold_cache_total", #"result="miss""#) == 1)
      #expect(metrics.sum("pinfold_cache_total", #"result="hit""#) == 2)
      let expiry = metrics.sum("pinfold_pins_expiry_timestamp_seconds", #"host="api.pinfold.test""#)
      #expect(abs(expiry - Date().timeIntervalSince1970 - 3600) < 60)
      #expect(try HTTP.get("/readyz", port: pinfold.admin)?.status == 200)
    }

    @Test("50 tunnels at once wait for one fetch") func singleFlight() async throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa)
      let signer = try RecordSigner()
      let record = try signer.record(certificates.ecdsa.pin)
      let service = try PinService { _ in .body(record) }
      service.delay(1.5)
      let pinfold = try Pinfold(.supplied(service.section(signer), port: server.port))
      let fetched = try await Self.fetch(50, proxy: pinfold.port)
      let failed = fetched.filter { !$0.succeeded }
      #expect(failed.isEmpty, "\(failed)")
      #expect(service.asked == ["api.pinfold.test"])
    }

    @Test("A key that does not match is refused, whatever the service's record looks like otherwise")
    func mismatch() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa)
      let signer = try RecordSigner()
      let record = try signer.record(certificates.other.pin)
      let service = try PinService { _ in .body(record) }
      let pinfold = try Pinfold(.supplied(service.section(signer), port: server.port))
      #expect(try !Client.curl.fetch(proxy: pinfold.port).succeeded)
      #expect(try pinfold.reasons() == ["pin_mismatch"])
      // The refusal came after one more look at the service.
      #expect(service.asked.count == 2)
    }

    /// An answer that is no pins, the word of its step, and the metric's label.
    struct Failure: CustomTestStringConvertible {
      let testDescription: String
      let step: String
      let result: String
      let answer: @Sendable (RecordSigner, String) throws -> PinService.Answer

      init(
        _ name: String, _ step: String, _ result: String,
        _ answer: @escaping @Sendable (RecordSigner, String) throws -> PinService.Answer
      ) {
        (testDescription, self.step, self.result, self.answer) = (name, step, result, answer)
      }
    }

    static let failures = [
      Failure("a record of another key", "signature", "untrusted") { _, pin in
        .body(try RecordSigner().record(pin))
      },
      Failure("a record of another kind of key", "algorithm", "untrusted") { _, pin in
        .body(try RecordSigner(.jws).record(pin))
      },
      Failure("a record of another host", "domain", "malformed") {
        .body(try $0.record($1, domain: "www.pinfold.test"))
      },
      Failure("a record of a parent domain", "domain", "malformed") {
        .body(try $0.record($1, domain: "pinfold.test"))
      },
      Failure("a record that expired", "expired", "expired") { .body(try $0.record($1, ttl: 60, created: -120)) },
      Failure("a record of tomorrow", "not_yet_valid", "expired") { .body(try $0.record($1, created: 86_400)) },
      Failure("a redirect to a good record", "status", "status") { _, _ in
        .status(302, fields: "Location: http://127.0.0.1/\r\n")
      },
      Failure("a good record under another status", "status", "status") { .status(203, body: try $0.record($1)) },
      Failure("an error of the service", "status", "status") { _, _ in .status(500, body: "{}") },
      Failure("a record with a byte changed", "signature", "untrusted") {
        .body(try $0.record($1).replacing("3600", with: "3601"))
      },
      Failure("a good record behind too many spaces", "size", "oversized") {
        let record = try $0.record($1)
        return .body(String(repeating: " ", count: 65_537 - record.utf8.count) + record)
      },
      Failure("a record cut off", "reply", "unreachable") { .truncated(try $0.record($1)) },
      Failure("no JSON", "shape", "malformed") { _, _ in .body("<html>pins</html>") },
      Failure("an empty body", "shape", "malformed") { _, _ in .body("") },
    ]

    @Test(
      "What is no record for the host is refused, says its step, and is not asked for again at once",
      arguments: failures)
    func refused(_ failure: Failure) throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa)
      let signer = try RecordSigner()
      let answer = try failure.answer(signer, certificates.ecdsa.pin)
      let service = try PinService { _ in answer }
      let pinfold = try Pinfold(.supplied(service.section(signer), port: server.port))
      for _ in 0..<2 {
        let reply = try RawClient(to: pinfold.port).connect("api.pinfold.test:443")
        #expect(reply.statusLine.contains(" 502 "), "\(reply.head)")
        #expect(reply.field("Proxy-Status")?.contains("details=\"pins_unavailable\"") == true)
      }
      #expect(try pinfold.reasons(2) == ["pins_unavailable", "pins_unavailable"])
      for decision in pinfold.decisions {
        #expect((decision["detail"] as? String)?.hasPrefix("\(failure.step): ") == true, "\(decision)")
        #expect(decision["source"] as? String == "service")
      }
      #expect(service.asked.count == 1, "the failure was not remembered")
      #expect(try pinfold.metrics().sum("pinfold_pin_fetches_total", "result=\"\(failure.result)\"") == 1)
      #expect(try HTTP.get("/readyz", port: pinfold.admin)?.status == 200)
    }

    @Test("A record of the largest size is taken") func largest() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa)
      let signer = try RecordSigner()
      let record = try signer.record(certificates.ecdsa.pin)
      let service = try PinService { _ in
        .body(String(repeating: " ", count: 65_536 - record.utf8.count) + record)
      }
      let pinfold = try Pinfold(.supplied(service.section(signer), port: server.port))
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
    }

    @Test("A service that drips, or says nothing, costs ten seconds and no more", arguments: [true, false])
    func slow(isDripping: Bool) throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa)
      let service = try PinService { _ in isDripping ? .drip : .silence }
      let pinfold = try Pinfold(.supplied(service.section(RecordSigner()), port: server.port))
      let start = ContinuousClock.now
      let client = try RawClient(to: pinfold.port)
      client.send(RawClient.head("api.pinfold.test:443"))
      let reply = ProxyReply(client.drain(seconds: 15).bytes)
      let elapsed = ContinuousClock.now - start
      #expect(reply.statusLine.contains(" 502 "), "\(reply.head)")
      #expect(elapsed > .seconds(9) && elapsed < .seconds(13), "\(elapsed)")
      #expect(try pinfold.reasons() == ["pins_unavailable"])
      #expect((pinfold.decisions.first?["detail"] as? String)?.contains("timed out") == true)
    }

    @Test("Nobody waits for a service for a port that is not opened, or a client that is not served")
    func nobodyAsks() throws {
      let service = try PinService { _ in .silence }
      var settings = try Settings.supplied(service.section(RecordSigner()), port: 1)
      var pinfold = try Pinfold(settings)
      #expect(try RawClient(to: pinfold.port).connect("api.pinfold.test:444").statusLine.contains(" 403 "))
      settings.clients = ["192.0.2.0/24"]
      pinfold = try Pinfold(settings)
      #expect(try RawClient(to: pinfold.port).connect("api.pinfold.test:443").statusLine.contains(" 403 "))
      #expect(service.asked.isEmpty)
    }

    @Test("Many hosts of one client are fetched 16 at a time, and all of them") func manyHosts() async throws {
      let service = try PinService { _ in .status(404) }
      service.delay(2)
      let pinfold = try Pinfold(.supplied(service.section(RecordSigner()), port: 1))
      let clients = try (0..<48).map { number in
        let client = try RawClient(to: pinfold.port)
        client.send(RawClient.head("h\(number).pinfold.test:443"))
        return client
      }
      for client in clients {
        #expect(ProxyReply(client.drain(seconds: 20).bytes).statusLine.contains(" 502 "))
      }
      #expect(Set(service.asked).count == 48 && service.asked.count == 48)
      let first = try #require(service.times.first)
      #expect(service.times.count { $0 - first < .milliseconds(1900) } == 16)
    }

    @Test(
      "A URL that fails is passed over for the next one, a hanging one too", arguments: ["refused", "status", "hangs"])
    func failOver(_ how: String) throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa)
      let signer = try RecordSigner()
      let record = try signer.record(certificates.ecdsa.pin)
      let first = try PinService { _ in how == "status" ? .status(503) : .silence }
      let second = try PinService { _ in .body(record) }
      if how == "refused" { first.stop() }
      let pinfold = try Pinfold(.supplied(PinService.section([first, second], [signer]), port: server.port))
      let start = ContinuousClock.now
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
      if how == "hangs" { #expect(ContinuousClock.now - start < .seconds(8)) }
      #expect(second.asked.count == 1)
      let metrics = try pinfold.metrics()
      #expect(metrics.sum("pinfold_pin_fetches_total", "service=\"http://127.0.0.1:\(second.port)\"") == 1)
      #expect(metrics.sum("pinfold_pin_fetches_total", "service=\"http://127.0.0.1:\(first.port)\"") == 1)
    }

    @Test("A record for a wildcard serves each host it matches") func wildcard() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa)
      let signer = try RecordSigner()
      let record = try signer.record(certificates.ecdsa.pin, domain: "*.pinfold.test")
      let service = try PinService { _ in .body(record) }
      let settings = try Settings.supplied(service.section(signer), port: server.port).with {
        $0.resolve["www.pinfold.test:443"] = server.port
        $0.resolve["a.b.pinfold.test:443"] = server.port
      }
      let pinfold = try Pinfold(settings)
      #expect(try Client.curl.fetch(proxy: pinfold.port).succeeded)
      #expect(try Client.curl.fetch("https://www.pinfold.test/", proxy: pinfold.port).succeeded)
      #expect(service.asked == ["api.pinfold.test"])
      // Two labels below are nobody's.
      #expect(try !Client.curl.fetch("https://a.b.pinfold.test/", proxy: pinfold.port).succeeded)
      #expect(try pinfold.reasons(3) == ["pin_match", "pin_match", "unpinned_blocked"])
      #expect(service.asked.count == 1)
    }

    @Test("A rule of the policy wins over the service, and the service is not asked") func ruleWins() throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa)
      let signer = try RecordSigner()
      let record = try signer.record(certificates.ecdsa.pin)
      let service = try PinService { _ in .body(record) }
      let settings = try Settings.supplied(service.section(signer), port: server.port).with {
        $0.hosts["api.pinfold.test"] = "{ pins: [\"\(certificates.other.pin)\"] }"
      }
      let pinfold = try Pinfold(settings)
      #expect(try !Client.curl.fetch(proxy: pinfold.port).succeeded)
      #expect(try pinfold.reasons() == ["pin_mismatch"])
      #expect(service.asked.isEmpty)
      // Without the rule the host is the service's.
      try pinfold.reload(
        settings.with {
          $0.hosts = [:]; $0.version = 2
        })
      try Wait.untilTrue("the rule to go") { try Client.curl.fetch(proxy: pinfold.port).succeeded }
      #expect(service.asked.count == 1)
    }

    @Test("https services are verified before they are believed", arguments: [true, false])
    func https(isTrusted: Bool) throws {
      let certificates = try Certificates.shared()
      let server = try Servers.nginx(certificates.ecdsa)
      let signer = try RecordSigner()
      let files = try Servers.nginx(certificates.rsa)
      try signer.record(certificates.ecdsa.pin).write(
        toFile: files.path("pins"), atomically: true, encoding: .utf8)
      let root = isTrusted ? certificates.rootFile : certificates.strangerRootFile
      let section = """
        { urls: ["https://127.0.0.1:\(files.port)/pins"], domains: ["*.pinfold.test"],
          trusted_keys: ["\(signer.publicKey)"], ca_file: "\(root)" }
        """
      let pinfold = try Pinfold(.supplied(section, port: server.port))
      let isServed = try Client.curl.fetch(proxy: pinfold.port).succeeded
      #expect(isServed == isTrusted)
      if !isTrusted {
        #expect(try pinfold.reasons() == ["pins_unavailable"])
        #expect((pinfold.decisions.first?["detail"] as? String)?.hasPrefix("tls: ") == true, "\(pinfold.decisions)")
      }
    }
  }
}
