import PinfoldCrypto
import PinfoldModel
import PinfoldPolicy
import PinfoldTelemetry
import Synchronization

/// The breaker of this process: counts judged tunnels, says in metric, log and status what came of it, and has what must
/// survive a restart written down.
///
/// From any thread. A worker takes one short lock per judged tunnel of a pinned host, and none to decide as long as
/// nothing is suspended.
final class BreakerWatch: Sendable {
  private let breaker = Mutex(Breaker())
  private let isWatching = Atomic<Bool>(true)
  private let hasSuspensions = Atomic<Bool>(false)
  private let keeper = Mutex<SuspensionKeeper?>(nil)
  private let metrics: Metrics
  private let log: Logger
  private let audit: AuditTrail
  /// Names for clients that tell them apart without saying who they are, where the audit has none; `nil` where no key can
  /// be had.
  private let pseudonyms = try? KeyedHash()

  init(metrics: Metrics, log: Logger, audit: AuditTrail) {
    self.audit = audit
    self.metrics = metrics
    self.log = log
  }

  // MARK: The policy

  /// Goes by this policy from now on. Another version, or one without `auto_disable`, ends every suspension.
  func adopt(_ policy: PolicySnapshot) {
    let terms = BreakerTerms(policy)
    isWatching.store(terms.monitoring.enabled, ordering: .relaxed)
    change { $0.adopt(terms) }
  }

  /// Takes up what an earlier run had suspended, as far as this policy would have it, and has changes kept from now on.
  func resume(_ keeper: SuspensionKeeper, _ policy: PolicySnapshot) {
    let kept = keeper.load(version: policy.version)
    let taken = breaker.withLock { breaker in
      let taken = breaker.restore(kept, under: policy, at: BreakerClock.moment)
      hasSuspensions.store(breaker.hasSuspensions, ordering: .relaxed)
      return taken
    }
    for trip in taken { log.write(.warning, "enforcement is still suspended", fields(of: trip)) }
    self.keeper.withLock { $0 = keeper }
  }

  // MARK: Tunnels

  /// The decision for this client now: the same, or a suspended one.
  func amend(_ decision: Decision, for client: ClientIdentity) -> Decision {
    guard hasSuspensions.load(ordering: .relaxed) else { return decision }
    let moment = BreakerClock.moment
    return breaker.withLock { $0.amend(decision, for: client, at: moment) }
  }

  /// Counts a judged tunnel.
  func count(_ decision: Decision?, _ reason: Reason, client: ClientIdentity) {
    guard isWatching.load(ordering: .relaxed), let decision,
      let sample = BreakerSample(decision, reason, client: client)
    else { return }
    let moment = BreakerClock.moment
    change { $0.record(sample, at: moment) }
  }

  // MARK: The control loop

  /// Ends what is over.
  func expire() {
    guard hasSuspensions.load(ordering: .relaxed) else { return }
    let moment = BreakerClock.moment
    change { $0.expire(at: moment) }
  }

  /// Ends every suspension of a rule and counts anew. Returns how many there were.
  ///
  /// `whenKept` is told once, from any thread, whether that is written down, so that they do not come back after a crash;
  /// where there were none, what is written down is put right all the same.
  func rearm(_ rule: RuleReference, whenKept: @escaping @Sendable (Bool) -> Void) -> Int {
    let count = change { $0.rearm(rule) }
    guard let keeper = keeper.withLock({ $0 }) else {
      whenKept(true)
      return count
    }
    keeper.keep({ [self] in current }, whenDone: whenKept)
    return count
  }

  /// Writes down what is not yet. To be called once, when the disk's thread has ended and nothing changes any more.
  func finish() { keeper.withLock { $0 }?.finish { current } }

  /// What `/status` shows.
  func figures(_ policy: PolicySnapshot) -> Status.Breaker? {
    guard let monitoring = policy.document?.monitoring else { return nil }
    let moment = BreakerClock.moment
    let (alerts, suspensions) = breaker.withLock { ($0.alerts(at: moment), $0.openSuspensions(at: moment)) }
    return Status.Breaker(
      enabled: monitoring.enabled, autoDisable: monitoring.autoDisable, alerts: alerts.map(figure),
      suspensions: suspensions.map(figure))
  }

  /// Failures of a host over all clients, 0–1; `nil` while there are too few samples.
  func failureRatio(of host: HostName) -> Double? {
    let moment = BreakerClock.moment
    return breaker.withLock { $0.failureRatio(of: host, at: moment) }
  }

