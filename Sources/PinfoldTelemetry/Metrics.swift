import PinfoldModel
import Synchronization

/// All metrics of a process. Made once, shared by all threads.
package final class Metrics: Sendable {
  /// Hosts with a `host` label of their own; the rest count under `other`.
  package static let hostLimit = 1000
  /// Pin services with a `service` label of their own: far more than a configuration lists.
  static let serviceLimit = 100

  private struct Fetch: Hashable {
    var service: String
    var result: PinFetchResult
  }

  private struct Trip: Hashable {
    var host: String
    var action: BreakerAction
  }

  let hosts = HostTable(limit: hostLimit)
  private let services = HostTable(limit: serviceLimit)
  private let shards = Mutex<[MetricShard]>([])
  private let fetches = Mutex<[Fetch: UInt64]>([:])
  private let trips = Mutex<[Trip: UInt64]>([:])

  /// Metrics in which nothing is counted yet.
  package init() {}

  /// A shard for one worker, counted from now on. Shards are never given back: make one per thread, at start.
  package func makeShard() -> MetricShard {
    let shard = MetricShard(hosts: hosts)
    shards.withLock { $0.append(shard) }
    return shard
  }

  /// Gives hosts that rules name exactly their labels before any pattern's hosts take them. Call it with each policy
  /// taken into force; those beyond the limit are ignored.
  package func label(_ exactHosts: some Sequence<String>) {
    var room = Self.hostLimit
    for host in exactHosts where room > 0 {
      _ = hosts.admits(host)
      room -= 1
    }
  }

  /// Counts a fetch from the pin service of this name (its URL without user, query or path, as configured).
  package func pinFetch(service: String, _ result: PinFetchResult) {
    let label = services.admits(service) ? service : HostLabel.other
    fetches.withLock { $0[Fetch(service: label, result: result), default: 0] += 1 }
  }

  /// Counts a crossing of a rule's failure threshold.
  package func breakerTrip(host: String, _ action: BreakerAction) {
    let label = hosts.admits(host) ? host : HostLabel.other
    trips.withLock { $0[Trip(host: label, action: action), default: 0] += 1 }
  }

  /// The whole page in the Prometheus text format. Families always stand in the same order, with their HELP and TYPE
  /// lines even where they have no sample yet. Counters of closed label sets start at 0.
  package func render(_ scrape: Scrape) -> [UInt8] {
    var page = Exposition()
    let shards = shards.withLock { $0 }
    for family in MetricFamily.allCases {
      page.open(family)
      switch family {
      case .pinFetches: renderFetches(&page)
      case .breakerTrips: renderTrips(&page)
      case .enforcement, .failureRatio, .pinsExpiry:
        for host in hosts.sorted {
          if let sample = scrape.host(host) { page.write(family, of: host, sample) }
        }
      case .policyVersion, .policyExpiry, .buildInfo: page.write(family, scrape)
      case .processCPU, .processResident, .processVirtual, .processOpenDescriptors, .processMaxDescriptors,
        .processStart:
        if let process = scrape.process { page.write(family, process) }
      default: page.write(family, shards)
      }
    }
    return page.bytes
  }

  private func renderFetches(_ page: inout Exposition) {
    let counts = fetches.withLock { $0 }
    for service in services.sorted + [HostLabel.other] {
      for result in PinFetchResult.allCases {
        guard let count = counts[Fetch(service: service, result: result)] else { continue }
        page.sample(.pinFetches, [("service", service), ("result", result.rawValue)], count)
      }
    }
  }

  private func renderTrips(_ page: inout Exposition) {
    let counts = trips.withLock { $0 }
    for host in hosts.sorted + [HostLabel.other] {
      for action in BreakerAction.allCases {
        guard let count = counts[Trip(host: host, action: action)] else { continue }
        page.sample(.breakerTrips, [("host", host), ("action", action.rawValue)], count)
      }
    }
  }
}
