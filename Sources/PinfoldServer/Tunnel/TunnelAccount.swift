import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldTelemetry
import PinfoldWire

/// What is written down about one tunnel, filled in as it goes; at its end it becomes the decision line.
struct TunnelAccount: Sendable {
  let id: RequestID
  let client: SocketAddress?
  let started: Deadline
  /// What the connection counts as; its worker changes it.
  var place = TunnelPlace.none
  /// The user of the proxy, where credentials are asked for.
  var user: String?
  var authority: Authority?
  var decision: Decision?
  var upstream: SocketAddress?
  var probe: ProbeKind?
  /// When the client's first hello was whole, and when the verdict was there.
  var greeted: Deadline?
  var judged: Deadline?
  var verdict = Verdict(.internalError)
  var up: UInt64 = 0
  var down: UInt64 = 0
  /// What kept pins away, for the line of a refusal; the client is not told.
  var obstacle: String?
  /// The record version an alert to this client has to have.
  var alertVersion = TLSVersion.tls12
  /// Whether the client left before it asked for anything: then there is nothing to account for.
  var isSilent = false

  init(id: RequestID, client: SocketAddress?, started: Deadline) {
    self.id = id
    self.client = client
    self.started = started
  }

  /// Who the client is to the breaker, which keeps one client from deciding for another.
  var identity: ClientIdentity { ClientIdentity(user: user, address: client?.address) }

  /// The `host` label: hosts that no rule speaks of share one.
  var hostLabel: HostLabel {
    guard let decision, decision.isPinned else { return .unpinned }
    return .pinned(decision.authority.host.text)
  }

  /// From the whole ClientHello to the verdict, in nanoseconds; `nil` where either is missing. How long a client takes to
  /// begin says nothing about the proxy.
  var verdictNanoseconds: UInt64? {
    guard let greeted, let judged else { return nil }
    return judged.nanoseconds &- greeted.nanoseconds
  }

  /// The line for the log, written at `now`.
  func line(at now: Deadline) -> DecisionLine {
    let host: LogValue = authority.map { .text($0.text) } ?? .text("")
    var line = DecisionLine(
      id: id, client: client?.text ?? "unix", host: host, verdict: verdict,
      milliseconds: Self.milliseconds(now.nanoseconds &- started.nanoseconds),
      policyVersion: decision?.policyVersion ?? 0)
    line.rule = decision?.rulePattern
    line.source = decision?.source.rawValue
    line.mode = decision?.state.rawValue
    line.wouldRefuse = verdict.allows && !verdict.reason.isSuccess
    line.upstream = upstream
    line.probe = probe
    line.verdictMilliseconds = verdictNanoseconds.map(Self.milliseconds)
    line.bytesUp = up
    line.bytesDown = down
    return line
  }

  private static func milliseconds(_ nanoseconds: UInt64) -> Double { Double(nanoseconds) / 1e6 }
}
