import Glibc
import PinfoldModel
import Testing

@testable import PinfoldCommand

@Suite struct CheckTests {
  let place: PolicyFolder

  init() throws { place = try PolicyFolder() }

  private func check(_ more: String = "") throws -> Tool {
    Tool("check", "-c", try place.configure(more))
  }

  @Test func `a good configuration says what would be in force and changes nothing`() throws {
    try place.sign()
    let tool = try check()
    #expect(tool.status == .good)
    #expect(tool.errors == [])
    for line in [
      "configuration: \(place.scratch["pinfold.json5"])", "listen: 127.0.0.1:3128", "admin: 127.0.0.1:9128",
      "state_dir: \(place.scratch["state"])", "authorities: system", "unpinned: block", "tls13: probe",
      "install_id: none yet; made at the first start", "policy: \(place.scratch["policy.signed.json"])", "version: 7",
      "hosts: 2",
    ] {
      #expect(tool.output.contains(line), "\(line) in \(tool.output)")
    }
    #expect(!place.scratch.names.contains("state"))
  }

  @Test func `it says who the instance is to rollouts, and from where that is known`() throws {
    try place.sign()
    #expect(try check(#"instance: { id: "canary-1" }"#).output.contains("device_id: canary-1 (instance.id)"))
    let path = try place.configure()
    #expect(unsafe mkdir(place.scratch["state"], 0o700) == 0)
    defer {
      unsafe unlink(place.scratch["state/install.id"])
      unsafe rmdir(place.scratch["state"])
    }
    let id = String(repeating: "0f", count: 16)
    try FileAccess.create(place.scratch["state/install.id"], Array("\(id)\n".utf8), mode: 0o600)
    #expect(Tool("check", "-c", path).output.contains("install_id: \(id)"))
    try FileAccess.replace(place.scratch["state/install.id"], Array("nonsense".utf8), mode: 0o600)
    let damaged = Tool("check", "-c", path)
    #expect(damaged.output.contains("install_id: not known"))
    #expect(damaged.output.contains { $0.hasPrefix("warning: ") && $0.contains("install.id") })
  }

  @Test func `what weakens it is warned of, in the configuration and in the policy`() throws {
    try place.sign()
    let tool = try check("tls: { probe_reuse_seconds: 60 }")
    #expect(tool.status == .good)
    #expect(tool.output.contains { $0.hasPrefix("warning: tls.probe_reuse_seconds: 60") })
    #expect(tool.output.contains { $0.hasPrefix("warning: *.example.org: mode: \"report\"") })
  }

  @Test func `a key-log pipe that others may read, or that is none, is warned of`() throws {
    try place.sign()
    let path = place.scratch["keys"]
    let configuration = "tls: { key_log: \"\(path)\" }"
    func warnings() throws -> [String] { try check(configuration).output.filter { $0.contains("keys") } }
    #expect(try warnings() == [])
    #expect(unsafe mkfifo(path, 0o622) == 0 && chmod(path, 0o622) == 0)
    defer { unsafe unlink(path) }
    #expect(try warnings() == [])
    #expect(unsafe chmod(path, 0o644) == 0)
    let advice = "whoever reads it learns the apps' secrets; remove it and let run make it"
    #expect(try warnings() == ["warning: tls.key_log: \(path) is readable by others (mode 0644): \(advice)"])
    if geteuid() == 0 {
      #expect(unsafe chown(path, 65534, 65534) == 0 && chmod(path, 0o622) == 0)
      #expect(try warnings() == ["warning: tls.key_log: \(path) is another user's: \(advice)"])
    }
    #expect(unsafe unlink(path) == 0)
    try FileAccess.create(path, [], mode: 0o600)
    #expect(try warnings().first?.hasSuffix("it has to be a named pipe, or not to exist yet") == true)
  }

  @Test func `a rule that needs a key log is warned of where there is none`() throws {
    try place.sign(
      PolicyFolder.policy(
        hosts: """
          "a.example.com": { pins: ["\(PolicyFolder.pin)", "\(PolicyFolder.otherPin)"], tls13: "key_log" },
          "b.example.com": { pins: ["\(PolicyFolder.pin)", "\(PolicyFolder.otherPin)"], tls13: "key_log" },
          """))
    let warning =
      "warning: a.example.com and 1 more: tls13: \"key_log\" refuses every TLS 1.3 handshake where tls.key_log is not set"
    #expect(try check().output.contains(warning))
    #expect(try !check("tls: { key_log: \"\(place.scratch["keys"])\" }").output.contains(warning))
  }

