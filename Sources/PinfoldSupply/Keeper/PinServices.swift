package import PinfoldConfig
package import PinfoldModel
package import PinfoldPolicy

/// All pin services of a configuration, and which of them speaks for which host. Immutable; a reload makes another one.
package struct PinServices: Sendable {
  /// The services in the order of the file.
  package let all: [PinService]
  private let domains: RuleTable
  private let serviceOfDomain: [Int]

  /// No service.
  package static let none = PinServices()

  private init() { (all, domains, serviceOfDomain) = ([], .empty, []) }

  /// Loads what the services of the configuration need. `file` is the configuration's name. Throws the first service's
  /// mistakes.
  package init(_ configuration: Configuration, file: String) throws(FileErrors) {
    var all: [PinService] = []
    for (index, section) in configuration.pinServices.enumerated() {
      all.append(try PinService(section, index: index, file: file))
    }
    self.all = all
    domains = configuration.serviceDomains
    serviceOfDomain = configuration.serviceOfDomain
  }

  /// Whose signatures count for any of them.
  package var signers: [PinSigner] { all.flatMap(\.keys.signers) }

  /// The service of a domain, as a decision names it.
  package func service(of domain: RuleReference) -> PinService? {
    guard serviceOfDomain.indices.contains(domain.number) else { return nil }
    let index = serviceOfDomain[domain.number]
    return all.indices.contains(index) ? all[index] : nil
  }

  /// The service that speaks for a host, whatever the policy says of it.
  package func service(for host: HostName) -> PinService? {
    domains.rule(for: Authority(host: host, port: 443)).flatMap(service)
  }
}
