package import PinfoldModel
import Synchronization

/// One worker's share of the counters.
///
/// Each worker owns one, so that no cache line and no lock is fought over between cores; a scrape adds the shards up.
/// Any thread may call it, only not many at once on the hot path: fixed counters are relaxed atomics, and the row of a
/// (host, method) is found under a mutex that nobody but the owner takes.
package final class MetricShard: Sendable {
  /// A series of `pinfold_verifications_total` but for its reason.
  struct Series: Hashable, Comparable {
    var host: String
    var method: VerificationMethod

    static func < (left: Self, right: Self) -> Bool {
      (left.host, left.method.rawValue) < (right.host, right.method.rawValue)
    }
  }

  /// Upper bounds of the histogram in seconds: from a cached verdict on the same machine to the handshake deadline.
  static let bounds: [Double] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]
  /// The histogram row's cell of the sum, in nanoseconds; the cell before it counts what is above the last bound.
  static let sumCell = bounds.count + 1

  static let reasons = Reason.allCases
  static let methods = VerificationMethod.allCases

  let tunnels = CounterRow()
  let gauges = CounterRow()
  let relayed = CounterRow()
  let probes = CounterRow()
  let cacheResults = CounterRow()
  let reloads = CounterRow()
  let timings: [CounterRow] = methods.map { _ in CounterRow() }
  let series = Mutex<[Series: CounterRow]>([:])
  private let hosts: HostTable

  static let startedCell = 0
  static let endedCell = 1
  static let upCell = 0
  static let downCell = 1

  init(hosts: HostTable) { self.hosts = hosts }

  /// A connection was accepted: `pinfold_tunnels_active` rises until `tunnelEnded`.
  package func tunnelStarted() { gauges.add(at: Self.startedCell) }

  /// A tunnel that was started is over.
  package func tunnelEnded() { gauges.add(at: Self.endedCell) }

  /// Counts one CONNECT by its one reason; exactly once for each, refused before the 200 or not.
  package func tunnel(_ reason: Reason) { tunnels.add(at: Self.index(of: reason, in: Self.reasons)) }

  /// Counts one verdict behind a 200. `nanoseconds` from the whole ClientHello to it; `nil` where none came.
  package func verification(host: HostLabel, method: VerificationMethod, reason: Reason, nanoseconds: UInt64?) {
    row(of: host, method).add(at: Self.index(of: reason, in: Self.reasons))
    guard let nanoseconds else { return }
    let seconds = Double(nanoseconds) / 1e9
    let row = timings[Self.index(of: method, in: Self.methods)]
    row.add(at: Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count)
    row.add(nanoseconds, at: Self.sumCell)
  }

  /// Counts bytes relayed after the verdict.
  package func relayed(up: UInt64 = 0, down: UInt64 = 0) {
    if up > 0 { relayed.add(up, at: Self.upCell) }
    if down > 0 { relayed.add(down, at: Self.downCell) }
  }

  /// Counts one handshake of the proxy's own.
  package func probe(_ kind: ProbeKind, _ result: AttemptResult) {
    probes.add(at: Self.cell(kind, result))
  }

  /// Counts one look-up in the cache of pin records.
  package func cache(_ result: CacheResult) { cacheResults.add(at: Self.index(of: result, in: CacheResult.allCases)) }

  /// Counts one attempt to load a policy or configuration.
  package func policyReload(_ result: AttemptResult) {
    reloads.add(at: Self.index(of: result, in: AttemptResult.allCases))
  }

  static func cell(_ kind: ProbeKind, _ result: AttemptResult) -> Int {
    index(of: kind, in: ProbeKind.allCases) * AttemptResult.allCases.count
      + index(of: result, in: AttemptResult.allCases)
  }

  static func index<Label: Equatable>(of label: Label, in all: [Label]) -> Int { all.firstIndex(of: label) ?? 0 }

  private func row(of host: HostLabel, _ method: VerificationMethod) -> CounterRow {
    guard case .pinned(let name) = host else { return ensureRow(Series(host: HostLabel.other, method: method)) }
    let wanted = Series(host: name, method: method)
    if let row = series.withLock({ $0[wanted] }) { return row }
    return ensureRow(hosts.admits(name) ? wanted : Series(host: HostLabel.other, method: method))
  }

  private func ensureRow(_ key: Series) -> CounterRow {
    series.withLock { rows in
      if let row = rows[key] { return row }
      let row = CounterRow()
      rows[key] = row
      return row
    }
  }
}
