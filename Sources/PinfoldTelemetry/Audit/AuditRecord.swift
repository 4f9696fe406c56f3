/// What an audit record is about. The raw value is the word of the record.
package enum AuditEvent: String, CaseIterable, Sendable {
  /// A CONNECT tunnel: its verdict.
  case tunnel
  case policyAccepted = "policy_accepted"
  case policyRefused = "policy_refused"
  case policyExpired = "policy_expired"
  case keysRotated = "keys_rotated"
  /// Configuration and policy were read anew.
  case reload
  /// A pin service's pins of a domain came for the first time, or changed.
  case pins
  /// The breaker alerted, suspended a rule or armed it again.
  case breaker
  /// A device's key was learnt, paired or forgotten.
  case trust
  case start
  case stop
}

/// One line of the audit file: a time, an event, and what varies as key-value pairs. What does not apply is left out.
package struct AuditRecord: Sendable {
  /// What happened.
  package var event: AuditEvent
  /// The pairs in the order in which they are written.
  package var fields: [LogEvent.Field]
  /// Whether the record has to be on disk, not only written: everything but tunnels that passed as they should.
  package var isDurable: Bool

  /// A record with these pairs; durable unless said otherwise.
  package init(_ event: AuditEvent, _ fields: [LogEvent.Field] = [], isDurable: Bool = true) {
    self.event = event
    self.fields = fields
    self.isDurable = isDurable
  }

  /// The line with its newline: one JSON object, ASCII only, exactly one newline, at its end. Whatever a peer wrote is
  /// escaped, and cut where it is longer than any honest value.
  package func render(at time: LogTime) -> [UInt8] {
    var output: [UInt8] = []
    output.reserveCapacity(512)
    LogText.append("{\"time\":\"\(time.text)\",\"event\":\"\(event.rawValue)\"", to: &output)
    for field in fields {
      output.append(0x2c)
      LogText.appendJSON(field.key.description, to: &output)
      output.append(0x3a)
      field.value.appendJSON(to: &output)
    }
    output.append(contentsOf: [0x7d, 0x0a])
    return output
  }
}
