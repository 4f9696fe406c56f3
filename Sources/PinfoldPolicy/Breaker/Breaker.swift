package import PinfoldModel

/// Watches how often pins do not match although chain and host name do, and says when that is more than the policy
/// bears: the shape of a key that was rotated and not pinned. Without I/O and without a clock: moments come in, in
/// milliseconds of a clock that never goes back, and events go out.
///
/// Windows and suspensions belong to a rule **and** a client. A client can make an honest upstream show another, not
/// pinned certificate, by what its hello offers; so the failures of one must never open anything for another.
///
/// A pair of rule and client is *armed*, or *alerting* (its window reaches the threshold: back to armed when it does
/// not), or *suspended* (only from an alerting window, and only where the signed policy says `auto_disable`: back to
/// armed, with an empty window, when the cool-down is over, by command, or with another policy). All are bounded in
/// number, and what is forgotten is armed.
package struct Breaker: Sendable {
  /// Windows of rules and clients: 2 MB when all are in use.
  static let windowLimit = 4096
  /// Rules that are watched over all their clients.
  static let ruleLimit = 4096
  /// Hosts that have a failure ratio of their own: as many as have a metric label.
  static let hostLimit = 1000
  /// Suspensions at a time, over all rules and clients.
  static let suspensionLimit = 1024

  struct Key: Hashable, Sendable {
    var subject: BreakerSubject
    var client: ClientIdentity
  }

  struct Entry: Sendable {
    var window: SampleWindow
    /// The last crossing, until the window falls below the threshold again.
    var alert: BreakerTrip?
  }

  /// What it goes by.
  package internal(set) var terms = BreakerTerms()
  var clients = FadingTable<Key, Entry>(limit: windowLimit)
  var rules = FadingTable<BreakerSubject, Entry>(limit: ruleLimit)
  var hosts = FadingTable<HostName, SampleWindow>(limit: hostLimit)
  var suspensions: [Key: BreakerTrip] = [:]

  /// A breaker that watches nothing until it has terms.
  package init() {}

  // MARK: Counting

  /// Counts one tunnel and says what came of it: mostly nothing.
  package mutating func record(_ sample: BreakerSample, at moment: Int64) -> [BreakerEvent] {
    guard terms.monitoring.enabled, sample.policyVersion == terms.policyVersion else { return [] }
    let key = Key(subject: sample.subject, client: sample.client)
    var events = end(key, ifOverAt: moment)
    let fresh = SampleWindow(seconds: terms.monitoring.windowSeconds, at: moment)
    hosts.update(sample.authority.host, fresh: fresh) { $0.add(failure: sample.isFailure, at: moment) }
    events += countForClient(sample, key, fresh, at: moment)
    if let event = countForRule(sample, fresh, at: moment) { events.append(event) }
    return events
  }

  private mutating func countForClient(
    _ sample: BreakerSample, _ key: Key, _ fresh: SampleWindow, at moment: Int64
  ) -> [BreakerEvent] {
    let percent = terms.monitoring.failureThreshold
    let (window, wasAlerting) = clients.update(key, fresh: Entry(window: fresh)) { entry in
      entry.window.add(failure: sample.isFailure, at: moment)
      if !entry.window.reaches(percent: percent) { entry.alert = nil }
      return (entry.window, entry.alert != nil)
    }
    guard sample.isFailure, window.samples >= terms.monitoring.minSamples, window.reaches(percent: percent),
      suspensions[key] == nil
    else { return [] }
    let restraint = restraint(on: sample)
    // Said once. But what could not be suspended at first is suspended as soon as it can.
    if wasAlerting, restraint != nil { return [] }
    let until = restraint == nil ? moment &+ terms.cooldown : nil
    let trip = trip(sample, client: sample.client, window, at: moment, until: until)
    clients.update(key, fresh: Entry(window: fresh)) { $0.alert = trip }
    if let restraint { return [.alerted(trip, restraint)] }
    let displaced = displace()
    suspensions[key] = trip
    return displaced + [.suspended(trip)]
  }

  /// The rule over all its clients: it alerts when no client of its own does.
  private mutating func countForRule(
    _ sample: BreakerSample, _ fresh: SampleWindow, at moment: Int64
  ) -> BreakerEvent? {
    let monitoring = terms.monitoring
    let (window, wasAlerting) = rules.update(sample.subject, fresh: Entry(window: fresh)) { entry in
      entry.window.add(failure: sample.isFailure, at: moment)
      if !entry.window.reaches(percent: monitoring.failureThreshold) { entry.alert = nil }
      return (entry.window, entry.alert != nil)
    }
    guard !wasAlerting, window.samples >= monitoring.minSamples,
      window.reaches(percent: monitoring.failureThreshold)
    else { return nil }
    let trip = trip(sample, client: nil, window, at: moment, until: nil)
    rules.update(sample.subject, fresh: Entry(window: fresh)) { $0.alert = trip }
    let isSaid = clients.entries.contains { key, entry in
      key.subject == sample.subject && entry.alert != nil
        && entry.window.advanced(to: moment).reaches(percent: monitoring.failureThreshold)
    }
    return isSaid ? nil : .alerted(trip, .noSingleClient)
  }

  private func trip(
    _ sample: BreakerSample, client: ClientIdentity?, _ window: SampleWindow, at moment: Int64, until: Int64?
  ) -> BreakerTrip {
    BreakerTrip(
      rule: sample.name, authority: sample.authority, client: client, failures: window.failures,
      samples: window.samples, since: moment, until: until)
  }

  // MARK: Asking

  /// Whether there is any suspension at all; decisions need not ask further when there is none.
  package var hasSuspensions: Bool { !suspensions.isEmpty }

  /// The decision for this client at this moment: the same, or a suspended one.
  package func amend(_ decision: Decision, for client: ClientIdentity, at moment: Int64) -> Decision {
    guard decision.policyVersion == terms.policyVersion, decision.source == .policy, let rule = decision.rule,
      let trip = suspensions[Key(subject: .rule(rule.number), client: client)], trip.isOpen(at: moment)
    else { return decision }
    return decision.suspended()
  }

  /// Failures of a host over all clients, 0–1; `nil` while there are too few samples.
  package func failureRatio(of host: HostName, at moment: Int64) -> Double? {
    guard let window = hosts.value(for: host)?.advanced(to: moment), window.samples >= terms.monitoring.minSamples
    else { return nil }
    return window.ratio
  }
}

extension BreakerTrip {
  /// Whether the suspension lasts at this moment.
  func isOpen(at moment: Int64) -> Bool { until.map { moment < $0 } ?? false }
}
