package import PinfoldModel
package import PinfoldPolicy

/// Of which hosts memory has everything that the cache has, and by which signing keys. What it forgets has to be looked
/// for in the cache again, so it may forget anything.
///
/// Two halves: when the young one is full the old one goes. A host that was just met or used is there for a while,
/// however many others come.
package struct MetHosts: Sendable {
  private struct Meeting {
    var signers: [PinSigner]
    /// How often something had left memory by then.
    var departures: UInt64
  }

  private let limit: Int
  private var young: [HostName: Meeting] = [:]
  private var old: [HostName: Meeting] = [:]
  /// What left memory, and when last.
  private var departed: [HostPattern: UInt64] = [:]
  private var departures: UInt64 = 0

  /// `limit`: hosts at a time.
  package init(limit: Int) { self.limit = max(2, limit) }

  /// The keys of which everything about this host is in memory. `domains`: all that can speak for it.
  package func signers(of host: HostName, _ domains: [HostPattern]) -> [PinSigner] {
    guard let meeting = young[host] ?? old[host] else { return [] }
    let hasLost = !departed.isEmpty && domains.contains { departed[$0, default: 0] > meeting.departures }
    return hasLost ? [] : meeting.signers
  }

  /// Everything that the cache has of a host by these signers is in memory now. `domains` as above.
  package mutating func insert(_ host: HostName, _ domains: [HostPattern], _ signers: [PinSigner]) {
    let before = self.signers(of: host, domains)
    let added = before.isEmpty ? signers : signers.filter { !before.contains($0) }
    put(host, Meeting(signers: before + added, departures: departures))
  }

  /// A host is in use.
  package mutating func keep(_ host: HostName) {
    if young[host] == nil, let meeting = old[host] { put(host, meeting) }
  }

  /// Something of this domain left memory.
  package mutating func remove(_ domain: HostPattern) {
    departures += 1
    departed[domain] = departures
    if departed.count > limit { (young, old, departed) = ([:], [:], [:]) }
  }

  private mutating func put(_ host: HostName, _ meeting: Meeting) {
    if young.count >= limit / 2, young[host] == nil { (old, young) = (young, [:]) }
    young[host] = meeting
  }
}