  /// Whether the rule of this decision is suspended for any client.
  func isSuspendedForAnyone(_ decision: Decision) -> Bool {
    guard hasSuspensions.load(ordering: .relaxed), let rule = decision.rule, decision.suspended().state == .suspended
    else { return false }
    let moment = BreakerClock.moment
    return breaker.withLock { $0.isSuspended(rule, at: moment) }
  }

  // MARK: Saying it

  @discardableResult
  private func change(_ body: (inout Breaker) -> [BreakerEvent]) -> Int {
    let events = breaker.withLock { breaker in
      let events = body(&breaker)
      hasSuspensions.store(breaker.hasSuspensions, ordering: .relaxed)
      return events
    }
    for event in events { say(event) }
    if events.contains(where: \.changesSuspensions) { keeper.withLock { $0 }?.keep { [self] in current } }
    return events.count
  }

  private func say(_ event: BreakerEvent) {
    switch event {
    case .alerted(let trip, let restraint):
      metrics.breakerTrip(host: trip.authority.host.text, .alert)
      log.write(
        .warning, "failure threshold crossed: pins do not match",
        fields(of: trip) + [.init("suspended", .flag(false)), .init("why", .text(restraint.rawValue))])
      record(trip, "alert", why: restraint.rawValue)
    case .suspended(let trip):
      metrics.breakerTrip(host: trip.authority.host.text, .suspend)
      log.write(.error, "failure threshold crossed: enforcement suspended", fields(of: trip))
      record(trip, "suspend")
    case .rearmed(let trip, let cause):
      log.write(.warning, "enforcement re-armed", fields(of: trip) + [.init("why", .text(cause.rawValue))])
      record(trip, "rearm", why: cause.rawValue)
    }
  }

  /// The suspensions of this moment, to be written down.
  private var current: SuspensionKeeper.Suspensions {
    let moment = BreakerClock.moment
    return breaker.withLock { ($0.terms.policyVersion, $0.openSuspensions(at: moment)) }
  }

  private func fields(of trip: BreakerTrip) -> [LogEvent.Field] {
    var fields: [LogEvent.Field] = [.init("rule", .text(trip.rule)), .init("host", .text(trip.authority.text))]
    if let client = trip.client {
      fields.append(.init("client", .text(name(of: client, else: \.text))))
      fields.append(.init("client_id", .text(pseudonym(of: client))))
    }
    return fields + Self.counts(trip)
  }

  private func figure(_ trip: BreakerTrip) -> Status.Breaker.Trip {
    .init(
      rule: trip.rule, host: trip.authority.text, client: trip.client.map(pseudonym),
      since: BreakerClock.text(of: trip.since), until: trip.until.map { BreakerClock.text(of: $0) },
      ratio: trip.ratio, failures: trip.failures, samples: trip.samples)
  }

  private func pseudonym(of client: ClientIdentity) -> String {
    audit.pseudonym(of: client.text) ?? pseudonyms?.pseudonym(client.text) ?? "hidden"
  }

  /// What log and audit call a client: a user by the pseudonym, never by the name.
  private func name(of client: ClientIdentity, else other: (ClientIdentity) -> String) -> String {
    if case .user = client { pseudonym(of: client) } else { other(client) }
  }

  /// The event as an audit record, which is on disk soon.
  private func record(_ trip: BreakerTrip, _ action: String, why: String? = nil) {
    guard audit.isRecording else { return }
    var fields: [LogEvent.Field] = [
      .init("action", .text(action)), .init("rule", .text(trip.rule)), .init("host", .text(trip.authority.text)),
    ]
    if let client = trip.client { fields.append(.init("client", .text(name(of: client) { audit.name(of: $0.text) }))) }
    if let why { fields.append(.init("why", .text(why))) }
    fields += Self.counts(trip)
    fields.append(.init("policy", .unsigned(breaker.withLock { $0.terms.policyVersion })))
    audit.record(AuditRecord(.breaker, fields))
  }

  private static func counts(_ trip: BreakerTrip) -> [LogEvent.Field] {
    var fields: [LogEvent.Field] = [
      .init("failures", .integer(Int64(trip.failures))), .init("samples", .integer(Int64(trip.samples))),
      .init("since", .text(BreakerClock.text(of: trip.since))),
    ]
    if let until = trip.until { fields.append(.init("until", .text(BreakerClock.text(of: until)))) }
    return fields
  }
}

extension BreakerEvent {
  fileprivate var changesSuspensions: Bool {
    switch self {
    case .alerted: false
    case .suspended, .rearmed: true
    }
  }
}

extension ClientIdentity {
  /// The user, the address, or `unix`: what pseudonyms are made of. Of a user nothing else is said.
  var text: String {
    switch self {
    case .user(let name): name
    case .address(let address): address.text
    case .local: "unix"
    }
  }
}
