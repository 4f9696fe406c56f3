/// What a test says of policy and configuration; the rest is fit for a test on loopback.
struct Settings: Sendable {
  /// Members of `hosts`, such as `"api.pinfold.test": "{ pins: […] }"`.
  var hosts: [String: String] = [:]
  /// Further members of `ssl_pinning_config`.
  var policy = ""
  /// Further members of the document, each ended by a comma.
  var document = ""
  /// `policy.bundles`; its first file is what the harness signs.
  var bundles = ["policy.signed.json"]
  /// Further members of the configuration's `policy`.
  var policyKeys = ""
  var version = 1
  var issuedAt = "2020-01-01T00:00:00Z"
  var expiresAt = "2045-01-01T00:00:00Z"
  /// Elements of `pin_services`, as `PinService.section` writes them.
  var services: [String] = []
  /// `host:port` to a port of 127.0.0.1.
  var resolve: [String: UInt16] = [:]
  var ports: [UInt16] = [443]
  var allow: [String] = []
  var unpinned = "block"
  var tls13 = "probe"
  var resumption = "probe"
  var pskDeclined = "probe"
  /// `tls.probe_reuse_seconds`.
  var probeReuse = 0
  /// Where apps log their secrets, relative to the configuration.
  var keyLog: String?
  /// Variables of the process.
  var environment: [String: String] = [:]
  /// Members of `limits`, over short time-outs that keep a broken test short.
  var limits: [String: Double] = ["connect_seconds": 5, "handshake_seconds": 5, "idle_seconds": 60, "drain_seconds": 5]
  var clients = ["127.0.0.0/8", "::1/128"]
  var workers = 2
  /// Members of `instance`, such as `id: "canary"`, and of `policy.builtin_pins`.
  var instance = ""
  var builtinPins = ""
  /// The root to trust; `nil` trusts the system's.
  var rootFile: String?
  /// The file of users, relative to the configuration.
  var credentials: String?
  /// `cache_key_file`, relative to the configuration.
  var cacheKeyFile: String?
  /// `state_dir`, relative to the configuration.
  var stateDirectory = "state"
  /// Members of `audit`, such as `file: "audit.jsonl"`.
  var audit = ""
  /// Descriptors the process may have, as prlimit(1) reads it: a number, or `soft:hard`. `nil` leaves the limit alone.
  var descriptors: String?

  /// One pinned host behind `api.pinfold.test:443` on the given port.
  static func pinned(_ pins: String..., port: UInt16, rule: String = "") throws -> Settings {
    var settings = Settings()
    let list = pins.map { "\"\($0)\"" }.joined(separator: ", ")
    settings.hosts["api.pinfold.test"] = "{ pins: [\(list)], \(rule) }"
    settings.resolve["api.pinfold.test:443"] = port
    settings.rootFile = try Certificates.shared().rootFile
    return settings
  }

  /// The same with one thing changed.
  func with(_ change: (inout Settings) -> Void) -> Settings {
    var copy = self
    change(&copy)
    return copy
  }

  /// No rule, and this host at a port of 127.0.0.1: its pins come from a service.
  static func supplied(_ services: String..., port: UInt16, host: String = "api.pinfold.test") throws -> Settings {
    var settings = Settings()
    settings.services = services
    settings.resolve["\(host):443"] = port
    settings.rootFile = try Certificates.shared().rootFile
    return settings
  }

  private static func list(_ values: [some Any]) -> String {
    values.map { $0 is String ? "\"\($0)\"" : "\($0)" }.joined(separator: ", ")
  }

  private static func optional(_ text: String?) -> String { text.map { "\"\($0)\"" } ?? "null" }

  /// The policy document.
  var policyText: String {
    let members = hosts.map { "\"\($0)\": \($1)" }.joined(separator: ",\n      ")
    return """
      {
        version: \(version), issued_at: "\(issuedAt)", expires_at: "\(expiresAt)", \(document)
        ssl_pinning_config: { hosts: {
            \(members)
          }, \(policy) },
      }
      """
  }

  /// The configuration.
  func configurationText(proxy: UInt16, admin: UInt16, trustedKey: String) -> String {
    let addresses = resolve.map { "\"\($0)\": \"127.0.0.1:\($1)\"" }.joined(separator: ", ")
    let limits = limits.map { "\($0): \(Int($1))" }.joined(separator: ", ")
    return """
      {
        listen: ["127.0.0.1:\(proxy)"], admin: "127.0.0.1:\(admin)", workers: \(workers),
        state_dir: "\(stateDirectory)",
        policy: { bundles: [\(Self.list(bundles))], trusted_keys: ["\(trustedKey)"], unpinned: "\(unpinned)",
                  builtin_pins: { \(builtinPins) }, \(policyKeys) },
        pin_services: [\(services.joined(separator: ", "))],
        tls: { tls13: "\(tls13)", resumption: "\(resumption)", psk_declined: "\(pskDeclined)",
               probe_reuse_seconds: \(probeReuse), ca_file: \(Self.optional(rootFile)), key_log: \(Self.optional(keyLog)) },
        destinations: { resolve: { \(addresses) }, ports: [\(Self.list(ports))], allow: [\(Self.list(allow))] },
        access: { clients: [\(Self.list(clients))], credentials_file: \(Self.optional(credentials)) },
        limits: { \(limits) }, audit: { \(audit) }, instance: { \(instance) },
        log: { level: "info", format: "json" }, cache_key_file: \(Self.optional(cacheKeyFile)),
      }
      """
  }
}
