import PinfoldConfig
import PinfoldModel
import PinfoldPolicy
import Testing

@Suite struct ConfigurationTests {
  private func parse(_ text: String, environment: [String: String] = [:]) throws -> Configuration {
    try Configuration.parse(
      Array(text.utf8), file: "pinfold.json5", directory: "/etc/pinfold", environment: environment)
  }

  /// Everything a configuration holds, as text.
  private func shown(_ configuration: Configuration) -> String {
    var copy = configuration
    copy.policy.requiredSignaturesPlace = nil
    // A dump tells one empty table from another.
    if copy.policy.builtinPins.count == 0 { copy.policy.builtinPins = .empty }
    var text = ""
    dump(copy, to: &text)
    return text
  }

  // MARK: The shown file

  @Test func `the shown file holds exactly the defaults`() throws {
    let bytes = try Fixture.project("conf/pinfold.json5")
    let configuration = try Configuration.parse(bytes, file: "pinfold.json5", directory: "/etc/pinfold")
    #expect(shown(configuration) == shown(Configuration()))
    #expect(shown(try parse("{}")) == shown(Configuration()))
  }

  @Test func `the shown file has every key that the parser knows, and no other`() throws {
    let node = try JSONNode(parsing: try Fixture.project("conf/pinfold.json5")[...])
    let services = Configuration.knownKeys.filter { $0.hasPrefix("pin_services[") }
    #expect(services.count == 7)
    #expect(keys(of: node, under: "") == Configuration.knownKeys.subtracting(services))
  }

