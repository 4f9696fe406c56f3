import PinfoldConfig
import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply
import PinfoldTelemetry
import Synchronization

/// Takes new rules into force, or keeps the old ones and says why. Works on the reload thread only.
final class Reloader: Sendable {
  private let loader: RulesLoader
  private let services: Services
  private let history: ReloadHistory
  private let shard: MetricShard
  private let loaded: Mutex<RulesLoader.Loaded>
  /// What the process was started with, of which some keys count as long as it runs.
  private let started: Configuration
  private let poller: BundlePoller

  init(
    _ loader: RulesLoader, _ first: RulesLoader.Loaded, services: Services, history: ReloadHistory, loop: EventLoop
  ) {
    self.loader = loader
    self.services = services
    self.history = history
    shard = services.metrics.makeShard()
    loaded = Mutex(first)
    started = first.rules.configuration
    poller = BundlePoller(loop: loop)
    say(first.report)
    note(first)
    for warning in first.clockWarnings { services.log.write(.warning, "clock", [.init("warning", .text(warning))]) }
    for warning in first.warnings { services.log.write(.warning, "identity", [.init("warning", .text(warning))]) }
    guard first.report?.outcome != .waiting else { return }
    shard.policyReload(first.report?.isSuccess ?? true ? .success : .failure)
  }

  /// Begins to fetch the bundles of the configuration.
  func start() { poller.follow(loaded.withLock { $0.plan }, self) }

  /// Reads everything anew, and fetches at once. A mistake in any file leaves everything as it was; what a server sent
  /// is not the operator's mistake, and does not keep a new configuration out.
  func run() {
    // Whoever moved the audit's file away asks for a new one, whatever becomes of the rules.
    services.audit.reopen()
    services.trust.reload()
    let before = loaded.withLock { $0 }
    defer { start() }
    do throws(FileErrors) {
      let candidate = try loader.reload(after: before)
      if let left = candidate.report, case let refusals = left.refusalsOfFiles, !refusals.isEmpty {
        say(left)
        return fail(refusals.map(\.description).joined(separator: "; "))
      }
      let after = candidate.take()
      // First, so that an audit that begins now has this reload in it.
      useAudit(after.rules.configuration)
      say(after.report)
      loaded.withLock { $0 = after }
      services.take(after.rules)
      note(after)
      services.audit.record(
        AuditRecord(
          .reload, [.init("result", .text("success")), .init("policy", .unsigned(after.rules.policy.version))]))
      shard.policyReload(.success)
      history.note(.hangUp, error: nil)
      services.log.write(
        .info, "reloaded", [.init("policy", .unsigned(after.rules.policy.version))] + needsRestart(after))
    } catch {
      fail(error.text)
    }
  }

  /// Remembers that this time has passed for certain.
  func noteTime(_ time: Timestamp) {
    for warning in loaded.withLock({ $0.noteTime(time) }) {
      services.log.write(.warning, "policy", [.init("warning", .text(warning))])
    }
  }

  private func fail(_ text: String) {
    shard.policyReload(.failure)
    history.note(.hangUp, error: text)
    services.audit.record(AuditRecord(.reload, [.init("result", .text("failure")), .init("error", .text(text))]))
    services.log.write(.error, "reload failed: everything stays as it was", [.init("error", .text(text))])
  }

  private func say(_ report: PolicyKeeper.Report?) {
    guard let report else { return }
    say(report.refusals)
    for version in report.rotations {
      services.log.write(.warning, "policy keys rotated", [.init("policy", .unsigned(version))])
      services.audit.record(AuditRecord(.keysRotated, [.init("policy", .unsigned(version))]))
    }
    for warning in report.warnings { services.log.write(.warning, "policy", [.init("warning", .text(warning))]) }
  }

  private func say(_ refusals: [BundleRefusal]) {
    for refusal in refusals {
      let fields: [LogEvent.Field] = [
        .init("cause", .text(refusal.word)), .init("error", .text(refusal.description)),
      ]
      services.log.write(.error, "policy bundle refused", fields)
      services.audit.record(
        AuditRecord(
          .policyRefused,
          [.init("file", .text(refusal.file))] + fields + [
            .init("policy", .unsigned(services.rules.current.policy.version))
          ]))
    }
  }

