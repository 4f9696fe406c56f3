import PinfoldModel
import PinfoldPolicy

extension Field {
  func timestamp() -> Timestamp? {
    parsed("a time such as \"2026-11-21T00:00:00Z\" (RFC 3339)") { Timestamp($0) }
  }

  /// A list of texts that are not empty.
  func words(_ wanted: String) -> [String]? {
    guard let elements = elements(wanted) else { return nil }
    return elements.compactMap { $0.string() }
  }
}

extension RolloutStrategy {
  init(reading field: Field) {
    self.init()
    var object = ObjectReader(field, path: field.path, context: field.context)
    method = object.field("method")?.choice(Method.self) ?? method
    seed = object.field("seed")?.choice(Seed.self) ?? seed
    sticky = object.field("sticky")?.bool() ?? sticky
    ids = Set(object.field("ids")?.words("a list of identities") ?? [])
    regions = Set(object.field("regions")?.words("a list of regions") ?? [])
    object.finish()
    if method == .whitelist, ids.isEmpty { field.complain("method \"whitelist\" needs \"ids\", a list of identities") }
    if method == .geography, regions.isEmpty {
      field.complain("method \"geography\" needs \"regions\", a list of regions")
    }
  }
}

extension SignerSet {
  /// Keys in one policy at most, as many as an envelope may have signatures.
  private static let limit = 64

  /// `nil` after a complaint. Nothing has a default: a threshold that was forgotten must not become 1.
  init?(reading field: Field) {
    var object = ObjectReader(field, path: field.path, context: field.context)
    let list = object.field("keys")
    let elements = list?.elements("a list of public keys")
    var keys: [String] = []
    for element in elements ?? [] {
      guard let text = element.string("a public key in base64") else { continue }
      if keys.contains(text) { element.complain("the same key is there twice") }
      keys.append(text)
    }
    let required = object.field("required_signatures")
    let count = required?.integer(in: 1...Self.limit)
    object.finish()
    guard case .object = field.node.value else { return nil }
    if list == nil { field.complain("\"keys\" is missing: whose signatures count from this policy on") }
    if required == nil { field.complain("\"required_signatures\" is missing: how many of the keys have to sign") }
    if let elements, elements.isEmpty || elements.count > Self.limit {
      list?.complain("expected 1 to \(Self.limit) keys, found \(elements.count)")
    }
    guard let count, !keys.isEmpty else { return nil }
    if count > keys.count { required?.complain("\(count) signatures cannot come from \(keys.count) keys") }
    self.init(keys: keys, requiredSignatures: count)
  }
}

extension Fallback {
  init(reading field: Field) {
    self.init()
    var object = ObjectReader(field, path: field.path, context: field.context)
    useBuiltinPins = object.field("use_builtin_pins")?.bool() ?? useBuiltinPins
    if let elements = object.optional("builtin_pin_hosts")?.elements("a list of hosts") {
      hosts = Set(elements.compactMap(Self.host))
    }
    object.finish()
  }

  private static func host(_ element: Field) -> HostName? {
    guard let pattern = element.pattern(exact: true) else { return nil }
    if pattern.port != nil { element.complain("a host's builtin pins stand in on every port: leave the port out") }
    return pattern.host
  }
}

extension Monitoring {
  init(reading field: Field) {
    self.init()
    var object = ObjectReader(field, path: field.path, context: field.context)
    enabled = object.field("enabled")?.bool() ?? enabled
    failureThreshold = object.field("failure_threshold")?.percentage() ?? failureThreshold
    autoDisable = object.field("auto_disable")?.bool() ?? autoDisable
    minSamples = object.field("min_samples")?.integer(in: 1...1_000_000) ?? minSamples
    windowSeconds = object.field("window_seconds")?.integer(in: 1...86_400) ?? windowSeconds
    cooldownSeconds = object.field("cooldown_seconds")?.integer(in: 1...604_800) ?? cooldownSeconds
    maxDisabledPercent = object.field("max_disabled_percent")?.percentage() ?? maxDisabledPercent
    object.finish()
  }
}
