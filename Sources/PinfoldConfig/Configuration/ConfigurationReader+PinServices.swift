import PinfoldModel
import PinfoldPolicy

/// Which service speaks for which hosts, collected over all services: each pattern belongs to one.
struct ServiceDomains {
  private(set) var builder = RuleTableBuilder()
  /// The service of each domain in `builder`.
  private(set) var services: [Int] = []
  private var owners: [HostPattern: Int] = [:]
  /// Services read so far.
  var count = 0

  /// Notes a domain, or answers whose it is already.
  mutating func add(_ pattern: HostPattern, of service: Int) -> Int? {
    if let owner = owners[pattern] { return owner }
    // Neither of its errors can happen: the pattern is new, has no pins, and a file of this size is far from full.
    guard (try? builder.add(pattern, pins: [])) != nil else { return nil }
    owners[pattern] = service
    services.append(service)
    return nil
  }
}

extension ConfigurationReader {
  func pinServices(_ field: Field?, _ domains: inout ServiceDomains) -> [PinServiceSection] {
    guard let elements = field?.elements("a list of pin services") else { return [] }
    var result: [PinServiceSection] = []
    for element in elements {
      result.append(pinService(ObjectReader(element, path: element.path, context: context), element, &domains))
    }
    return result
  }

  private func pinService(
    _ reader: ObjectReader, _ field: Field, _ known: inout ServiceDomains
  ) -> PinServiceSection {
    var reader = reader
    var result = PinServiceSection()
    let wanted = "a URL such as \"https://pins.example.com/v1/pins\""
    func need(_ key: String, _ isEmpty: Bool, _ what: String) {
      if isEmpty { field.complain("\"\(key)\" is missing: \(what)") }
    }
    let urls = reader.field("urls")
    result.urls =
      urls?.elements("a list of URLs")?.compactMap { element in
        element.parsed(wanted) { HTTPURL($0) == nil ? nil : $0 }
          .map(element.located)
      } ?? []
    need("urls", urls == nil, "where records are fetched")
    let domains = reader.field("domains")
    let service = known.count
    known.count += 1
    for element in domains?.elements("a list of host patterns") ?? [] {
      guard let pattern = element.pattern() else { continue }
      guard pattern.port == nil else {
        element.complain("a pin service speaks for hosts on every port: leave the port out")
        continue
      }
      if let other = known.add(pattern, of: service) {
        element.complain("\(pattern.text) belongs to pin_services[\(other)] already: a host has one service")
      }
      result.domains.append(pattern)
    }
    need("domains", domains == nil, "which hosts the service may speak for")
    let keyField = reader.field("trusted_keys")
    result.trustedKeys = keyField.flatMap(keys) ?? []
    need("trusted_keys", keyField == nil, "whose signatures count")
    for list in [urls, domains, keyField] {
      if let list, case .array(let nodes) = list.node.value, nodes.isEmpty { list.complain("expected at least one") }
    }
    result.minTTLSeconds = reader.field("min_ttl_seconds")?.integer(in: 1...31_536_000) ?? result.minTTLSeconds
    let maximum = reader.field("max_ttl_seconds")
    result.maxTTLSeconds = maximum?.integer(in: 1...31_536_000) ?? max(result.maxTTLSeconds, result.minTTLSeconds)
    if result.maxTTLSeconds < result.minTTLSeconds {
      maximum?.complain("expected at least min_ttl_seconds, which is \(result.minTTLSeconds)")
    }
    result.allowUnboundSignatures = reader.field("allow_unbound_signatures")?.bool() ?? false
    result.caFile = reader.optional("ca_file").flatMap(file)
    reader.finish()
    return result
  }
}