  @Test func `the shown file has every key of a pin service in its comment, and the shown service is valid`() throws {
    let text = String(decoding: try Fixture.project("conf/pinfold.json5"), as: UTF8.self)
    let comment = text.split(separator: "\n").filter { $0.hasPrefix("  //   ") }.map { $0.dropFirst(4) }
    let service = comment.joined(separator: "\n")
    let node = try JSONNode(parsing: Array(service.utf8)[...])
    #expect(
      Set(keys(of: node, under: "").map { "pin_services[0].\($0)" })
        == Configuration.knownKeys.filter { $0.hasPrefix("pin_services[") })
    let parsed = try parse("{ pin_services: [\(service)] }").pinServices[0]
    let defaults = PinServiceSection()
    #expect(parsed.minTTLSeconds == defaults.minTTLSeconds)
    #expect(parsed.maxTTLSeconds == defaults.maxTTLSeconds)
    #expect(parsed.allowUnboundSignatures == defaults.allowUnboundSignatures)
    #expect(parsed.caFile == defaults.caFile)
  }

  /// Guards: a word elsewhere on the page is no row, and `id` in another word no key.
  @Test func `the page of the configuration has a row for each key that the parser knows, and no other`() throws {
    let page = String(decoding: try Fixture.project("docs/configuration.md"), as: UTF8.self)
    let rows = page.matches(of: /(?m)^\| `([^`]+)` \|/).map { String($0.1).replacing("[]", with: "[0]") }
    // Sections, and the list of services, are what other keys lie in.
    let known = Configuration.knownKeys
    let keys = known.filter { key in !known.contains { $0.hasPrefix(key + ".") || $0.hasPrefix(key + "[") } }
    #expect(keys.count > 40)
    #expect(rows.sorted() == keys.sorted())
  }

  private func keys(of node: JSONNode, under path: String) -> Set<String> {
    guard case .object(let members) = node.value else { return [] }
    return members.reduce(into: []) { result, member in
      let path = path.isEmpty ? member.name : path + "." + member.name
      result.insert(path)
      result.formUnion(keys(of: member.node, under: path))
    }
  }

  // MARK: Values

  @Test func `every key arrives where it belongs`() throws {
    let configuration = try Configuration.parse(
      try Fixture.bytes("everything.json5"), file: "everything.json5", directory: "/etc/pinfold")
    #expect(configuration.listen.map(\.text) == ["[::1]:8080", "unix:/run/proxy.sock", "unix:/etc/pinfold/near.sock"])
    #expect(configuration.admin.text == "0.0.0.0:9000")
    #expect(configuration.workers == 3)
    #expect(configuration.stateDirectory == "/etc/pinfold/state")
    #expect(configuration.cacheKeyFile == "/etc/pinfold/../keys/cache.key")
    let policy = configuration.policy
    #expect(
      policy.bundles.map(\.text) == ["/etc/pinfold/a.json", "/srv/b.json", "https://policy.example.com/c.json"])
    #expect(policy.trustedKeys.map(\.text) == ["first", "second"])
    #expect(policy.trustedKeys.map(\.path) == ["policy.trusted_keys[0]", "policy.trusted_keys[1]"])
    #expect(policy.trustedKeys.map(\.place) == [SourcePlace(line: 9, column: 20), SourcePlace(line: 9, column: 29)])
    #expect(policy.requiredSignatures == 2)
    #expect(policy.maxBundleBytes == 2048)
    #expect(policy.refreshSeconds == 60)
    #expect(policy.unpinned == .verify)
    #expect(policy.builtinPins.rules.map(\.pattern) == ["api.example.com", "api.example.com:8443"])
    #expect(configuration.tls.tls13 == .deny)
    #expect(configuration.tls.probeReuseSeconds == 5)
    #expect(configuration.tls.resumption == .refuse)
    #expect(configuration.tls.pskDeclined == .refuse)
    #expect(configuration.tls.caFile?.text == "/etc/pinfold/ca.pem")
    #expect(configuration.tls.keyLog == "/run/keys")
    #expect(configuration.destinations.ports == [443, 8443])
    #expect(configuration.destinations.allow.map(\.text) == ["10.0.0.0/8"])
    #expect(configuration.destinations.deny.map(\.text) == ["10.1.0.0/16", "fd00::/8"])
    let authority = try #require(Authority("xn--bcher-kva.example:443"))
    #expect(configuration.destinations.resolve == [authority: SocketAddress(.v4(0x7f00_0001), port: 8443)])
    #expect(configuration.access.clients.map(\.text) == ["192.168.0.0/16"])
    #expect(configuration.access.credentialsFile == "/etc/pinfold/users")
  }

  @Test func `every key of the second half arrives where it belongs`() throws {
    let configuration = try Configuration.parse(
      try Fixture.bytes("everything.json5"), file: "everything.json5", directory: "/etc/pinfold")
    let service = try #require(configuration.pinServices.first)
    #expect(service.urls.map(\.text) == ["https://pins.example.com/v1/pins", "http://10.0.0.1/v1/pins"])
    #expect(service.domains.map(\.text) == ["*.example.com"])
    #expect(service.trustedKeys.map(\.text) == ["third"])
    #expect(service.minTTLSeconds == 10)
    #expect(service.maxTTLSeconds == 20)
    #expect(service.allowUnboundSignatures)
    #expect(service.caFile?.text == "/etc/pinfold/pins.pem")
    let limits = configuration.limits
    #expect(
      [limits.tunnels, limits.connectSeconds, limits.handshakeSeconds, limits.idleSeconds, limits.drainSeconds]
        == [1000, 1, 2, 3, 4])
    #expect(configuration.instance.id == "device-1")
    #expect(configuration.instance.appVersion == AppVersion("1.5"))
    #expect(configuration.instance.region == "EU")
    #expect(configuration.audit.file?.text == "/etc/pinfold/audit.jsonl")
    #expect(configuration.audit.retentionDays == 7)
    #expect(configuration.audit.client == .address)
    #expect(configuration.log.level == .warning)
    #expect(configuration.log.format == .json)
  }

  @Test func `what the policy needs of the configuration is handed on`() throws {
    let configuration = try Configuration.parse(
      try Fixture.bytes("everything.json5"), file: "everything.json5", directory: "/etc/pinfold")
    let local = configuration.localPolicy(deviceID: "machine", installID: "install")
    #expect(local.unpinned == .verify)
    #expect(local.tls13 == .deny)
    #expect(local.ports == [443, 8443])
    #expect(local.identity.deviceID == "device-1")
    #expect(local.identity.installID == "install")
    #expect(Configuration().localPolicy(deviceID: "machine").identity.deviceID == "machine")
    let inside = IPAddress.v4(0x0a02_0000)
    #expect(configuration.destinationGuard.verdict(inside, port: 443, pinned: false).isAllowed)
    #expect(configuration.clientList.allows(.v4(0xc0a8_0001)))
    #expect(!configuration.clientList.allows(.v4(0x7f00_0001)))
  }

  // MARK: Environment

  @Test func `the environment overrides the file`() throws {
    let configuration = try parse(
      #"{ listen: ["127.0.0.1:1"], admin: "127.0.0.1:2", state_dir: "x", log: { level: "error" } }"#,
      environment: [
        "PINFOLD_LISTEN": "[::1]:5,unix:/run/p.sock", "PINFOLD_ADMIN": "127.0.0.1:6", "PINFOLD_STATE_DIR": "/tmp/state",
        "PINFOLD_LOG_LEVEL": "debug", "PINFOLD_OTHER": "?",
      ])
    #expect(configuration.listen.map(\.text) == ["[::1]:5", "unix:/run/p.sock"])
    #expect(configuration.admin.text == "127.0.0.1:6")
    #expect(configuration.stateDirectory == "/tmp/state")
    #expect(configuration.log.level == .debug)
  }

  @Test(
    "A bad environment variable is named",
    arguments: [
      (
        "PINFOLD_LISTEN", "localhost:1",
        #""localhost:1" is not an address such as "127.0.0.1:3128", "[::1]:3128" or "unix:/run/pinfold/proxy.sock", or several with commas between"#
      ),
      (
        "PINFOLD_LISTEN", "",
        #""" is not an address such as "127.0.0.1:3128", "[::1]:3128" or "unix:/run/pinfold/proxy.sock", or several with commas between"#
      ),
      ("PINFOLD_ADMIN", "9128", #""9128" is not an address such as "127.0.0.1:9128" or "[::1]:9128""#),
      ("PINFOLD_STATE_DIR", "", #""" is not an absolute path"#),
      ("PINFOLD_STATE_DIR", "state", #""state" is not an absolute path"#),
      ("PINFOLD_LOG_LEVEL", "loud", #""loud" is not one of "debug", "info", "warning", "error""#),
    ])
  func environment(_ name: String, _ value: String, _ message: String) throws {
    let errors = try #require(throws: FileErrors.self) { try parse("{}", environment: [name: value]) }
    #expect(errors.text == "pinfold.json5: environment variable \(name): \(message)")
  }

  // MARK: Files

  @Test func `a file that is not there says what to do`() throws {
    let errors = try #require(throws: FileErrors.self) { try Configuration.load(path: "/nowhere/pinfold.json5") }
    #expect(
      errors.text
        == "/nowhere/pinfold.json5: no such file; write one after conf/pinfold.json5, or name it with -c FILE")
  }

  @Test func `a directory in the place of the file is said to be one`() throws {
    let errors = try #require(throws: FileErrors.self) { try Configuration.load(path: "/tmp") }
    #expect(errors.text == "/tmp: a directory; name the file in it with -c FILE")
  }

  @Test func `warnings name what a configuration loosens, and the defaults loosen nothing`() throws {
    #expect(Configuration().warnings == ["policy.bundles is empty: no signed policy will be in force"])
    let configuration = try Configuration.parse(
      try Fixture.bytes("everything.json5"), file: "everything.json5", directory: "/etc/pinfold")
    #expect(
      configuration.warnings == [
        #"policy.unpinned: "verify" lets hosts without pins pass with any publicly valid chain"#,
        "tls.probe_reuse_seconds: 5: within that time tunnels pass on an earlier tunnel's probe",
        "destinations.allow: hosts without pins may lead to 10.0.0.0/8",
        "destinations.resolve: xn--bcher-kva.example:443 is dialled at 127.0.0.1:8443, whatever DNS says",
        #"audit.client: "address" writes the addresses of clients, which may be personal data"#,
        "pin_services[0].urls: http://10.0.0.1/v1/pins is fetched in the clear: whoever listens learns the hosts",
        "pin_services[0].allow_unbound_signatures: a signed fingerprint of one host can be replayed for another",
      ])
    let open = try parse(#"{ policy: { unpinned: "tunnel" }, access: { clients: ["0.0.0.0/0"] } }"#).warnings
    #expect(
      open == [
        #"policy.unpinned: "tunnel" lets hosts without pins pass unseen"#,
        "policy.bundles is empty: no signed policy will be in force",
        "access.clients admits clients beyond this machine, and no access.credentials_file asks who they are",
      ])
  }
}
