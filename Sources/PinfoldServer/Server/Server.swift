import FoundationEssentials
import PinfoldConfig
import PinfoldCrypto
package import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldTelemetry
import Synchronization

/// The running proxy: its workers, its control loop, its admin port.
///
/// Threads: one per worker, one for control (admin port, drain), one for reloads and the cache, one for fetched pins, one
/// for the audit, one for the log. Nothing is accepted before everything is bound.
package final class Server: Sendable {
  private let services: Services
  private let workers: [Worker]
  private let threads: [LoopThread]
  private let control: ControlRoom
  private let controlThread: LoopThread
  private let reloadThread: LoopThread
  private let supplyThread: LoopThread
  private let reloader: Reloader
  /// Let go of with the process: nothing is written any more then.
  private let lock: StateLock
  private let stopped = Mutex<(isOver: Bool, tell: (@Sendable () -> Void)?)>((false, nil))

  /// Where the proxy listens, with the ports the system chose.
  package let listening: [Endpoint]
  /// Where the admin port listens.
  package let admin: Endpoint

  /// Starts serving.
  ///
  /// - Parameters:
  ///   - loader: reads the rules at each reload.
  ///   - loaded: what it read at first.
  ///   - lock: the state directory, taken before that.
  package init(_ loader: RulesLoader, _ loaded: RulesLoader.Loaded, lock: StateLock, log: Logger) throws(StartError) {
    self.lock = lock
    let configuration = loaded.rules.configuration
    let count = configuration.workers > 0 ? configuration.workers : ProcessInfo.processInfo.activeProcessorCount
    let audit = try Self.audit(configuration, log)
    let rules = RulesInForce(loaded.rules)
    let metrics = Metrics()
    Self.logWarnings(lock, loaded, log)
    let supply: PinSupply
    let reloads: EventLoop
    do {
      reloads = try EventLoop()
      supply = try PinSupply(
        loop: try EventLoop(), diskLoop: reloads, cache: loaded.cache, locked: loaded.lockedCache, rules: rules,
        metrics: metrics, log: log, audit: audit)
    } catch {
      throw .system(error)
    }
    let services = Services(
      rules: rules, metrics: metrics, log: log, audit: audit, keyLog: configuration.tls.keyLog.map { _ in KeyLog() },
      cache: loaded.cache, locked: loaded.lockedCache, supply: supply, diskLoop: reloads)
    services.label(loaded.rules.policy)
    services.breaker.adopt(loaded.rules.policy)
    let history = ReloadHistory()
    do {
      workers = try (0..<count).map { number throws(IOError) in
        try Worker(number, loop: try EventLoop(), services: services)
      }
      control = ControlRoom(loop: try EventLoop())
    } catch {
      throw .system(error)
    }
    if let cache = services.cache {
      services.breaker.resume(SuspensionKeeper(cache, disk: reloads, log: log), loaded.rules.policy)
    }
    // Before the first connection: an app that finds no pipe makes a plain file of it.
    try workers.first?.readKeyLog(configuration)
    listening = try Self.listen(configuration.listen, workers)
    let site = AdminSite(
      services: services, history: history, workers: count, listen: listening.map(\.text), started: .now,
      token: Self.adminToken(configuration, log))
    admin = try control.serve(site, on: configuration.admin)
    control.watch(services.breaker)
    services.ownListeners.add(listening + [admin])
    let reloader = Reloader(loader, loaded, services: services, history: history, loop: reloads)
    self.reloader = reloader
    control.watchPolicy(services) { time in reloads.execute { reloader.noteTime(time) } }
    self.services = services
    do {
      threads = try workers.enumerated().map { number, worker throws(IOError) in
        try LoopThread(name: "worker-\(number)", loop: worker.loop)
      }
      controlThread = try LoopThread(name: "control", loop: control.loop)
      reloadThread = try LoopThread(name: "reload", loop: reloads)
      supplyThread = try LoopThread(name: "supply", loop: supply.loop)
    } catch {
      throw .system(error)
    }
    reloads.execute { reloader.start() }
    logStart(loaded.rules)
  }

  /// Says what is wrong with the places where things are kept.
  private static func logWarnings(_ lock: StateLock, _ loaded: RulesLoader.Loaded, _ log: Logger) {
    if let warning = lock.warning { log.write(.warning, "state_dir", [.init("warning", .text(warning))]) }
    for warning in loaded.cacheWarnings { log.write(.warning, "cache", [.init("warning", .text(warning))]) }
  }

  private static func audit(_ configuration: Configuration, _ log: Logger) throws(StartError) -> AuditTrail {
    var warnings: [String] = []
    let settings = AuditSettings(configuration, warnings: &warnings)
    for warning in warnings { log.write(.warning, "audit", [.init("warning", .text(warning))]) }
    do throws(IOError) {
      return try AuditTrail(settings, log: log)
    } catch {
      throw .system(error)
    }
  }

  private static func adminToken(_ configuration: Configuration, _ log: Logger) -> AdminToken? {
    do throws(CryptoError) {
      return try AdminToken(stateDirectory: configuration.stateDirectory)
    } catch {
      log.write(
        .warning, "the admin port only reads: its token cannot be kept", [.init("error", .text(error.description))])
      return nil
    }
  }

  /// Says where it serves, under which policy (0: none), and how many tunnels fit.
  private func logStart(_ rules: Rules) {
    services.log.write(
      .info, "serving",
      [
        .init("version", .text(Release.version)), .init("listen", .text(listening.map(\.text).joined(separator: " "))),
        .init("admin", .text(admin.text)), .init("policy", .unsigned(rules.policy.version)),
        .init("tunnels", .integer(Int64(rules.tunnelLimit))),
      ])
    services.audit.record(
      AuditRecord(
        .start, [.init("version", .text(Release.version)), .init("policy", .unsigned(rules.policy.version))]))
  }

  /// Every worker listens on every TCP address, the kernel spreads connections over them (SO_REUSEPORT); a UNIX socket
  /// has one file and so one worker.
  private static func listen(
    _ addresses: [ListenAddress], _ workers: [Worker]
  ) throws(StartError) -> [Endpoint] {
    var endpoints: [Endpoint] = []
    for address in addresses {
      var endpoint = Endpoint(address)
      for (number, worker) in workers.enumerated() {
        if number > 0, case .unix = endpoint { break }
        do throws(IOError) {
          let socket = try ListeningSocket(endpoint, sharing: number > 0)
          endpoint = socket.endpoint
          try worker.listen(on: socket)
        } catch {
          throw .cannotListen(address: address.text, error)
        }
      }
      endpoints.append(endpoint)
    }
    return endpoints
  }

  // MARK: Reload

  /// Reads configuration and policy anew; what is bad changes nothing and is said in log, metric and status.
  package func reload() {
    reloadThread.loop.execute { [reloader] in reloader.run() }
  }

  // MARK: Ending

  /// Stops accepting, lets open tunnels end for `limits.drain_seconds`, then ends the rest. Asked a second time, it ends
  /// them at once. `whenStopped` is told.
  package func drain() {
    guard services.beginDraining() else { return cancelTunnels() }
    services.log.write(.info, "draining", [.init("tunnels", .integer(Int64(services.tunnels.connections.now)))])
    for worker in workers {
      // A worker that still listens counts as a tunnel: whoever it accepts meanwhile is waited for, and not left open
      // without anybody serving it.
      services.tunnels.connections.enter()
      worker.loop.execute { [services] in
        worker.stopListening()
        services.tunnels.connections.leave()
      }
    }
    let limit = Duration.seconds(services.rules.current.configuration.limits.drainSeconds)
    control.loop.execute { [self] in
      control.watchDrain(of: services.tunnels, limit: limit, cancel: cancelTunnels, over: finish)
    }
  }

  private func cancelTunnels() {
    for worker in workers { worker.loop.execute { worker.cancelTunnels() } }
  }

  private func finish() {
    let tell = stopped.withLock { state in
      state.isOver = true
      return state.tell
    }
    tell?()
  }

  /// Has `body` called once the drain is over, from any thread; at once if it is over already.
  package func whenStopped(_ body: @escaping @Sendable () -> Void) {
    let isOver = stopped.withLock { state in
      state.tell = body
      return state.isOver
    }
    if isOver { body() }
  }

  /// Ends all threads. To be called once, after `whenStopped`, from a thread that is none of them.
  package func stop() {
    for thread in threads { thread.stop() }
    supplyThread.stop()
    reloadThread.stop()
    services.supply.finish()
    controlThread.stop()
    services.breaker.finish()
    services.gatekeeper.finish()
    services.audit.record(AuditRecord(.stop))
    services.audit.finish()
    services.log.write(.info, "stopped")
    services.log.finish()
  }
}

extension Endpoint {
  /// The address of the configuration.
  init(_ address: ListenAddress) {
    switch address {
    case .socket(let address): self = .tcp(address)
    case .unix(let path): self = .unix(path)
    }
  }
}
