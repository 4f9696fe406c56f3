import PinfoldConfig
import PinfoldLoop
import PinfoldModel
import PinfoldTelemetry
import PinfoldWire
import PinfoldTLS

/// One thread, one loop, its listeners, its tunnels.
///
/// `@unchecked Sendable`: `resolver`, `listeners`, `open` and `newcomers` are touched on the loop's thread
/// only, which every door checks (`preconditionOnLoop`); everything else is immutable or shared by `Services`.
final class Worker: @unchecked Sendable {
  /// Connections from outside `access.clients` that may send their head, so that the refusal's line names the host; all
  /// others are refused before they have. `Rules` keeps descriptors for them.
  static let strangerLimit = 32
  /// How long nothing more is said of what goes on.
  private static let quiet = Duration.seconds(60)

  let loop: EventLoop
  let services: Services
  let shard: MetricShard
  let requestIDs: RequestIDSource
  let resolver: FairResolver
  private var listeners: [Listener] = []
  private var open: [ObjectIdentifier: StreamSocket] = [:]
  private var newcomers = Newcomers<StreamSocket>()
  /// Until when nothing more is said of dawdlers that made room.
  private var quietUntil = Deadline(nanoseconds: 0)
  private var keyLog: KeyLogIntake?

  /// Made on the thread that owns the loop until it runs.
  init(_ number: Int, loop: EventLoop, services: Services) throws(IOError) {
    self.loop = loop
    self.services = services
    shard = services.metrics.makeShard()
    requestIDs = RequestIDSource(processTag: services.processTag, worker: UInt16(clamping: number))
    resolver = FairResolver(try Resolver(loop: loop))
  }

  var rules: RulesInForce { services.rules }
  var upstreams: UpstreamMemory { services.upstreams }
  var probes: ProbeClient { services.probes }
  var probeReuse: ProbeReuse { services.probeReuse }
  var ledger: ResumptionLedger { services.ledger }
  var audit: AuditTrail { services.audit }
  var isDraining: Bool { services.isDraining }

  // MARK: Accepting

  /// Accepts on this socket from now on.
  func listen(on socket: consuming ListeningSocket) throws(IOError) {
    loop.preconditionOnLoop()
    let listener = try Listener(
      socket, loop: loop, accept: { [unowned self] client in self.serve(client) },
      refuse: { [unowned self] client in self.turnAway(client) })
    listeners.append(listener)
  }

  /// Takes in the key log of all workers from now on, where there is to be one: the tunnels of this one then hear of
  /// their lines without another thread.
  func readKeyLog(_ configuration: Configuration) throws(StartError) {
    loop.preconditionOnLoop()
    guard let path = configuration.tls.keyLog, let log = services.keyLog else { return }
    keyLog = try KeyLogIntake(of: log, from: path, loop: loop)
    for warning in KeyLogPlace.warnings(configuration) {
      services.log.write(.warning, "key log", [.init("warning", .text(warning))])
    }
  }

  private func serve(_ client: sending StreamSocket) {
    let place: TunnelPlace
    if rules.current.serves(client.peerAddress) {
      makeRoom()
      services.tunnels.newcomers.enter()
      place = .newcomer(newcomers.enter(client, now: loop.now))
    } else {
      guard services.tunnels.strangers.now < Self.strangerLimit else { return dismiss(client) }
      services.tunnels.strangers.enter()
      place = .stranger
    }
    services.tunnels.connections.enter()
    shard.tunnelStarted()
    open[ObjectIdentifier(client)] = client
    let tunnel = Tunnel(worker: self, client: client, place: place)
    loop.spawn { await tunnel.run() }
  }

