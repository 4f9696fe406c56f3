/// What the configuration of this instance adds to the signed document.
package struct LocalPolicy: Sendable {
  /// What happens to hosts that nothing pins.
  package var unpinned = UnpinnedMode.block
  /// For rules that do not say, and for unpinned hosts.
  package var tls13 = TLS13Mode.probe
  /// `destinations.ports`: the ports of every host that no rule opens another one for.
  package var ports: Set<UInt16> = [443]
  /// `policy.builtin_pins`: exact hosts with pins.
  package var builtin = RuleTable.empty
  /// `pin_services[].domains`: the hosts whose pins come from a service where no rule and no builtin pins name them. The
  /// number of a rule tells which domain spoke; rules here have no pins.
  package var serviceDomains = RuleTable.empty
  package var identity = InstanceIdentity()

  /// The defaults.
  package init() {}
}

/// Who this instance is, as far as a rollout asks.
package struct InstanceIdentity: Hashable, Sendable {
  /// `instance.id`, or the id of machine or container.
  package var deviceID: String?
  package var installID: String?
  package var appVersion: AppVersion?
  package var region: String?

  /// The defaults.
  package init() {}
}
