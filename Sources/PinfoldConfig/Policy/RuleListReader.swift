import PinfoldModel
import PinfoldPolicy

/// Reads `hosts`: one rule at a time, so that a million of them need no more memory than their table.
struct RuleListReader {
  let context: FileContext
  let path: KeyPath
  private(set) var builder = RuleTableBuilder()

  init(context: FileContext, path: KeyPath) {
    self.context = context
    self.path = path
  }

  mutating func read(_ json: inout JSONReader) throws(JSONError) {
    let kind = try json.peek()
    guard kind == .object else {
      context.complain(at: json.offset, path.text, "expected an object from hosts to rules, found \(kind.rawValue)")
      return try json.skipValue()
    }
    try json.beginObject()
    while let (name, offset) = try json.nextMember() {
      let node = try JSONNode(reading: &json)
      guard !context.isFull else { return try skip(&json) }
      add(name, offset, Field(node: node, path: path.entry(name), context: context))
    }
  }

  private func skip(_ json: inout JSONReader) throws(JSONError) {
    while try json.nextMember() != nil { try json.skipValue() }
  }

  private mutating func add(_ name: String, _ offset: Int, _ field: Field) {
    let key = Field(
      node: JSONNode(value: .string(name), range: offset..<offset), path: field.path, context: context)
    let pattern = key.pattern()
    var object = ObjectReader(field, path: field.path, context: context)
    let settings = RuleSettings(reading: &object, of: field)
    let pinField = object.optional("pins")
    object.finish()
    // `nil` after a complaint about one of them.
    let pins = pinField.map { $0.pins() } ?? []
    if pins?.isEmpty == true, field.node.kind == .object, !settings.trustOnFirstUse {
      (pinField ?? field).complain("a rule needs \"pins\", at least one")
    }
    guard let pattern, let pins else { return }
    do throws(RuleTableError) {
      try builder.add(pattern, pins: pins, settings: settings)
    } catch {
      switch error {
      case .duplicate: key.complain("\(pattern.text) has a rule already")
      case .tooManyPins: (pinField ?? field).complain("more than \(PinSet.limit) pins")
      case .full: field.complain("more rules than a policy can hold")
      }
    }
  }
}

extension RuleSettings {
  fileprivate init(reading object: inout ObjectReader, of field: Field) {
    self.init()
    enabled = object.field("enabled")?.bool() ?? enabled
    rolloutPercentage = object.field("rollout_percentage")?.percentage() ?? rolloutPercentage
    match = object.field("match")?.choice(PinMatching.self) ?? match
    mode = object.field("mode")?.choice(EnforcementMode.self) ?? mode
    tls13 = object.field("tls13")?.choice(TLS13Mode.self) ?? tls13
    verifyChain = object.field("verify_chain")?.bool() ?? verifyChain
    neverDisable = object.field("never_disable")?.bool() ?? neverDisable
    trustOnFirstUse = object.field("trust_on_first_use")?.bool() ?? trustOnFirstUse
    sni = object.field("sni")?.choice(SNIRule.self) ?? sni
    expiresAt = object.optional("expires_at")?.timestamp()
    if match == .chain, !verifyChain {
      field.complain("match \"chain\" needs a chain that was verified: drop \"verify_chain\": false or match the leaf")
    }
  }
}

extension Field {
  /// The text as a host pattern, `exact` when no wildcard may stand there.
  func pattern(exact: Bool = false) -> HostPattern? {
    guard let text = string("a host") else { return nil }
    do throws(DomainNameError) {
      let pattern = try DomainNames.pattern(text)
      guard !exact || pattern.reach == .exact else {
        complain("\"\(text)\": expected one host, without a wildcard")
        return nil
      }
      return pattern
    } catch {
      complain("\"\(text)\" is no host pattern: \(error.message)")
      return nil
    }
  }

  /// A list of pins, or an object with `primary`, `backup` and `emergency`; `nil` after a complaint about any of them.
  func pins() -> [(pin: Pin, role: PinRole)]? {
    switch node.value {
    case .array(let nodes):
      let pins = nodes.enumerated().compactMap { index, node in
        Field(node: node, path: path.element(index), context: context).pin()
      }
      return pins.count == nodes.count ? pins.map { ($0, .listed) } : nil
    case .object:
      var object = ObjectReader(self, path: path, context: context)
      var pins: [(pin: Pin, role: PinRole)] = []
      var isWhole = true
      for (name, role) in [("primary", PinRole.primary), ("backup", .backup), ("emergency", .emergency)] {
        guard let field = object.optional(name) else { continue }
        if let pin = field.pin() { pins.append((pin, role)) } else { isWhole = false }
      }
      object.finish()
      return isWhole ? pins : nil
    default:
      expected("a list of pins, or an object with \"primary\", \"backup\" and \"emergency\"")
      return nil
    }
  }

  private func pin() -> Pin? {
    parsed("a pin: \"sha256/\" or \"cert-sha256/\" and the SHA-256 as 44 characters of base64 or 64 hex digits") {
      Pin($0)
    }
  }
}
