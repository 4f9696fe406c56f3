import PinfoldModel
import PinfoldPolicy

/// Turns the tree of a configuration file into a `Configuration`; mistakes go to the context.
struct ConfigurationReader {
  let context: FileContext
  /// Absolute, or relative to the working directory; no slash at the end.
  let directory: String

  static let addressText = "an address such as \"127.0.0.1:9128\" or \"[::1]:9128\""
  static let listenText = "an address such as \"127.0.0.1:3128\", \"[::1]:3128\" or \"unix:/run/pinfold/proxy.sock\""
  private static let blockText = "a CIDR block such as \"10.0.0.0/8\" or \"fd00::/8\""

  func configuration(_ field: Field) -> Configuration {
    var result = Configuration()
    var root = ObjectReader(field, path: .root, context: context)
    result.listen = root.field("listen").flatMap(listen) ?? result.listen
    result.admin = root.field("admin")?.parsed(Self.addressText) { SocketAddress($0) } ?? result.admin
    result.workers = root.field("workers")?.integer(in: 0...1024) ?? result.workers
    result.stateDirectory = root.field("state_dir").flatMap(path) ?? result.stateDirectory
    result.cacheKeyFile = root.optional("cache_key_file").flatMap(path)
    result.policy = policy(root.object("policy"))
    var domains = ServiceDomains()
    result.pinServices = pinServices(root.field("pin_services"), &domains)
    result.serviceOfDomain = domains.services
    if !domains.services.isEmpty { result.serviceDomains = domains.builder.table() }
    result.tls = tls(root.object("tls"))
    result.destinations = destinations(root.object("destinations"))
    result.access = access(root.object("access"))
    result.limits = limits(root.object("limits"))
    result.instance = instance(root.object("instance"))
    result.audit = audit(root.object("audit"))
    result.log = log(root.object("log"))
    root.finish()
    return result
  }

  // MARK: Values that sections share

  /// A path; relative ones start at the directory of the file.
  func path(_ field: Field) -> String? { field.string("a path").map(resolved) }

  /// The same with its place, for those who open the file.
  func file(_ field: Field) -> Located? { path(field).map(field.located) }

  private func resolved(_ path: String) -> String { path.hasPrefix("/") ? path : directory + "/" + path }

  private func listen(_ field: Field) -> [ListenAddress]? {
    guard let elements = field.elements("a list of addresses") else { return nil }
    if elements.isEmpty { field.complain("expected at least one address") }
    return elements.compactMap { element in
      element.parsed(Self.listenText) { text in
        guard text.hasPrefix("unix:"), text != "unix:" else { return ListenAddress(text) }
        return ListenAddress("unix:" + resolved(String(text.dropFirst(5))))
      }
    }
  }

  func blocks(_ field: Field) -> [AddressBlock]? {
    field.elements("a list of CIDR blocks")?.compactMap { $0.parsed(Self.blockText) { AddressBlock($0) } }
  }

  func keys(_ field: Field) -> [Located]? {
    guard let elements = field.elements("a list of public keys") else { return nil }
    var known: Set<String> = []
    return elements.compactMap { element in
      guard let text = element.string("a public key in base64") else { return nil }
      if !known.insert(text).inserted { element.complain("the same key is there twice") }
      return element.located(text)
    }
  }

  // MARK: Sections

  private func policy(_ reader: ObjectReader) -> PolicySection {
    var reader = reader
    var result = PolicySection()
    result.bundles =
      reader.field("bundles")?.elements("a list of files or https:// URLs")?.compactMap { element in
        element.string("a file or an https:// URL").flatMap { bundle($0, element) }
      } ?? []
    let keyField = reader.field("trusted_keys")
    result.trustedKeys = keyField.flatMap(keys) ?? []
    let required = reader.field("required_signatures")
    result.requiredSignatures = required?.integer(in: 1...64) ?? 1
    result.requiredSignaturesPlace = required.map { context.place($0.offset) }
    result.maxBundleBytes = reader.field("max_bundle_bytes")?.integer(in: 1024...4_294_967_296) ?? result.maxBundleBytes
    result.refreshSeconds = reader.field("refresh_seconds")?.integer(in: 1...86_400) ?? result.refreshSeconds
    result.unpinned = reader.field("unpinned")?.choice(UnpinnedMode.self) ?? result.unpinned
    result.builtinPins = builtinPins(reader.field("builtin_pins"))
    reader.finish()
    if !result.bundles.isEmpty, result.trustedKeys.isEmpty, keyField.map({ $0.node.kind == .array }) ?? true {
      context.complain(
        at: keyField?.offset ?? reader.offset("bundles"), "policy.trusted_keys",
        "bundles need at least one trusted key: pinfold keygen makes one")
    } else if let required, !result.bundles.isEmpty, result.requiredSignatures > result.trustedKeys.count {
      required.complain(
        "\(result.requiredSignatures) signatures cannot come from \(result.trustedKeys.count) trusted keys")
    }
    return result
  }

  /// A path, or a URL in its normal form. Whatever looks like a URL has to be one, so that a slip of the pen is not
  /// looked for in the file system.
  private func bundle(_ text: String, _ element: Field) -> Located? {
    guard text.contains("://") else { return element.located(resolved(text)) }
    guard let url = HTTPURL(text), url.isSecure else {
      element.complain(
        "\"\(text)\" is not a file or an https:// URL such as \"https://policy.example.com/policy.signed.json\"")
      return nil
    }
    return element.located(url.text)
  }

  private func builtinPins(_ field: Field?) -> RuleTable {
    guard let entries = field?.entries("an object from hosts to lists of pins") else { return .empty }
    var builder = RuleTableBuilder()
    for (key, _, value) in entries {
      guard let pattern = key.pattern(exact: true), let pins = value.pins() else { continue }
      if pins.isEmpty { value.complain("expected at least one pin") }
      do throws(RuleTableError) {
        try builder.add(pattern, pins: pins)
      } catch {
        key.complain(
          error == .duplicate ? "\(pattern.text) has builtin pins already" : "more than \(PinSet.limit) pins")
      }
    }
    return builder.table()
  }
}
