import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldTelemetry

extension TunnelAccount {
  /// The verdict as a record. Only a success may be lost to a crash.
  func auditRecord(client: String) -> AuditRecord {
    var fields: [LogEvent.Field] = []
    fields.reserveCapacity(14)
    fields.append(.init("id", .text(id.description)))
    fields.append(.init("client", .text(client)))
    if let authority { fields.append(.init("host", .text(authority.text))) }
    if let rule = decision?.rulePattern { fields.append(.init("rule", .text(rule))) }
    if let decision {
      fields.append(.init("source", .text(decision.source.rawValue)))
      fields.append(.init("mode", .text(decision.state.rawValue)))
    }
    fields.append(.init("method", .text(verdict.method.rawValue)))
    fields.append(.init("verdict", .text(verdict.allows ? "allow" : "refuse")))
    fields.append(.init("reason", .text(verdict.reason.rawValue)))
    if !verdict.detail.isEmpty { fields.append(.init("detail", .text(verdict.detail))) }
    if let key = verdict.leafKey { fields.append(.init("key", .text("sha256/\(key.base64)"))) }
    if let upstream { fields.append(.init("upstream", .text(upstream.text))) }
    fields.append(.init("policy", .unsigned(decision?.policyVersion ?? 0)))
    return AuditRecord(.tunnel, fields, isDurable: !verdict.reason.isSuccess)
  }
}

extension AuditTrail {
  /// Records a tunnel's verdict, waiting for nothing.
  func record(_ account: TunnelAccount) {
    if isRecording { record(account.auditRecord(client: name(of: account.client))) }
  }

  /// Records a refusal, and waits until it is on disk as long as a refusal may wait.
  func commit(_ account: TunnelAccount, on loop: EventLoop) async {
    if isRecording { await commit(account.auditRecord(client: name(of: account.client)), on: loop) }
  }
}
