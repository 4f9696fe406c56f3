import PinfoldConfig
import PinfoldLoop
import PinfoldModel
import PinfoldTelemetry
import PinfoldWire
import PinfoldTLS

/// One thread, one loop, its listeners, its tunnels.
///
/// `@unchecked Sendable`: `resolver`, `listeners` and `open` are touched on the loop's thread only, which every door
/// checks (`preconditionOnLoop`); everything else is immutable or shared by `Services`.
final class Worker: @unchecked Sendable {
  let loop: EventLoop
  let services: Services
  let shard: MetricShard
  let requestIDs: RequestIDSource
  let resolver: Resolver
  private var listeners: [Listener] = []
  private var open: [ObjectIdentifier: StreamSocket] = [:]
  private var keyLog: KeyLogIntake?

  /// Made on the thread that owns the loop until it runs.
  init(_ number: Int, loop: EventLoop, services: Services) throws(IOError) {
    self.loop = loop
    self.services = services
    shard = services.metrics.makeShard()
    requestIDs = RequestIDSource(processTag: services.processTag, worker: UInt16(clamping: number))
    resolver = try Resolver(loop: loop)
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
    services.tunnels.enter()
    shard.tunnelStarted()
    open[ObjectIdentifier(client)] = client
    let tunnel = Tunnel(worker: self, client: client)
    loop.spawn { await tunnel.run() }
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
    services.log.write(.warning, "out of descriptors: a client was turned away")
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
    services.tunnels.count <= rules.tunnelLimit
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
    loop.preconditionOnLoop()
    client.close()
    open[ObjectIdentifier(client)] = nil
    services.tunnels.leave()
    shard.tunnelEnded()
    guard !account.isSilent else { return }
    shard.relayed(up: account.up, down: account.down)
    // A line that nobody will read is not made: its texts cost more than counting the tunnel.
    guard services.log.takes(DecisionLine.level(of: account.verdict)) else { return }
    services.log.write(account.line(at: loop.now).event)
  }
}
