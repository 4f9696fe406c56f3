import PinfoldModel
import PinfoldPolicy
import PinfoldSupply
import PinfoldTelemetry

/// Says once for each policy, in log and audit, that it expired while it was in force, and that the clock was set back.
/// Lives on the control loop.
struct PolicyWatch {
  /// Seconds that a clock may be set back without a word: clocks are kept right by small steps.
  private static let tolerance: Int64 = 60

  private var said: UInt64?
  private var isBehind = false

  /// Looks at the policy in force; to be called now and then. Answers the end of the policy that is now seen to be over.
  mutating func look(_ services: Services, at now: Timestamp) -> Timestamp? {
    let rules = services.rules.current
    lookAtClock(services, now, floor: rules.clockFloor.time)
    guard let document = rules.policy.document, max(now, rules.clockFloor.time) >= document.expiresAt,
      said != document.version
    else { return nil }
    said = document.version
    let fields: [LogEvent.Field] = [
      .init("expired", .text(document.expiresAt.text)), .init("policy", .unsigned(document.version)),
    ]
    services.log.write(.error, "the policy expired: its hosts are blocked", fields)
    services.audit.record(AuditRecord(.policyExpired, fields))
    return document.expiresAt
  }

  private mutating func lookAtClock(_ services: Services, _ now: Timestamp, floor: Timestamp) {
    let wasBehind = isBehind
    isBehind = now.seconds + Self.tolerance < floor.seconds
    guard isBehind, !wasBehind else { return }
    services.log.write(
      .warning, "clock", [.init("warning", .text(PolicyKeeper.warning(ofClock: now, before: floor)))])
  }
}
