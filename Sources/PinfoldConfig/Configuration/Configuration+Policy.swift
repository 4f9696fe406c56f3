package import PinfoldPolicy

extension Configuration {
  /// What the configuration adds to the signed document. `deviceID` is the machine's or container's id, which
  /// `instance.id` overrides; `installID` is the one kept in the state directory.
  package func localPolicy(deviceID: String? = nil, installID: String? = nil) -> LocalPolicy {
    var local = LocalPolicy()
    local.unpinned = policy.unpinned
    local.tls13 = tls.tls13
    local.ports = destinations.ports
    local.builtin = policy.builtinPins
    local.serviceDomains = serviceDomains
    local.identity.deviceID = instance.id ?? deviceID
    local.identity.installID = installID
    local.identity.appVersion = instance.appVersion
    local.identity.region = instance.region
    return local
  }

  /// `destinations.allow` and `deny` as the guard of resolved addresses.
  package var destinationGuard: DestinationGuard {
    DestinationGuard(allow: destinations.allow, deny: destinations.deny)
  }

  /// `access.clients` as a list that can be asked.
  package var clientList: ClientList { ClientList(access.clients) }
}
