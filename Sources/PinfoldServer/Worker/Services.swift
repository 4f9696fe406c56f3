import PinfoldConfig
import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply
import PinfoldTLS
import PinfoldTelemetry
import Synchronization

/// What all workers share. Every part is safe from any thread.
final class Services: Sendable {
  let rules: RulesInForce
  let metrics: Metrics
  let log: Logger
  let audit: AuditTrail
  let probes = ProbeClient()
  let probeReuse = ProbeReuse()
  let upstreams = UpstreamMemory()
  let ledger = ResumptionLedger()
  let tunnels = TunnelCount()
  let gatekeeper = Gatekeeper()
  let breaker: BreakerWatch
  /// The secrets that applications log; `nil` without `tls.key_log`.
  let keyLog: KeyLog?
  /// What survives a restart; `nil` when it cannot be opened. Its calls wait for the disk: none belongs on a worker.
  let cache: SealedCache?
  /// Pins that services hand out.
  let supply: PinSupply
  /// The keys that devices are trusted with.
  let trust: TrustDesk
  /// Drawn once per process; part of every request id.
  let processTag = UInt32.random(in: 0..<(1 << 20))
  /// Where this process listens: no tunnel leads back here.
  let ownListeners = OwnListeners()
  /// Ports of rules that are for one port only, by labelled host.
  private let rulePorts = Mutex<[String: UInt16]>([:])
  private let draining = Atomic<Bool>(false)

  init(
    rules: RulesInForce, metrics: Metrics, log: Logger, audit: AuditTrail, keyLog: KeyLog?, cache: SealedCache?,
    locked: LockedCache?, supply: PinSupply, diskLoop: EventLoop
  ) {
    self.rules = rules
    self.metrics = metrics
    self.log = log
    self.audit = audit
    self.keyLog = keyLog
    self.cache = cache
    self.supply = supply
    breaker = BreakerWatch(metrics: metrics, log: log, audit: audit)
    trust = TrustDesk(cache: cache, locked: locked, loop: diskLoop, log: log, audit: audit) { [ledger, probeReuse] in
      ledger.endAll()
      probeReuse.removeAll()
    }
  }

  /// What the gauges show of one labelled host. Pins are looked up for port 443, or for the port of the rule by which
  /// the host was seen.
  func sample(of host: String, _ rules: Rules) -> HostSample? {
    guard let name = HostName(host) else { return nil }
    let authority = Authority(host: name, port: rulePorts.withLock { $0[host] } ?? 443)
    let decision = decide(authority, user: nil, rules, isUse: false)
    guard decision.isPinned else { return nil }
    let state = breaker.isSuspendedForAnyone(decision) ? EnforcementState.suspended : decision.state
    return HostSample(
      state: .init(rawValue: state.rawValue), pinsExpiry: decision.expiresAt,
      failureRatio: breaker.failureRatio(of: name))
  }

  /// Puts new rules into force.
  func take(_ new: Rules) {
    label(new.policy)
    log.setLevel(Severity(new.configuration.log.level))
    // First, so that no suspension of the rules before meets the new ones.
    breaker.adopt(new.policy)
    rules.replace(with: new)
  }

  /// Gives the hosts that rules name exactly their metric labels.
  func label(_ policy: PolicySnapshot) {
    guard let table = policy.document?.table else { return }
    let exact = table.rules.lazy.filter { $0.reach == .exact }.prefix(Metrics.hostLimit)
    for rule in exact {
      guard let authority = Authority(rule.pattern, defaultPort: 443) else { continue }
      metrics.label([authority.host.text])
      if let port = rule.port { rulePorts.withLock { $0[authority.host.text] = port } }
    }
  }

  /// Whether the process is ending: no new tunnels.
  var isDraining: Bool { draining.load(ordering: .relaxed) }

  /// Returns whether this call began the drain.
  func beginDraining() -> Bool { !draining.exchange(true, ordering: .relaxed) }
}
