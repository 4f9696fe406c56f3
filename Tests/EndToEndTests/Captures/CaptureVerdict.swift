/// The policy under which a capture is played.
struct CapturePolicy: Sendable {
  enum Pin: Sendable { case leaf, certificate, other }
  enum Session: Sendable {
    /// Nothing is known of it; `tls.resumption` is `refuse` where there is a key log, and `probe` where there is none.
    case unknown
    /// The capture's pair, a full handshake, was played before.
    case known
  }

  var pin = Pin.leaf
  /// `key_log`, `deny`, or `probe` without a key log beside it.
  var tls13 = "key_log"
  var verifyChain = true
  var mayMissName = false
  var session = Session.unknown
}

/// What the facts of a capture call for.
struct CaptureVerdict: Equatable, Sendable {
  /// What the client may have got of the upstream.
  enum Passed: Equatable, Sendable {
    /// Every byte, both ways.
    case everything
    /// The upstream's own alert.
    case alert
    /// Under a key log the ServerHello record, which the app needs to log its secret; a retry before it.
    case serverHello
    /// Nothing but, where the upstream asked for one, the HelloRetryRequest.
    case nothing
  }

  var reason: String
  var method: String
  var passed: Passed
  /// Whether the hello may have gone to the upstream.
  var reachesUpstream = true

  /// One line of the table: the first whose condition holds decides.
  private struct Rule: Sendable {
    let holds: @Sendable (CaptureFacts, CapturePolicy) -> Bool
    let verdict: @Sendable (CaptureFacts, CapturePolicy) -> CaptureVerdict
  }

  private static func refused(
    _ reason: String, _ method: String = "none", _ passed: Passed = .nothing, reachesUpstream: Bool = true,
    when holds: @escaping @Sendable (CaptureFacts, CapturePolicy) -> Bool
  ) -> Rule {
    Rule(holds: holds) { _, _ in
      CaptureVerdict(reason: reason, method: method, passed: passed, reachesUpstream: reachesUpstream)
    }
  }

  /// Refused after the server's flight was read by its own bytes: in the clear, or by the key log behind the ServerHello.
  private static func judged(_ reason: String, when holds: @escaping @Sendable (CaptureFacts, CapturePolicy) -> Bool)
    -> Rule
  {
    Rule(holds: holds) { facts, _ in
      let isTLS13 = facts.version == "TLS1.3"
      return CaptureVerdict(
        reason: reason, method: isTLS13 ? "key_log" : "in_band", passed: isTLS13 ? .serverHello : .nothing)
    }
  }

  private static func shows(_ outcomes: String...) -> @Sendable (CaptureFacts, CapturePolicy) -> Bool {
    { facts, _ in outcomes.contains(facts.outcome) }
  }

  /// DESIGN §2, §3 and §8 as a table over facts.json. Nothing here looks at bytes or at the program.
  private static let table: [Rule] = [
    // What the client opens with. The hello is judged before anything goes up.
    refused("not_tls", reachesUpstream: false) { facts, _ in facts.clientSpeaks != nil },
    refused("not_tls", reachesUpstream: false) { facts, _ in facts.clientHello?.legacyVersion == "0x0300" },
    refused("sni_missing", reachesUpstream: false) { facts, policy in facts.sni == nil && !policy.mayMissName },
    // What the server answers with instead of a handshake.
    refused("not_tls", when: shows("not_tls_server")),
    refused("upstream_unreachable", "none", .alert, when: shows("alert")),
    // RFC 8446 §4.1.3: the mark of a server that could have done better than it does here.
    refused("malformed_handshake") { facts, _ in
      facts.downgradeSentinel == true && facts.clientHello?.supportedVersions.contains("0x0304") == true
    },
    // Suites that prove no key: none shown, or one that signs nothing a pin could rest on.
    refused("anonymous_suite", "in_band", when: shows("no_certificate")),
    refused("key_not_proven") { facts, _ in
      facts.outcome == "full" && (facts.keyExchange == "DHE_DSS" || facts.keyProof == "none")
    },
    judged("key_not_proven") { facts, _ in facts.outcome == "full" && facts.signatureVerified == false },
    refused("tls13_denied") { facts, policy in facts.version == "TLS1.3" && policy.tls13 == "deny" },
    // A recorded answer proves nothing to a probe: no secret of the twin's opens it.
    refused("key_not_proven", "probe") { facts, policy in policy.tls13 == "probe" && facts.version == "TLS1.3" },
    refused("probe_failed", "probe") { facts, policy in policy.tls13 == "probe" && facts.outcome == "resumed" },
    // A resumed session shows no key. What is known of it is judged by the key of its full handshake.
    Rule(holds: shows("resumed", "tls13_no_keylog")) { _, policy in
      switch (policy.session, policy.pin) {
      case (.known, .leaf), (.known, .certificate):
        CaptureVerdict(reason: "pin_match", method: "resumption", passed: .everything)
      case (.known, .other): CaptureVerdict(reason: "pin_mismatch", method: "resumption", passed: .nothing)
      case (.unknown, _): CaptureVerdict(reason: "resumption_unverified", method: "resumption", passed: .nothing)
      }
    },
    // A full handshake whose key is proven: chain, then name, then pins. A raw public key has neither chain nor name.
    judged("chain_invalid") { facts, policy in policy.verifyChain && facts.chainVerifies != true },
    judged("name_mismatch") { facts, policy in policy.verifyChain && facts.nameMatches != true },
    judged("pin_mismatch") { _, policy in policy.pin == .other },
    Rule(holds: { _, _ in true }) { facts, _ in
      CaptureVerdict(
        reason: "pin_match", method: facts.version == "TLS1.3" ? "key_log" : "in_band", passed: .everything)
    },
  ]

  /// The verdict that a capture's facts call for under a policy.
  static func called(for facts: CaptureFacts, under policy: CapturePolicy) -> CaptureVerdict {
    for rule in table where rule.holds(facts, policy) { return rule.verdict(facts, policy) }
    return CaptureVerdict(reason: "no rule", method: "none", passed: .nothing)
  }
}