  /// Refuses a client outside `access.clients` without waiting for what it asks for.
  private func dismiss(_ client: StreamSocket) {
    let failure = TunnelFailure.clientDenied
    var account = TunnelAccount(id: requestIDs.make(), client: client.peerAddress, started: loop.now)
    account.verdict = Verdict(failure.reason, detail: Tunnel.notListed)
    audit.record(account)
    count(refusedBeforeTunnel: failure.reason)
    services.log.write(account.line(at: loop.now).event)
    client.discard()
    _ = try? client.trySend(ProxyReply(failure).bytes.span)
    client.shutdownWrite()
    client.close()
  }

  /// Ends connections that dawdle over their head while there are too many of them.
  private func makeRoom() {
    let now = loop.now
    let limit = rules.current.newcomerLimit
    while services.tunnels.newcomers.now >= limit, let client = newcomers.removeDawdler(now: now) {
      services.tunnels.newcomers.leave()
      client.cancel()
      guard now >= quietUntil else { continue }
      quietUntil = now.advanced(by: Self.quiet)
      services.log.write(.warning, "too many clients have sent no CONNECT: those that waited longest are closed")
    }
  }

  /// Answers a client for which there is no descriptor, from the one kept in reserve.
  private func turnAway(_ client: StreamSocket) {
    let failure = TunnelFailure.tunnelLimit(retryAfterSeconds: 1)
    var account = TunnelAccount(id: requestIDs.make(), client: client.peerAddress, started: loop.now)
    account.verdict = Verdict(failure.reason, detail: "out of descriptors")
    audit.record(account)
    let reply = ProxyReply(failure)
    _ = try? client.trySend(reply.bytes.span)
    count(refusedBeforeTunnel: .limitReached)
    services.log.write(account.line(at: loop.now).event)
  }

  /// Stops accepting; open tunnels go on.
  func stopListening() {
    loop.preconditionOnLoop()
    for listener in listeners { listener.close() }
    listeners = []
  }

  /// Ends every open tunnel.
  func cancelTunnels() {
    loop.preconditionOnLoop()
    for client in open.values { client.cancel() }
  }

  /// Whether one more tunnel, itself counted already, is within `limits.tunnels`.
  func hasRoom(_ rules: Rules) -> Bool {
    services.tunnels.tunnels.now <= rules.tunnelLimit
  }

  /// Counts a connection as something else from now on.
  func move(_ account: inout TunnelAccount, to place: TunnelPlace) {
    loop.preconditionOnLoop()
    switch account.place {
    case .none: break
    case .newcomer(let ticket): if newcomers.leave(ticket) { services.tunnels.newcomers.leave() }
    case .stranger: services.tunnels.strangers.leave()
    case .tunnel: services.tunnels.tunnels.leave()
    }
    account.place = place
    if case .tunnel = place { services.tunnels.tunnels.enter() }
  }

  // MARK: Accounting

  /// Counts a tunnel that got its 200.
  func count(_ account: TunnelAccount) {
    shard.tunnel(account.verdict.reason)
    shard.verification(
      host: account.hostLabel, method: account.verdict.method, reason: account.verdict.reason,
      nanoseconds: account.verdictNanoseconds)
    // Whoever copies a certificate owns no key, and must not be able to make anything of it.
    if account.verdict.awaitsProof { return }
    services.breaker.count(account.decision, account.verdict.reason, client: account.identity)
  }

  /// Counts a tunnel that got another answer than 200.
  func count(refusedBeforeTunnel reason: Reason) {
    shard.tunnel(reason)
  }

  /// The end of a tunnel: its bytes, its line.
  func close(_ account: TunnelAccount, _ client: StreamSocket) {
    var account = account
    move(&account, to: .none)
    client.close()
    open[ObjectIdentifier(client)] = nil
    services.tunnels.connections.leave()
    shard.tunnelEnded()
    guard !account.isSilent else { return }
    shard.relayed(up: account.up, down: account.down)
    // A line that nobody will read is not made: its texts cost more than counting the tunnel.
    guard services.log.takes(DecisionLine.level(of: account.verdict)) else { return }
    services.log.write(account.line(at: loop.now).event)
  }
}
