import PinfoldConfig
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

  init(_ loader: RulesLoader, _ first: RulesLoader.Loaded, services: Services, history: ReloadHistory) {
    self.loader = loader
    self.services = services
    self.history = history
    shard = services.metrics.makeShard()
    loaded = Mutex(first)
    say(first.report)
    note(first)
    for warning in first.warnings { services.log.write(.warning, "identity", [.init("warning", .text(warning))]) }
    shard.policyReload(first.report?.isSuccess ?? true ? .success : .failure)
  }

  /// Reads everything anew. A mistake anywhere leaves everything as it was.
  func run() {
    // Whoever moved the audit's file away asks for a new one, whatever becomes of the rules.
    services.audit.reopen()
    let before = loaded.withLock { $0 }
    do throws(FileErrors) {
      let after = try loader.reload(after: before)
      say(after.report)
      if let report = after.report, !report.isSuccess {
        return fail(report.refusals.map(\.description).joined(separator: "; "))
      }
      loaded.withLock { $0 = after }
      services.take(after.rules)
      note(after)
      useAudit(after.rules.configuration)
      services.audit.record(
        AuditRecord(
          .reload, [.init("result", .text("success")), .init("policy", .unsigned(after.rules.policy.version))]))
      shard.policyReload(.success)
      history.note(error: nil)
      services.log.write(
        .info, "reloaded", [.init("policy", .unsigned(after.rules.policy.version))] + Self.needsRestart(before, after))
    } catch {
      fail(error.text)
    }
  }

  private func fail(_ text: String) {
    shard.policyReload(.failure)
    history.note(error: text)
    services.audit.record(AuditRecord(.reload, [.init("result", .text("failure")), .init("error", .text(text))]))
    services.log.write(.error, "reload failed: everything stays as it was", [.init("error", .text(text))])
  }

  private func say(_ report: PolicyKeeper.Report?) {
    guard let report else { return }
    for refusal in report.refusals {
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
    for warning in report.warnings { services.log.write(.warning, "policy", [.init("warning", .text(warning))]) }
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

  /// Keys that are read at start only.
  private static func needsRestart(_ before: RulesLoader.Loaded, _ after: RulesLoader.Loaded) -> [LogEvent.Field] {
    let old = before.rules.configuration
    let new = after.rules.configuration
    var keys: [String] = []
    if old.listen != new.listen { keys.append("listen") }
    if old.admin != new.admin { keys.append("admin") }
    if old.workers != new.workers { keys.append("workers") }
    if old.stateDirectory != new.stateDirectory { keys.append("state_dir") }
    if old.cacheKeyFile != new.cacheKeyFile { keys.append("cache_key_file") }
    if old.tls.keyLog != new.tls.keyLog { keys.append("tls.key_log") }
    return keys.isEmpty ? [] : [.init("needs_restart", .text(keys.joined(separator: ", ")))]
  }
}