  @Test func `an expired bundle is refused with its reason`() throws {
    try place.sign(PolicyFolder.policy(issued: -7200, expires: -3600))
    let tool = try check()
    #expect(tool.status == .failed)
    #expect(tool.output.contains("policy: none"))
    #expect(tool.errors.count == 2)
    #expect(
      tool.errors.first?.hasPrefix("pinfold: refused: \(place.scratch["policy.signed.json"]): expired at ") == true)
    #expect(tool.errors.last == "pinfold: no policy would be in force: every tunnel would be refused")
  }

  @Test func `a bundle by a stranger is refused`() throws {
    _ = Tool("keygen", "-o", place.scratch["stranger.key"])
    let policy = try place.scratch.write("policy.json5", PolicyFolder.policy())
    _ = Tool(
      "sign", "-k", place.scratch["stranger.key"], policy, "-o", place.scratch["policy.signed.json"])
    let tool = try check()
    #expect(tool.status == .failed)
    #expect(tool.errors.first?.contains("0 of 1 required signatures hold") == true)
  }

  @Test func `an older policy than the state remembers is refused`() throws {
    try place.sign(PolicyFolder.policy(version: 6))
    let path = try place.configure()
    #expect(Tool("check", "-c", path).status == .good)
    #expect(unsafe mkdir(place.scratch["state"], 0o700) == 0)
    let state = "pinfold-state v1\nhighest_version 7\nclock_floor 2026-01-01T00:00:00Z\n"
    try FileAccess.create(place.scratch["state/policy.state"], Array(state.utf8), mode: 0o600)
    let tool = Tool("check", "-c", path)
    #expect(tool.status == .failed)
    #expect(tool.errors.first?.contains("version 6, but version 7 was accepted before") == true)
    unsafe unlink(place.scratch["state/policy.state"])
    unsafe rmdir(place.scratch["state"])
  }

  @Test func `a missing bundle is a mistake of the configuration`() throws {
    let tool = try check()
    #expect(tool.status == .config)
    #expect(tool.output == [])
    #expect(tool.errors.count == 1)
    #expect(tool.errors.first?.contains("policy.bundles[0]: no such file: ") == true)
  }

  @Test func `a missing file of authorities is a mistake of the configuration`() throws {
    try place.sign()
    let tool = try check(#"tls: { ca_file: "roots.pem" }"#)
    #expect(tool.status == .config)
    #expect(tool.errors.first?.contains(#/pinfold.json5:2:\d+: tls.ca_file: /#) == true)
    #expect(tool.errors.first?.contains(place.scratch["roots.pem"]) == true)
  }

  @Test func `the file of credentials is read, and its bad lines are named`() throws {
    try place.sign()
    let file = #"access: { credentials_file: "users" }"#
    let missing = try check(file)
    #expect(missing.status == .config)
    #expect(missing.errors.first?.contains("access.credentials_file: \(place.scratch["users"])") == true)
    #expect(missing.errors.first?.hasSuffix("make one with pinfold passwd -f FILE USER") == true)
    let hash = "$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHRzb21lc2FsdA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
    try place.scratch.write("users", "alice:\(hash)\n")
    let good = try check(file)
    #expect(good.status == .good)
    #expect(good.output.contains("credentials: \(place.scratch["users"]) (1)"))
    #expect(good.output.contains { $0.hasPrefix("warning: ") && $0.contains("everybody may read the hashes") })
    try place.scratch.write("users", "alice:\(hash)\nbob:hunter2\n")
    let bad = try check(file)
    #expect(bad.status == .config)
    #expect(bad.errors.first?.hasPrefix("pinfold: \(place.scratch["users"]):2:1: ") == true)
    #expect(bad.errors.allSatisfy { !$0.contains("hunter2") })
  }

  @Test func `an audit file without its directory is a mistake of the configuration`() throws {
    try place.sign()
    #expect(try check(#"audit: { file: "audit.jsonl" }"#).status == .good)
    let tool = try check(#"audit: { file: "nowhere/audit.jsonl" }"#)
    #expect(tool.status == .config)
    #expect(tool.errors.first?.contains(#/pinfold.json5:2:\d+: audit.file: /#) == true)
    #expect(tool.errors.first?.contains("audit.file: no such directory: \(place.scratch["nowhere"])") == true)
  }

  @Test func `every mistake of the file has its line`() throws {
    let path = try place.scratch.write("bad.json5", "{\n  listne: [],\n  workers: \"many\",\n}\n")
    let tool = Tool("check", "-c", path)
    #expect(tool.status == .config)
    #expect(tool.output == [])
    #expect(tool.errors.count == 2)
    #expect(tool.errors.first?.hasPrefix("pinfold: \(path):2:") == true)
    #expect(tool.errors.first?.contains(#""listen""#) == true)
    #expect(tool.errors.last?.hasPrefix("pinfold: \(path):3:") == true)
  }

  @Test func `a configuration that is not there is named`() {
    let tool = Tool("check", "-c", place.scratch["none.json5"])
    #expect(tool.status == .config)
    #expect(tool.errors.first?.contains(place.scratch["none.json5"]) == true)
  }
}

@Suite struct ExplainTests {
  let place: PolicyFolder

  init() throws { place = try PolicyFolder() }

  private func explain(_ host: String, _ more: String = "") throws -> Tool {
    Tool("explain", "-c", try place.configure(more), host)
  }

  @Test func `a pinned host is told by key and value, then by steps`() throws {
    try place.sign()
    let tool = try explain("API.example.com.")
    #expect(tool.status == .good)
    #expect(tool.errors == [])
    let pins = [PolicyFolder.pin, PolicyFolder.otherPin].compactMap { Pin($0)?.text }
    let keys = tool.output.map { String($0.prefix { $0 != ":" }) }
    #expect(keys.prefix(7) == ["host", "rule", "source", "pins", "expires", "mode", "tls13"])
    #expect(keys.dropFirst(7).allSatisfy { $0 == "steps" } && keys.count > 7)
    #expect(tool.output.contains("host: api.example.com:443"))
    #expect(tool.output.contains("rule: api.example.com"))
    #expect(tool.output.contains("source: policy"))
    #expect(tool.output.contains("mode: enforce"))
    let shown = try #require(tool.output.first { $0.hasPrefix("pins: ") }).dropFirst(6).split(separator: " ")
    #expect(Set(shown.map(String.init)) == Set(pins))
  }

  private func rollout(_ strategy: String, _ words: String...) throws -> Tool {
    try place.sign(
      PolicyFolder.policy().replacing("ssl_pinning_config: {", with: "ssl_pinning_config: { \(strategy),"))
    return Tool(["explain", "-c", try place.configure(#"instance: { id: "me" }"#)] + words + ["api.example.com"])
  }

  @Test func `a rollout by user is explained for the user that is named`() throws {
    let strategy = #"rollout_strategy: { method: "whitelist", seed: "user_id", ids: ["alice"] }"#
    let inside = try rollout(strategy, "--user", "alice")
    #expect(inside.output.contains("mode: enforce"))
    #expect(inside.output.contains("steps: inside the whitelist of 1, by user_id"))
    let outside = try rollout(strategy, "--user", "bob")
    #expect(outside.output.contains("mode: disabled"))
    #expect(outside.output.contains("steps: switched off: outside the whitelist of 1, by user_id"))
    let unknown = try rollout(strategy)
    #expect(unknown.output.contains("mode: enforce"))
    #expect(unknown.output.contains("steps: inside the whitelist of 1, by user_id, which is not known"))
  }

  @Test func `a rollout by share says where this instance falls`() throws {
    let outside = try rollout("rollout_percentage: 0")
    #expect(
      outside.output.contains { $0.hasPrefix("steps: switched off: outside the rollout of 0.0 percent, device_id") })
    let inside = try rollout("rollout_percentage: 99.9999")
    #expect(
      inside.output.contains { $0.hasPrefix("steps: inside the rollout of 99.9999 percent, device_id falls on ") })
  }

  @Test func `the version gate says what it compared`() throws {
    let below = try rollout(#"min_app_version: "2.0""#)
    #expect(below.output.contains("steps: the app's version is not known, beside min_app_version 2"))
    #expect(below.output.contains("mode: enforce"))
  }

  @Test(arguments: ["bücher.example.com", "BÜCHER.example.com.:443", "xn--bcher-kva.example.com"])
  func `a host is understood in the spellings that a policy may have`(host: String) throws {
    try place.sign(PolicyFolder.policy(hosts: "\"bücher.example.com\": { pins: [\"\(PolicyFolder.pin)\"] }"))
    let tool = try explain(host)
    #expect(tool.status == .good, "\(tool.errors)")
    #expect(tool.output.contains("host: xn--bcher-kva.example.com:443"))
    #expect(tool.output.contains("rule: xn--bcher-kva.example.com"))
  }

  @Test func `a pattern's rule in report mode is no block`() throws {
    try place.sign()
    let tool = try explain("www.example.org")
    #expect(tool.status == .good)
    #expect(tool.output.contains("rule: *.example.org"))
    #expect(tool.output.contains("mode: report"))
  }

  @Test func `a host without a rule is blocked`() throws {
    try place.sign()
    let tool = try explain("elsewhere.test")
    #expect(tool.status == .failed)
    #expect(tool.output.contains("rule: none"))
    #expect(tool.output.contains("source: none"))
    #expect(tool.output.contains("pins: none"))
    #expect(tool.output.contains("expires: never"))
    #expect(tool.output.contains("mode: blocked"))
    #expect(tool.errors == [])
  }

  @Test func `an unpinned host that is verified is no block`() throws {
    try place.sign()
    try place.scratch.write(
      "pinfold.json5",
      """
      { state_dir: "state", policy: { bundles: ["policy.signed.json"], trusted_keys: ["\(place.publicKey)"],
        unpinned: "verify" } }
      """)
    let tool = Tool("explain", "-c", place.scratch["pinfold.json5"], "elsewhere.test")
    #expect(tool.status == .good)
    #expect(tool.output.contains("mode: disabled"))
  }

  @Test func `a port that is not opened is a block, whatever the rule says`() throws {
    try place.sign()
    let tool = try explain("api.example.com:8443")
    #expect(tool.status == .failed)
    #expect(tool.output.contains("mode: blocked"))
    #expect(tool.output.contains { $0.hasPrefix("steps: ") && $0.contains("8443") })
  }

  /// Would catch an answer that the running proxy does not give.
  @Test(arguments: [
    ("127.0.0.1", "127.0.0.1 is loopback, and its host is not pinned: refused"),
    ("169.254.169.254", "169.254.169.254 is metadata, and its host is not pinned: refused"),
    ("[::ffff:10.0.0.1]", "10.0.0.1 is private, and its host is not pinned: refused"),
    ("192.0.2.9", "192.0.2.9 is in destinations.deny: refused"), ("8.8.8.8", nil), ("10.9.0.1", nil),
    ("10.1.0.1", nil), ("fixed.example.net", "127.0.0.1:9128 is Pinfold itself: refused"),
    ("127.0.0.1:3128", "127.0.0.1:3128 is Pinfold itself: refused"),
  ])
  func `an address that is no destination is a block`(host: String, step: String?) throws {
    try place.sign(PolicyFolder.policy(hosts: "\"10.1.0.1\": { pins: [\"\(PolicyFolder.pin)\"] }"))
    try place.scratch.write(
      "pinfold.json5",
      """
      { state_dir: "state", policy: { bundles: ["policy.signed.json"], trusted_keys: ["\(place.publicKey)"],
        unpinned: "verify" }, destinations: { ports: [443, 3128], allow: ["10.9.0.0/16"], deny: ["192.0.2.0/24"],
        resolve: { "fixed.example.net:443": "127.0.0.1:9128" } } }
      """)
    let tool = Tool("explain", "-c", place.scratch["pinfold.json5"], host)
    #expect(tool.status == (step == nil ? .good : .failed))
    #expect(tool.output.contains("mode: blocked") == (step != nil))
    if let step { #expect(tool.output.last == "steps: \(step)") }
  }

  @Test func `a paired device's port is open`() throws {
    try place.sign()
    let path = try place.configure()
    let payload = try place.scratch.write(
      "pairing.json",
      """
      { "version": "1", "host": "device.local", "port": 8443, "code": "s3cr3t", "expiresAt": "2045-01-01T00:00:00Z",
        "certificateFingerprint": "\(String(repeating: "ab", count: 32))" }
      """)
    #expect(Tool("pair", "-c", path, "--offline", payload).status == .good)
    let tool = Tool("explain", "-c", path, "device.local:8443")
    #expect(tool.status == .good)
    #expect(tool.output.contains("mode: enforce"))
    #expect(!tool.output.contains { $0.contains("destinations.ports") })
  }

  @Test func `without an acceptable policy everything is blocked, and why is said`() throws {
    try place.sign(PolicyFolder.policy(issued: -7200, expires: -3600))
    let tool = try explain("api.example.com")
    #expect(tool.status == .failed)
    #expect(tool.output.contains("mode: blocked"))
    #expect(tool.errors.first?.contains("expired at ") == true)
  }

  @Test(arguments: ["https://api.example.com", "a b", "api.example.com:0", ""])
  func `a host that is none is usage`(text: String) throws {
    let tool = try explain(text)
    #expect(tool.status == .usage)
    #expect(tool.output == [])
    #expect(tool.errors.count == 1)
  }
}
