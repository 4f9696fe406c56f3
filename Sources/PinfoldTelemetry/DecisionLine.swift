package import PinfoldModel

/// The one canonical line about a CONNECT tunnel, written when it ends: everything that was decided, in one place.
///
/// Fields stand in a fixed order under fixed keys; what does not apply is left out.
package struct DecisionLine: Sendable {
  /// The request's id, also in every other line about it.
  package var id: RequestID
  /// Where the connection came from, as the operator wants it shown: an address, a pseudonym, or `unix`.
  package var client: String
  /// The authority asked for: its normal form, or the bytes received when they could not be read as one.
  package var host: LogValue
  /// The pattern of the rule that spoke for the host.
  package var rule: String?
  /// Where the pins came from, and the enforcement state: words of the policy layer.
  package var source: String?
  package var mode: String?
  /// The verdict: reason, method, detail, and the leaf's key where one was judged.
  package var verdict: Verdict
  /// Whether enforcing the pins would have refused what was let through.
  package var wouldRefuse = false
  /// The address the tunnel was connected to.
  package var upstream: SocketAddress?
  /// The kind of the probe, when one was made for this tunnel.
  package var probe: ProbeKind?
  /// Whole life of the client's connection, from when it was accepted to its end, in milliseconds.
  package var milliseconds: Double
  /// From the whole ClientHello to the verdict, in milliseconds; `nil` where no hello came.
  package var verdictMilliseconds: Double?
  /// Bytes passed on, handshake included, to the upstream and to the client.
  package var bytesUp: UInt64 = 0
  package var bytesDown: UInt64 = 0
  /// Version of the policy that decided, 0 without one.
  package var policyVersion: UInt64

  /// A line with what every tunnel has; the rest is set as it becomes known.
  package init(
    id: RequestID, client: String, host: LogValue, verdict: Verdict, milliseconds: Double, policyVersion: UInt64
  ) {
    self.id = id
    self.client = client
    self.host = host
    self.verdict = verdict
    self.milliseconds = milliseconds
    self.policyVersion = policyVersion
  }

  /// `info` for what is as it should be, `warning` for every failed verification, let through or not.
  package static func level(of verdict: Verdict) -> Severity { verdict.reason.isSuccess ? .info : .warning }

  /// The line as an event, whose message is `tunnel`.
  package var event: LogEvent {
    var fields: [LogEvent.Field] = []
    fields.reserveCapacity(20)
    fields.append(.init("id", .text(id.description)))
    fields.append(.init("client", .text(client)))
    fields.append(.init("host", host))
    if let rule { fields.append(.init("rule", .text(rule))) }
    if let source { fields.append(.init("source", .text(source))) }
    if let mode { fields.append(.init("mode", .text(mode))) }
    fields.append(.init("method", .text(verdict.method.rawValue)))
    fields.append(.init("verdict", .text(verdict.allows ? "allow" : "refuse")))
    fields.append(.init("reason", .text(verdict.reason.rawValue)))
    if wouldRefuse { fields.append(.init("would_refuse", .flag(true))) }
    if !verdict.detail.isEmpty { fields.append(.init("detail", .text(verdict.detail))) }
    if let key = verdict.leafKey { fields.append(.init("key", .text("sha256/\(key.base64)"))) }
    if let upstream { fields.append(.init("upstream", .text(upstream.text))) }
    if let probe { fields.append(.init("probe", .text(probe.rawValue))) }
    fields.append(.init("ms", .decimal(Self.rounded(milliseconds))))
    if let verdictMilliseconds { fields.append(.init("verdict_ms", .decimal(Self.rounded(verdictMilliseconds)))) }
    fields.append(.init("bytes_up", .unsigned(bytesUp)))
    fields.append(.init("bytes_down", .unsigned(bytesDown)))
    fields.append(.init("policy", .unsigned(policyVersion)))
    return LogEvent(Self.level(of: verdict), "tunnel", fields)
  }

  /// Microseconds are the last digit that means anything.
  private static func rounded(_ milliseconds: Double) -> Double { (milliseconds * 1000).rounded() / 1000 }
}
