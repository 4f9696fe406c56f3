import Testing

extension Handshakes {
  /// Chromium and Firefox, as they are installed, against nginx with TLS 1.3. They are large: without them these tests are
  /// skipped, and `make test-browsers` installs them.
  ///
  /// Guards: the pipe and the twin with the two hellos that are seen most: GREASE, ECH, permuted extensions, hybrid key
  /// shares, certificate compression, delegated credentials.
  @Suite(.enabled(if: Browser.areInstalled, "Chromium and Firefox are not installed: make test-browsers"))
  struct BrowserTests {
    struct Row: Sendable, CustomTestStringConvertible {
      let browser: Browser
      let method: String
      var testDescription: String { "\(browser.rawValue), \(method)" }
    }

    static let rows = Browser.allCases.flatMap { browser in
      ["key_log", "probe"].map { Row(browser: browser, method: $0) }
    }

    @Test("A page is loaded by the pinned key, and nothing by another", arguments: rows) func page(row: Row) throws {
      let certificates = try Certificates.shared()
      let workspace = try Workspace("requests")
      let log = workspace.path("requests")
      let server = try Servers.nginx(
        certificates.ecdsa, protocols: "TLSv1.3",
        options: "access_log \(log) combined; location /page { default_type text/html; return 200 \"<p>hello</p>\"; }")
      let upstream = try Tap(to: server.port)
      let isByKeyLog = row.method == "key_log"
      let settings = try KeyLogTests.settings(
        certificates.ecdsa.pin, port: upstream.port, rule: "tls13: \"\(row.method)\"")
      let pinfold = try Pinfold(settings.with { if !isByKeyLog { $0.keyLog = nil } })
      let pipe = isByKeyLog ? pinfold.workspace.path("keys") : nil

      // Browsers open tunnels ahead, too, and leave some before there is anything to judge.
      func decisions(_ host: String) -> [[String: Any]] {
        pinfold.decisions.filter {
          $0["host"] as? String == "\(host).pinfold.test:443" && $0["method"] as? String != "none"
        }
      }
      let pins = [certificates.ecdsa.pin]
      try row.browser.open("https://api.pinfold.test/page", proxy: pinfold.port, pins: pins, keyLog: pipe) {
        workspace.read("requests").contains("GET /page HTTP/1.1\" 200")
      }
      let hellos = try upstream.connections.map(\.forward.all).filter { !$0.isEmpty }.map { try HelloFingerprint($0) }
      // The decision line comes with the tunnel's end.
      try Wait.untilTrue("the end of the page's tunnel") { !decisions("api").isEmpty }
      try row.browser.open("https://www.pinfold.test/forged", proxy: pinfold.port, pins: pins, keyLog: pipe) {
        !decisions("www").isEmpty
      }
      #expect(!workspace.read("requests").contains("forged"))

      let about = decisions("api") + decisions("www")
      func reasons(_ host: String) -> Set<String> { Set(decisions(host).compactMap { $0["reason"] as? String }) }
      #expect(reasons("api") == ["pin_match"], "\(about)")
      #expect(reasons("www") == ["pin_mismatch"], "\(about)")
      #expect(about.allSatisfy { $0["method"] as? String == row.method }, "\(about)")
      if isByKeyLog {
        #expect(try pinfold.metrics().sum("pinfold_probe_total") == 0)
      } else {
        #expect(about.allSatisfy { $0["probe"] as? String == "twin" }, "\(about)")
        // A browser may open more than one tunnel; extensions are permuted anew for each, and twins keep their order.
        for hello in hellos {
          #expect(hellos.count { $0 == hello && $0.random != hello.random } >= 1, "\(hello) has no twin")
        }
        #expect(hellos.count >= 2)
      }
    }
  }
}
