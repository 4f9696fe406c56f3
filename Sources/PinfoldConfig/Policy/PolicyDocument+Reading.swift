import PinfoldModel
package import PinfoldPolicy

extension PolicyDocument {
  /// Reads a policy document (JSON5). Any mistake refuses the whole document.
  ///
  /// `bytes` may be of any size: rules go into the table one by one, and the text is not copied. `file` names the
  /// document in errors.
  package init(reading bytes: ArraySlice<UInt8>, file: String) throws(FileErrors) {
    let context = FileContext(file: file, bytes: bytes)
    var reader = PolicyDocumentReader(context: context)
    do throws(JSONError) {
      try reader.read()
    } catch {
      context.complain(error)
    }
    guard let document = reader.document(), context.isEmpty else { throw context.errors }
    self = document
  }
}

/// Reads the document's upper levels; `hosts` is read rule by rule.
struct PolicyDocumentReader {
  let context: FileContext
  private var json: JSONReader
  private var version: UInt64?
  private var issuedAt: Timestamp?
  private var expiresAt: Timestamp?
  private var enabled = true
  private var rolloutPercentage = 100.0
  private var minAppVersion: AppVersion?
  private var rollout = RolloutStrategy()
  private var fallback = Fallback()
  private var monitoring = Monitoring()
  private var trustedKeys: SignerSet?
  private var rules: RuleListReader

  private static let neededKeys = ["version", "issued_at", "expires_at", "ssl_pinning_config"]
  private static let topKeys = neededKeys + ["trusted_keys"]
  private static let configKeys = [
    "enabled", "rollout_percentage", "min_app_version", "hosts", "rollout_strategy", "fallback", "monitoring",
  ]
  private static let configPath = KeyPath.root.member("ssl_pinning_config")

  init(context: FileContext) {
    self.context = context
    json = JSONReader(context.bytes)
    rules = RuleListReader(context: context, path: Self.configPath.member("hosts"))
  }

  mutating func read() throws(JSONError) {
    var seen: Set<String> = []
    try json.beginObject()
    while let (key, offset) = try json.nextMember() {
      guard isExpected(key, offset, Self.topKeys, .root, &seen) else {
        try json.skipValue()
        continue
      }
      if key == "ssl_pinning_config" {
        try readConfig()
      } else {
        readTop(key, try field(KeyPath.root.member(key)))
      }
    }
    try json.end()
    for key in Self.neededKeys where !seen.contains(key) { context.complain(at: 0, "", "\"\(key)\" is missing") }
  }

  private mutating func readTop(_ key: String, _ field: Field) {
    switch key {
    case "version": version = field.integer(in: 1...9_007_199_254_740_991).map { UInt64($0) }
    case "issued_at":
      issuedAt = field.timestamp()
      if let issuedAt, let expiresAt, expiresAt <= issuedAt { field.complain("expected a time before expires_at") }
    case "trusted_keys": trustedKeys = SignerSet(reading: field)
    default:
      expiresAt = field.timestamp()
      if let issuedAt, let expiresAt, expiresAt <= issuedAt { field.complain("expected a time after issued_at") }
    }
  }

  private mutating func readConfig() throws(JSONError) {
    let kind = try json.peek()
    let start = json.offset
    guard kind == .object else {
      context.complain(at: start, Self.configPath.text, "expected an object, found \(kind.rawValue)")
      return try json.skipValue()
    }
    var seen: Set<String> = []
    try json.beginObject()
    while let (key, offset) = try json.nextMember() {
      guard isExpected(key, offset, Self.configKeys, Self.configPath, &seen) else {
        try json.skipValue()
        continue
      }
      if key == "hosts" {
        try rules.read(&json)
      } else {
        readConfig(key, try field(Self.configPath.member(key)))
      }
    }
    if !seen.contains("hosts") { context.complain(at: start, Self.configPath.text, "\"hosts\" is missing") }
  }

  private mutating func readConfig(_ key: String, _ field: Field) {
    switch key {
    case "enabled": enabled = field.bool() ?? true
    case "rollout_percentage": rolloutPercentage = field.percentage() ?? 100
    case "min_app_version":
      if case .null = field.node.value { return }
      minAppVersion = field.parsed("a version such as \"1.5.0\"") { AppVersion($0) }
    case "rollout_strategy": rollout = RolloutStrategy(reading: field)
    case "fallback": fallback = Fallback(reading: field)
    default: monitoring = Monitoring(reading: field)
    }
  }

  private mutating func field(_ path: KeyPath) throws(JSONError) -> Field {
    Field(node: try JSONNode(reading: &json), path: path, context: context)
  }

  private func isExpected(
    _ key: String, _ offset: Int, _ known: [String], _ path: KeyPath, _ seen: inout Set<String>
  ) -> Bool {
    guard known.contains(key) else {
      context.complain(at: offset, path.text, "unknown key \"\(key)\"" + Suggestion.text(key, among: known))
      return false
    }
    guard seen.insert(key).inserted else {
      context.complain(at: offset, path.text, "the member \"\(key)\" is there twice")
      return false
    }
    return true
  }

  /// The document, when everything it cannot do without was there.
  consuming func document() -> PolicyDocument? {
    guard let version, let issuedAt, let expiresAt else { return nil }
    var document = PolicyDocument(
      version: version, issuedAt: issuedAt, expiresAt: expiresAt, table: rules.builder.table())
    document.enabled = enabled
    document.rolloutPercentage = rolloutPercentage
    document.minAppVersion = minAppVersion
    document.rollout = rollout
    document.fallback = fallback
    document.monitoring = monitoring
    document.trustedKeys = trustedKeys
    return document
  }
}
