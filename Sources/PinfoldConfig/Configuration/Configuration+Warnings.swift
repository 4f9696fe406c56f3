import PinfoldModel
import PinfoldPolicy

extension Configuration {
  /// What the configuration loosens, one sentence each: for `check`. An empty list is the strictest operation.
  package var warnings: [String] {
    policyWarnings + tlsWarnings + placeWarnings + pinServices.enumerated().flatMap { Self.warnings(of: $1, at: $0) }
  }

  private var policyWarnings: [String] {
    var result: [String] = []
    switch policy.unpinned {
    case .block: break
    case .verify:
      result.append("policy.unpinned: \"verify\" lets hosts without pins pass with any publicly valid chain")
    case .tunnel: result.append("policy.unpinned: \"tunnel\" lets hosts without pins pass unseen")
    }
    if policy.bundles.isEmpty { result.append("policy.bundles is empty: no signed policy will be in force") }
    return result
  }

  private var tlsWarnings: [String] {
    var result: [String] = []
    if tls.probeReuseSeconds > 0 {
      result.append(
        "tls.probe_reuse_seconds: \(tls.probeReuseSeconds): within that time tunnels pass on an earlier tunnel's probe")
    }
    return result
  }

  private var placeWarnings: [String] {
    var result: [String] = []
    for block in destinations.allow {
      result.append("destinations.allow: hosts without pins may lead to \(block.text)")
    }
    for (authority, address) in destinations.resolve.sorted(by: { $0.key.text < $1.key.text }) {
      result.append("destinations.resolve: \(authority.text) is dialled at \(address.text), whatever DNS says")
    }
    if access.credentialsFile == nil, access.clients.contains(where: { !Self.isLoopback($0) }) {
      result.append(
        "access.clients admits clients beyond this machine, and no access.credentials_file asks who they are")
    }
    if audit.file != nil, audit.client == .address {
      result.append("audit.client: \"address\" writes the addresses of clients, which may be personal data")
    }
    return result
  }

  private static func isLoopback(_ block: AddressBlock) -> Bool {
    AddressClass(block.base) == .loopback && block.prefixLength >= (block.base.bytes.count == 4 ? 8 : 128)
  }

  private static func warnings(of service: PinServiceSection, at index: Int) -> [String] {
    var result: [String] = []
    for url in service.urls where url.text.hasPrefix("http://") {
      result.append(
        "pin_services[\(index)].urls: \(url.text) is fetched in the clear: whoever listens learns the hosts")
    }
    if service.allowUnboundSignatures {
      result.append(
        "pin_services[\(index)].allow_unbound_signatures: a signed fingerprint of one host can be replayed for another")
    }
    return result
  }
}
