import PinfoldConfig
import PinfoldModel
import PinfoldPolicy
import Testing

@Suite struct PolicyDocumentTests {
  private static let pin = "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

  private func read(_ config: String) throws -> PolicyDocument {
    let text = """
      { version: 7, issued_at: "2026-11-21T00:00:00Z", expires_at: "2027-02-21T01:00:00+01:00",
        ssl_pinning_config: \(config) }
      """
    return try PolicyDocument(reading: Array(text.utf8)[...], file: "policy.json5")
  }

  private func rule(_ text: String) throws -> RuleReference {
    let document = try read(#"{ hosts: { "api.example.com": \#(text) } }"#)
    let authority = try #require(Authority("api.example.com:443"))
    return try #require(document.table.rule(for: authority))
  }

  @Test func `the example policy is valid`() throws {
    let document = try PolicyDocument(
      reading: try Fixture.project("conf/policy.example.json5")[...], file: "policy.example.json5")
    #expect(document.version == 1)
    #expect(
      document.table.rules.map(\.pattern) == [
        "api.example.com", "*.example.com", "**.example.org", "192.168.1.42:8443",
      ])
  }

  @Test func `a document that writes only what it must has the stated defaults`() throws {
    let document = try read(#"{ hosts: { "api.example.com": { pins: ["\#(Self.pin)"] } } }"#)
    #expect(document.version == 7)
    #expect(document.issuedAt.text == "2026-11-21T00:00:00Z")
    #expect(document.expiresAt.text == "2027-02-21T00:00:00Z")
    #expect(document.enabled)
    #expect(document.rolloutPercentage == 100)
    #expect(document.minAppVersion == nil)
    #expect(document.rollout == RolloutStrategy())
    #expect(document.fallback == Fallback())
    #expect(document.monitoring == Monitoring())
    #expect(try rule(#"{ pins: ["\#(Self.pin)"] }"#).settings == RuleSettings())
  }

  @Test func `keys for the time after a policy are read as written`() throws {
    let text = """
      { version: 7, issued_at: "2026-11-21T00:00:00Z", expires_at: "2027-02-21T01:00:00+01:00",
        trusted_keys: { keys: ["a", "b", "c"], required_signatures: 2 }, ssl_pinning_config: { hosts: {} } }
      """
    let document = try PolicyDocument(reading: Array(text.utf8)[...], file: "policy.json5")
    #expect(document.trustedKeys == SignerSet(keys: ["a", "b", "c"], requiredSignatures: 2))
    #expect(try read("{ hosts: {} }").trustedKeys == nil)
  }

  @Test func `every member of the document is read`() throws {
    let document = try read(
      """
      { enabled: false, rollout_percentage: 12.5, min_app_version: "1.5.0", hosts: {},
        rollout_strategy: { method: "whitelist", seed: "install_id", sticky: false, ids: ["a", "b"], regions: ["EU"] },
        fallback: { use_builtin_pins: false, builtin_pin_hosts: ["API.example.com"] },
        monitoring: { enabled: false, failure_threshold: 2.5, auto_disable: true, min_samples: 1, window_seconds: 2,
                      cooldown_seconds: 1, max_disabled_percent: 50 } }
      """)
    #expect(!document.enabled)
    #expect(document.rolloutPercentage == 12.5)
    #expect(document.minAppVersion == AppVersion("1.5"))
    var rollout = RolloutStrategy()
    rollout.method = .whitelist
    rollout.seed = .installID
    rollout.sticky = false
    rollout.ids = ["a", "b"]
    rollout.regions = ["EU"]
    #expect(document.rollout == rollout)
    #expect(document.fallback.useBuiltinPins == false)
    #expect(document.fallback.hosts == [.name("api.example.com")])
    var monitoring = Monitoring()
    monitoring.enabled = false
    monitoring.failureThreshold = 2.5
    monitoring.autoDisable = true
    monitoring.minSamples = 1
    monitoring.windowSeconds = 2
    monitoring.cooldownSeconds = 1
    monitoring.maxDisabledPercent = 50
    #expect(document.monitoring == monitoring)
  }

  @Test func `every member of a rule is read`() throws {
    let settings = try rule(
      """
      { enabled: false, rollout_percentage: 50, pins: ["\(Self.pin)"], match: "chain", mode: "report", tls13: "deny",
        verify_chain: true, never_disable: true, trust_on_first_use: true, sni: "optional",
        expires_at: "2027-01-01T00:00:00Z" }
      """
    ).settings
    var wanted = RuleSettings()
    wanted.enabled = false
    wanted.rolloutPercentage = 50
    wanted.match = .chain
    wanted.mode = .report
    wanted.tls13 = .deny
    wanted.neverDisable = true
    wanted.trustOnFirstUse = true
    wanted.sni = .optional
    wanted.expiresAt = Timestamp("2027-01-01T00:00:00Z")
    #expect(settings == wanted)
    #expect(try rule(#"{ pins: ["\#(Self.pin)"], verify_chain: false }"#).settings.verifyChain == false)
  }

  @Test func `pins come as a list or by role, in base64 or hexadecimal`() throws {
    let hexadecimal = String(repeating: "0", count: 64)
    let list = try rule(#"{ pins: ["\#(Self.pin)", "cert-sha256/\#(hexadecimal)"] }"#).pins.entries
    #expect(list.map(\.pin.text) == [Self.pin, "cert-" + Self.pin])
    #expect(list.map(\.role) == [.listed, .listed])
    let roles = try rule(#"{ pins: { emergency: "\#(Self.pin)", primary: "\#(Self.pin)", backup: null } }"#).pins
      .entries
    #expect(roles.map(\.role) == [.primary, .emergency])
  }

  @Test func `a rule that trusts on first use needs no pins`() throws {
    #expect(try rule("{ trust_on_first_use: true }").pins.isEmpty)
    #expect(try rule("{ trust_on_first_use: true, pins: [] }").pins.isEmpty)
  }

  @Test(
    "Hosts are brought to their normal form",
    arguments: [
      ("API.Example.COM.", "api.example.com"), ("*.Bücher.example", "*.xn--bcher-kva.example"),
      ("**.faß.example:8443", "**.xn--fa-hia.example:8443"), ("xn--bcher-kva.example", "xn--bcher-kva.example"),
      ("例え。テスト", "xn--r8jz45g.xn--zckzah"), ("localhost", "localhost"), ("*.internal", "*.internal"),
      ("192.168.1.42:8443", "192.168.1.42:8443"), ("::1", "::1"), ("[2001:DB8::1]:8443", "[2001:db8::1]:8443"),
      ("[2001:db8:0::1]", "2001:db8::1"), ("::ffff:10.0.0.1", "10.0.0.1"), ("*.example.co.uk", "*.example.co.uk"),
      ("my_device.local", "my_device.local"), ("github.io", "github.io"),
    ])
  func normalForm(_ written: String, _ normal: String) throws {
    #expect(try DomainNames.pattern(written).text == normal)
  }

  @Test(
    "What conversion could smuggle in is refused",
    arguments: [
      "＊.example.com", "a＊b.example.com", "example．com：443", "ex\u{0}ample.com", "ü\u{0}.example.com",
      "*.＊.example.com",
      "xn--.example.com", "ü" + String(repeating: "x", count: 70) + ".example.com", "ü:443:443",
    ])
  func smuggled(_ written: String) {
    #expect(throws: DomainNameError.self) { try DomainNames.pattern(written) }
  }

  @Test func `an internationalised host is one host in both spellings`() throws {
    #expect(try DomainNames.host("BÜCHER.example") == DomainNames.host("xn--bcher-kva.example"))
    #expect(try DomainNames.host("[::1]") == .address(.v6(high: 0, low: 1)))
    #expect(throws: DomainNameError.self) { try DomainNames.host("a b") }
  }

  @Test func `mistakes beyond the fiftieth are not kept`() throws {
    let hosts = (0..<500).map { #""a..\#($0)": {}"# }.joined(separator: ",")
    let errors = try #require(throws: FileErrors.self) { try read("{ hosts: { \(hosts) } }") }
    #expect(errors.complaints.count == 50)
  }

  @Test func `no prefix of a document is accepted`() throws {
    let bytes = try Fixture.project("conf/policy.example.json5")
    let end = try #require(bytes.lastIndex(of: 0x7d))
    for count in stride(from: 0, through: end, by: 7) {
      #expect(throws: FileErrors.self) { try PolicyDocument(reading: bytes[..<count], file: "p") }
    }
  }

  @Test func `warnings count what a document loosens`() throws {
    let document = try read(
      """
      { enabled: false, rollout_percentage: 50, monitoring: { auto_disable: true }, hosts: {
          "a.example.com": { pins: ["\(Self.pin)"], mode: "report" },
          "b.example.com": { pins: ["\(Self.pin)"], mode: "report", verify_chain: false, sni: "optional" },
          "c.example.com": { trust_on_first_use: true, enabled: false } } }
      """)
    #expect(
      document.warnings == [
        "enabled: false switches every rule off", "rollout_percentage: 50.0 leaves the other instances without pins",
        "monitoring.auto_disable: enough mismatches of a client suspend the rule for it, and an interceptor causes them too",
        "c.example.com: enabled: false leaves the host without pins",
        "a.example.com and 1 more: mode: \"report\" lets mismatches through",
        "b.example.com: verify_chain: false takes any chain and any name with a pinned key",
        "c.example.com: trust_on_first_use believes whoever answers first",
        "b.example.com: sni: \"optional\" lets hellos without server name through",
        "a.example.com and 1 more: one pin and no backup: a lost key locks the host out",
      ])
  }

  @Test func `a pin twice is no backup, and what a method does not look at is said`() throws {
    let document = try read(
      """
      { rollout_strategy: { method: "percentage", ids: ["a"], regions: ["eu"] }, hosts: {
          "a.example.com": { pins: { primary: "\(Self.pin)", backup: "\(Self.pin)" } } } }
      """)
    #expect(
      document.warnings == [
        "a.example.com: one pin and no backup: a lost key locks the host out",
        "rollout_strategy.ids counts only with method \"whitelist\"",
        "rollout_strategy.regions counts only with method \"geography\"",
      ])
  }

  @Test func `a rule whose time is over is warned of`() throws {
    let end = try #require(Timestamp("2026-11-30T00:00:00Z"))
    let document = try read(
      """
      { hosts: { "a.example.com": { pins: ["\(Self.pin)"], expires_at: "\(end.text)" },
                 "b.example.com": { pins: ["\(Self.pin)"] } } }
      """)
    #expect(document.warnings(at: Timestamp(seconds: end.seconds - 1)) == [])
    #expect(document.warnings(at: end) == ["a.example.com: expires_at has passed: the host is blocked"])
  }
}