  /// Says what is weak about what came into force, and has the audit remember a policy.
  private func note(_ loaded: RulesLoader.Loaded) {
    for warning in loaded.rules.credentials?.warnings ?? [] {
      services.log.write(.warning, "credentials", [.init("warning", .text(warning))])
    }
    guard loaded.report?.outcome == .changed, let bundle = loaded.keeper?.inForce else { return }
    services.audit.record(
      AuditRecord(
        .policyAccepted,
        [
          .init("file", .text(bundle.file)), .init("signers", .text(bundle.signers.joined(separator: " "))),
          .init("digest", .text("sha256/\(bundle.payloadDigest.base64)")),
          .init("expires", .text(bundle.document.expiresAt.text)), .init("policy", .unsigned(bundle.document.version)),
        ]))
  }

  private func useAudit(_ configuration: Configuration) {
    var warnings: [String] = []
    services.audit.use(AuditSettings(configuration, warnings: &warnings))
    for warning in warnings { services.log.write(.warning, "audit", [.init("warning", .text(warning))]) }
  }

  /// Keys that are read at start only, and say something else now.
  private func needsRestart(_ after: RulesLoader.Loaded) -> [LogEvent.Field] {
    let new = after.rules.configuration
    var keys: [String] = []
    if started.listen != new.listen { keys.append("listen") }
    if started.admin != new.admin { keys.append("admin") }
    if started.workers != new.workers { keys.append("workers") }
    if after.nextStateDirectory != new.stateDirectory { keys.append("state_dir") }
    if started.cacheKeyFile != new.cacheKeyFile { keys.append("cache_key_file") }
    if started.tls.keyLog != new.tls.keyLog { keys.append("tls.key_log") }
    if started.log.format != new.log.format { keys.append("log.format") }
    return keys.isEmpty ? [] : [.init("needs_restart", .text(keys.joined(separator: ", ")))]
  }
}

// MARK: Fetched bundles

extension Reloader: BundlePoller.Judge {
  func etag(of url: HTTPURL) -> String? { loaded.withLock { $0.keeper?.fetched.etag(of: url.text) } }

  /// Takes what a server said of its bundle. Files are read again too, since the newest of all bundles counts; but their
  /// mistakes are told at SIGHUP, and what a SIGHUP refused waits for the next one.
  func take(_ result: Result<BundleFetcher.Answer, HTTPFetchError>, from url: HTTPURL) {
    var loaded = self.loaded.withLock { $0 }
    guard var keeper = loaded.keeper else { return }
    switch result {
    case .failure(let error):
      let refusals = [BundleRefusal(file: url.text, cause: .fetch(error))]
      say(refusals)
      return count(refusals)
    case .success(.unchanged): break
    case .success(.body(let bytes, let etag)): keeper.fetched.receive(bytes, etag: etag, from: url.text)
    }
    var report = keeper.take(keeper.examineFetched(now: .now, areFilesLeft: history.isRefused))
    report.refusals.removeAll { loaded.rules.configuration.isOther(bundle: $0.file, than: url.text) }
    loaded = loaded.with(keeper, report)
    self.loaded.withLock { $0 = loaded }
    say(report)
    note(loaded)
    if report.outcome == .changed {
      services.take(loaded.rules)
      services.log.write(
        .info, "policy changed",
        [.init("policy", .unsigned(loaded.rules.policy.version)), .init("from", .text(keeper.inForce?.file ?? ""))])
    }
    count(report.refusals)
  }

  /// Counts one refresh, in which this was refused.
  private func count(_ refusals: [BundleRefusal]) {
    shard.policyReload(refusals.isEmpty ? .success : .failure)
    history.note(.refresh, error: refusals.isEmpty ? nil : refusals.map(\.description).joined(separator: "; "))
  }
}

extension Configuration {
  /// Whether a path or URL is a bundle of this configuration, and not the one named.
  fileprivate func isOther(bundle file: String, than named: String) -> Bool {
    file != named && policy.bundles.contains { $0.text == file }
  }
}
