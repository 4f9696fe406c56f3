import PinfoldModel
import Synchronization

extension Exposition {
  /// The gauges of one host.
  mutating func write(_ family: MetricFamily, of host: String, _ sample: HostSample) {
    switch family {
    case .enforcement:
      for state in EnforcementLabel.allCases {
        self.sample(family, [("host", host), ("state", state.rawValue)], sample.state == state ? 1 : 0)
      }
    case .pinsExpiry:
      if let expiry = sample.pinsExpiry { self.sample(family, [("host", host)], String(expiry.seconds)) }
    default:
      if let ratio = sample.failureRatio { self.sample(family, [("host", host)], Self.text(ratio)) }
    }
  }

  /// The policy's gauges, and the build's.
  mutating func write(_ family: MetricFamily, _ scrape: Scrape) {
    switch family {
    case .policyVersion: sample(family, scrape.policy?.version ?? 0)
    case .policyExpiry: if let policy = scrape.policy { sample(family, [], String(policy.expiry.seconds)) }
    default: sample(family, [("version", scrape.version)], 1)
    }
  }

  /// The process's own figures.
  mutating func write(_ family: MetricFamily, _ process: ProcessSample) {
    switch family {
    case .processCPU: sample(family, [], Self.text(process.cpuSeconds))
    case .processResident: sample(family, process.residentBytes)
    case .processVirtual: sample(family, process.virtualBytes)
    case .processOpenDescriptors: sample(family, process.openDescriptors)
    case .processMaxDescriptors: sample(family, process.maxDescriptors)
    default: sample(family, [], Self.text(process.startSeconds))
    }
  }

  /// What the shards count, added up.
  mutating func write(_ family: MetricFamily, _ shards: [MetricShard]) {
    func sum(_ row: (MetricShard) -> CounterRow, _ cell: Int) -> UInt64 {
      shards.reduce(0) { $0 &+ row($1)[cell] }
    }
    switch family {
    case .tunnels:
      for (index, reason) in MetricShard.reasons.enumerated() {
        let result = reason.allows ? "allowed" : "refused"
        sample(family, [("result", result), ("reason", reason.rawValue)], sum(\.tunnels, index))
      }
    case .tunnelsActive:
      let started = sum(\.gauges, MetricShard.startedCell)
      // An end may be read whose start was not: the two cells have no order.
      sample(family, started - min(started, sum(\.gauges, MetricShard.endedCell)))
    case .relayedBytes:
      sample(family, [("direction", "up")], sum(\.relayed, MetricShard.upCell))
      sample(family, [("direction", "down")], sum(\.relayed, MetricShard.downCell))
    case .probes:
      for kind in ProbeKind.allCases {
        for result in AttemptResult.allCases {
          let count = sum(\.probes, MetricShard.cell(kind, result))
          sample(family, [("kind", kind.rawValue), ("result", result.rawValue)], count)
        }
      }
    case .cache:
      for (index, result) in CacheResult.allCases.enumerated() {
        sample(family, [("result", result.rawValue)], sum(\.cacheResults, index))
      }
    case .policyReloads:
      for (index, result) in AttemptResult.allCases.enumerated() {
        sample(family, [("result", result.rawValue)], sum(\.reloads, index))
      }
    case .verificationSeconds: writeHistogram(shards)
    default: writeVerifications(shards)
    }
  }

  private mutating func writeVerifications(_ shards: [MetricShard]) {
    var totals: [MetricShard.Series: [UInt64]] = [:]
    for shard in shards {
      for (key, row) in shard.series.withLock({ $0 }) {
        for index in MetricShard.reasons.indices {
          totals[key, default: Array(repeating: 0, count: MetricShard.reasons.count)][index] &+= row[index]
        }
      }
    }
    for (key, counts) in totals.sorted(by: { $0.key < $1.key }) {
      for (reason, count) in zip(MetricShard.reasons, counts) where count > 0 {
        let labels = [
          (name: "host", value: key.host), ("method", key.method.rawValue),
          ("result", reason.isSuccess ? "success" : "failure"), ("reason", reason.rawValue),
        ]
        sample(.verifications, labels, count)
      }
    }
  }

  private mutating func writeHistogram(_ shards: [MetricShard]) {
    for (index, method) in MetricShard.methods.enumerated() {
      let label = (name: "method", value: method.rawValue)
      var count: UInt64 = 0
      for cell in 0...MetricShard.bounds.count {
        for shard in shards { count &+= shard.timings[index][cell] }
        let bound = cell < MetricShard.bounds.count ? Self.text(MetricShard.bounds[cell]) : "+Inf"
        sample(.verificationSeconds, suffix: "_bucket", [label, ("le", bound)], String(count))
      }
      let nanoseconds = shards.reduce(0 as UInt64) { $0 &+ $1.timings[index][MetricShard.sumCell] }
      sample(.verificationSeconds, suffix: "_sum", [label], Self.text(Double(nanoseconds) / 1e9))
      sample(.verificationSeconds, suffix: "_count", [label], String(count))
    }
  }
}
