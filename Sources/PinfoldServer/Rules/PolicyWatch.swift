import PinfoldModel
import PinfoldPolicy
import PinfoldTelemetry

/// Says once for each policy, in log and audit, that it expired while it was in force. Lives on the control loop.
struct PolicyWatch {
  private var said: UInt64?

  /// Looks at the policy in force; to be called now and then.
  mutating func look(_ services: Services, at now: Timestamp = .now) {
    guard let document = services.rules.current.policy.document, now >= document.expiresAt, said != document.version
    else { return }
    said = document.version
    let fields: [LogEvent.Field] = [
      .init("expired", .text(document.expiresAt.text)), .init("policy", .unsigned(document.version)),
    ]
    services.log.write(.error, "the policy expired: its hosts are blocked", fields)
    services.audit.record(AuditRecord(.policyExpired, fields))
  }
}
