/// One metric family by its exported name. The `pinfold_` names and labels are a contract with dashboards and alerts;
/// the `process_` ones are the convention of Prometheus client libraries.
package enum MetricFamily: String, CaseIterable, Sendable {
  case verifications = "pinfold_verifications_total"
  case verificationSeconds = "pinfold_verification_seconds"
  case tunnels = "pinfold_tunnels_total"
  case tunnelsActive = "pinfold_tunnels_active"
  case relayedBytes = "pinfold_relayed_bytes_total"
  case enforcement = "pinfold_enforcement"
  case breakerTrips = "pinfold_breaker_trips_total"
  case failureRatio = "pinfold_failure_ratio"
  case pinFetches = "pinfold_pin_fetches_total"
  case pinsExpiry = "pinfold_pins_expiry_timestamp_seconds"
  case policyVersion = "pinfold_policy_version"
  case policyExpiry = "pinfold_policy_expiry_timestamp_seconds"
  case policyReloads = "pinfold_policy_reloads_total"
  case probes = "pinfold_probe_total"
  case cache = "pinfold_cache_total"
  case buildInfo = "pinfold_build_info"
  case processCPU = "process_cpu_seconds_total"
  case processResident = "process_resident_memory_bytes"
  case processVirtual = "process_virtual_memory_bytes"
  case processOpenDescriptors = "process_open_fds"
  case processMaxDescriptors = "process_max_fds"
  case processStart = "process_start_time_seconds"

  /// The word behind `# TYPE`.
  enum Kind: String {
    case counter, gauge, histogram
  }

  var kind: Kind {
    switch self {
    case .verifications, .tunnels, .relayedBytes, .breakerTrips, .pinFetches, .policyReloads, .probes, .cache,
      .processCPU:
      .counter
    case .verificationSeconds: .histogram
    default: .gauge
    }
  }

  /// The text behind `# HELP`: one line of ASCII without backslash, so that it needs no escaping.
  var help: String {
    switch self {
    case .verifications: "Handshakes judged, by host, method and the one reason of the verdict."
    case .verificationSeconds: "Time from the whole ClientHello to the verdict."
    case .tunnels: "CONNECT requests by their one reason, those refused before the 200 included."
    case .tunnelsActive: "Connections of clients that are open now, let in or not."
    case .relayedBytes: "Bytes of tunnels that have ended, handshakes included: up to the upstream, down to the client."
    case .enforcement: "Which enforcement state a host is in: 1 for that state, 0 for the others."
    case .breakerTrips: "Failure thresholds crossed, by what was done about it."
    case .failureRatio: "Share of rotation-shaped failures among all judged keys in the breaker's window, 0 to 1."
    case .pinFetches: "Fetches of pin records from pin services."
    case .pinsExpiry: "When the pins of a host expire, in Unix time."
    case .policyVersion: "Version of the policy in force, 0 when there is none."
    case .policyExpiry: "When the policy in force expires, in Unix time."
    case .policyReloads: "Attempts to load a policy or configuration."
    case .probes: "Handshakes of the proxy's own, by kind of ClientHello."
    case .cache: "Look-ups in the cache of pin records."
    case .buildInfo: "1, labelled with the version of the program."
    case .processCPU: "User and system CPU time spent, in seconds."
    case .processResident: "Resident memory size in bytes."
    case .processVirtual: "Virtual memory size in bytes."
    case .processOpenDescriptors: "Number of open file descriptors."
    case .processMaxDescriptors: "Limit of open file descriptors."
    case .processStart: "When the process started, in Unix time."
    }
  }
}
