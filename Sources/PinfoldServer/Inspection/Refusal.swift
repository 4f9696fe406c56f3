import PinfoldLoop
import PinfoldModel
import PinfoldTLS
import PinfoldWire

/// The end of an inspection that does not allow: a verdict on its way up, thrown so that what follows a refusal cannot
/// be reached by accident.
struct Refusal: Error {
  let verdict: Verdict
  /// The upstream's own fatal alert record, which the client should read instead of ours.
  var alert: [UInt8] = []

  init(_ reason: Reason, _ detail: String = "", method: VerificationMethod = .none) {
    // A reason that allows cannot become a refusal; such a mistake has to stay a refusal.
    verdict = Verdict(reason.allows ? .internalError : reason, method: method, detail: detail)
  }

  init(_ verdict: Verdict) {
    self.verdict = verdict.allows ? Verdict(.internalError, method: verdict.method) : verdict
  }

  init(_ refusal: HandshakeRefusal, from side: StaticString, method: VerificationMethod = .none) {
    self.init(refusal.reason, "\(refusal.detail) (\(side), offset \(refusal.offset))", method: method)
  }

  /// An error while bytes of the client were awaited.
  init(client error: IOError) {
    switch error {
    case .timedOut: self.init(.handshakeTimeout, "the client sent no whole ClientHello in time")
    case .cancelled: self.init(.limitReached, "draining")
    default: self.init(.notTLS, "the client went away before its ClientHello was whole: \(error.text)")
    }
  }

  /// An error while bytes went to or came from the upstream.
  init(upstream error: IOError) {
    switch error {
    case .timedOut: self.init(.handshakeTimeout, "the upstream's flight was not whole in time")
    case .cancelled: self.init(.limitReached, "draining")
    case .hungUp: self.init(.handshakeTimeout, "the client went away before the verdict")
    case .descriptorsExhausted: self.init(.limitReached, error.text)
    default: self.init(.upstreamUnreachable, "the upstream's connection ended inside its flight: \(error.text)")
    }
  }

  /// Certificates that cannot be judged.
  init(_ error: TLSError, method: VerificationMethod) {
    switch error {
    case .unreadable, .tooLarge: self.init(.malformedHandshake, error.description, method: method)
    default: self.init(.internalError, error.description, method: method)
    }
  }
}

extension Refusal {
  /// TLS 1.3 on the app's connection, where whoever was asked before chose an older version.
  static let olderProbe = Refusal(
    .probeFailed, "probe: an older version than on the application's connection", method: .probe)
  /// TLS 1.3 on a connection that went alone, since the upstream had chosen an older version before.
  static let newerThanKnown = Refusal(
    .probeFailed, "probe: none ran beside, since the upstream chose an older version before; the next tunnel has one",
    method: .probe)
  /// The upstream took in less than the hello of the app, or of the probe beside it.
  static let helloHeldUp = Refusal(.upstreamUnreachable, "the upstream does not take in a whole ClientHello")
  /// By a rule with `tls13: "deny"`.
  static let tls13Denied = Refusal(
    .tls13Denied, "the rule demands TLS 1.2 or older and the upstream chose TLS 1.3")
  /// By a rule with `tls13: "key_log"`.
  static let keyLogSilent = Refusal(
    .handshakeTimeout, "the rule demands a key-log line and none came", method: .keyLog)
  /// By the rule or by `tls.resumption`.
  static let resumptionUnverified = Refusal(
    .resumptionUnverified, "the session was resumed, and no probe may stand in", method: .resumption)
}
