import PinfoldConfig
import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply
import PinfoldTelemetry
import Synchronization

/// Pins from services, for all workers: asked from memory at once, fetched on a thread of its own.
///
/// `@unchecked Sendable`: `client`, `running`, `queue` and `timer` are touched on the supply loop's thread only, which
/// every door checks; everything else is immutable or behind a mutex.
final class PinSupply: @unchecked Sendable {
  /// How often is looked which records are to be refreshed: twice in the second that even the shortest leaves for it, since
  /// a timer of a whole second can step over that one.
  private static let step = Duration.milliseconds(500)
  /// Fetches at a time, of which one client has no more than it leaves free; what comes beyond them waits for its turn.
  private static let fetchLimit = 32
  /// A waiting tunnel gives up when a fetch that began with it must be over.
  private static let patience = PinFetcher.duration + .seconds(1)

  struct State {
    var keeper = PinKeeper()
    var waiting: [HostName: [ObjectIdentifier: Waiting]] = [:]
    /// How the last try at each URL's origin ended.
    var tries: [String: PinServiceTry] = [:]
  }

  /// A tunnel that waits for the end of a host's turn.
  struct Waiting: Sendable {
    let waiter: LoopWaiter<Void>
    /// On whose account the turn may be; `nil`: on nobody's, after a mismatch.
    let client: ClientIdentity?
  }

  /// One host's turn.
  struct Errand {
    let host: HostName
    let service: PinService
    /// Whether it is for tunnels that have no pins: a fresh record of the cache ends it, and so does the last of them that
    /// leaves before its turn came. Else pins are to be fetched anew.
    let isForTunnel: Bool
  }

  let state = Mutex(State())
  let rules: RulesInForce
  let log: Logger
  let audit: AuditTrail
  let metrics: Metrics
  let records: PinRecordStore
  let client: HTTPClient
  /// Where fetches run.
  let loop: EventLoop
  var running = FairPlaces<HostName>(limit: fetchLimit)
  /// What waits for its turn.
  var queue: [Errand] = []
  private var timer: LoopTimer?

  /// A supply whose fetches run on `loop`, which has to be the calling thread's still. Cache writes run on `diskLoop`.
  init(
    loop: EventLoop, diskLoop: EventLoop, cache: SealedCache?, locked: LockedCache?, rules: RulesInForce,
    metrics: Metrics, log: Logger, audit: AuditTrail
  ) throws(IOError) {
    self.loop = loop
    self.rules = rules
    self.metrics = metrics
    self.audit = audit
    self.log = log
    records = PinRecordStore(cache: cache, locked: locked, loop: diskLoop, log: log) {
      rules.current.pinServices.signers
    }
    client = HTTPClient(loop: loop, resolver: try Resolver(loop: loop))
    timer = LoopTimer(loop: loop, after: Self.step, every: Self.step) { [unowned self] in self.refreshDue() }
  }

  /// Both clocks, now.
  var moment: PinMoment { PinMoment(wall: rules.current.now, steady: Deadline.now.nanoseconds) }

  // MARK: Asked by tunnels

  /// The pins at hand for a host of this service; never waits.
  func look(_ host: HostName, _ service: PinService, isUse: Bool = true) -> PinKeeper.Finding {
    let moment = moment
    return state.withLock { $0.keeper.look(host, service, at: moment, isUse: isUse) }
  }

  /// Has the pins of a host fetched that has none at hand, and waits for the end of it, or until the client leaves: `nil`
  /// when there are some now. Tunnels to one host wait for one fetch, which goes on when one of them ends. `identity`: who
  /// the client is, so that it does not take everybody's turn.
  func fetch(
    _ host: HostName, _ service: PinService, for client: StreamSocket, _ identity: ClientIdentity, on loop: EventLoop
  ) async -> PinFetchFailure? {
    let moment = moment
    let waiter = LoopWaiter<Void>(loop: loop)
    let demand: PinKeeper.Demand? = state.withLock { state in
      if case .fresh = state.keeper.look(host, service, at: moment) { return nil }
      let demand = state.keeper.demand(host, service, for: identity, at: moment)
      if case .failed = demand { return demand }
      state.waiting[host, default: [:]][ObjectIdentifier(waiter)] = Waiting(waiter: waiter, client: identity)
      return demand
    }
    switch demand {
    case nil: return nil
    case .failed(let failure): return failure
    case .fetch: begin(host, service, isForTunnel: true)
    case .join: self.loop.execute { [self] in reconsider(host) }
    }
    await wait(waiter, host, for: client, until: loop.deadline(after: Self.patience))
    let later = self.moment
    return state.withLock { state in
      if case .fresh = state.keeper.look(host, service, at: later, isUse: false) { return nil }
      return state.keeper.failure(of: host) ?? PinFetchFailure(.busy, at: service.label)
    }
  }

  /// Has the pins of a host fetched anew that did not match, unless that was done a moment ago, and waits for it. What
  /// comes of it is for the caller to look up: pins, the same ones, or none. A client that leaves ends the wait.
  func refresh(
    afterMismatchOf host: HostName, _ service: PinService, for client: StreamSocket, on loop: EventLoop,
    until deadline: Deadline
  ) async {
    let moment = moment
    let waiter = LoopWaiter<Void>(loop: loop)
    let demand: PinKeeper.Demand? = state.withLock { state in
      let demand = state.keeper.demand(afterMismatchOf: host, at: moment)
      if demand != nil {
        state.waiting[host, default: [:]][ObjectIdentifier(waiter)] = Waiting(waiter: waiter, client: nil)
      }
      return demand
    }
    guard let demand else { return }
    if demand == .fetch { begin(host, service, isForTunnel: false) }
    await wait(waiter, host, for: client, until: min(deadline, loop.deadline(after: Self.patience)))
  }

  private func wait(
    _ waiter: LoopWaiter<Void>, _ host: HostName, for client: StreamSocket, until deadline: Deadline
  ) async {
    _ = await waiter.wait(until: deadline, for: client)
    state.withLock { $0.waiting[host]?[ObjectIdentifier(waiter)] = nil }
  }

  private func begin(_ host: HostName, _ service: PinService, isForTunnel: Bool) {
    let errand = Errand(host: host, service: service, isForTunnel: isForTunnel)
    loop.execute { [self] in arrive(errand) }
  }

  /// Keeps in the cache what was not written yet. To be called once, when the loops' threads have ended.
  func finish() { records.flush() }

  // MARK: On the supply loop

  private func refreshDue() {
    loop.preconditionOnLoop()
    let moment = moment
    let room = roomForRefreshes
    guard room > 0 else { return }
    let services = rules.current.pinServices
    let due = state.withLock { $0.keeper.due(at: moment, atMost: room, serviceOf: services.service) }
    for (host, service) in due { arrive(Errand(host: host, service: service, isForTunnel: false)) }
  }
}
