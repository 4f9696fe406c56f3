import PinfoldConfig
import PinfoldModel
import PinfoldPolicy
import PinfoldServer

/// `pinfold explain`: what the policy decides about a host, and why.
enum ExplainCommand: Subcommand {
  static let user = OptionSyntax(
    long: "--user", value: "NAME",
    help: "the user of the proxy to decide for (default: a client of this\nmachine without credentials)")

  static let syntax = CommandSyntax(
    name: "explain", summary: "Say what the policy decides about a host, and why",
    usage: ["[-c FILE] [--user NAME] HOST[:PORT]"],
    options: [.config, user],
    operands: [OperandSyntax(name: "HOST[:PORT]", help: "as in a CONNECT line (default port: 443)")],
    details: """
      Prints "key: value" lines: host, rule, source, pins, expires, mode, tls13, and a line of steps for
      each step of the decision. Policies and pins of a server are those fetched before: nothing is
      connected to. The exit status is 1 when the host is blocked.
      """)

  static func run(_ arguments: Arguments, console: Console) throws(CommandFailure) -> ExitCode {
    let text = arguments.operands[0]
    guard let authority = DomainNames.authority(text, defaultPort: 443) else {
      throw .usage(
        "explain: \(quoted(text)) is no host; right would be api.example.com, 192.0.2.1:8443 or [2001:db8::1]:443",
        help: "pinfold explain --help")
    }
    let file = try ConfigurationFile(arguments)
    let loaded = try LoadedPolicy(file, fetches: false)
    for refusal in loaded.refusals { console.complain("refused: \(refusal)") }
    let user = arguments[user]
    var (decision, steps) = loaded.snapshot.explain(authority, at: loaded.now, user: user)
    CachedPinLookup(file.configuration, loaded).amend(&decision, &steps)
    TrustedKeyLookup(configuration: file.configuration).amend(&decision, &steps)
    let suspensions = KeptSuspensions(file.configuration, loaded.snapshot, of: decision)
    steps += suspensions.steps(for: user)
    if suspensions.concern(user) { decision = decision.suspended() }
    DestinationLookup(file.configuration).amend(&decision, &steps)
    let report = DecisionReport(decision, steps: steps)
    for line in report.lines { console.line(line) }
    return report.isBlocked ? .failed : .good
  }
}

/// A decision as `explain` shows it.
struct DecisionReport {
  let lines: [String]
  /// Whether a tunnel to this host is refused before any handshake.
  let isBlocked: Bool

  init(_ decision: Decision, steps: [String]) {
    let isRefused = if case .block = decision.action { true } else { !decision.portAllowed }
    isBlocked = isRefused
    let pins = decision.pins.entries.map(\.pin.text)
    lines =
      [
        "host: \(decision.authority.text)",
        "rule: \(decision.rulePattern ?? "none")",
        "source: \(decision.source.rawValue)",
        "pins: \(pins.isEmpty ? "none" : pins.joined(separator: " "))",
        "expires: \(decision.expiresAt?.text ?? "never")",
        "mode: \(isRefused ? EnforcementState.blocked.rawValue : decision.state.rawValue)",
        "tls13: \(decision.tls13.rawValue)",
      ] + steps.map { "steps: \($0)" }
  }
}
