import Testing

/// A policy, an instance, and what comes of a tunnel to `api.pinfold.test`, whose server has the first identity's key.
struct PolicyRow: CustomTestStringConvertible, Sendable {
  let testDescription: String
  /// The reason of the tunnel's verdict, and the mode that `explain` and the metric show.
  var reason: String
  var mode: String
  /// A step that `explain` has to show.
  var step: String
  /// The rule: by default it pins a key that is not the server's, so that a pin that counts refuses.
  var rule: @Sendable (Certificates) -> String = { "{ pins: [\"\($0.other.pin)\"] }" }
  /// Members of `ssl_pinning_config`, of `instance` and of `policy.builtin_pins`.
  var policy = ""
  var instance = ""
  var builtin: @Sendable (Certificates) -> String = { _ in "" }
  var version = 1

  init(
    _ testDescription: String, _ reason: String, _ mode: String, step: String, policy: String = "",
    instance: String = "", version: Int = 1, builtin: @escaping @Sendable (Certificates) -> String = { _ in "" },
    rule: @escaping @Sendable (Certificates) -> String = { "{ pins: [\"\($0.other.pin)\"] }" }
  ) {
    (self.testDescription, self.reason, self.mode, self.step) = (testDescription, reason, mode, step)
    (self.policy, self.instance, self.version, self.builtin, self.rule) = (policy, instance, version, builtin, rule)
  }

  private static let serversPin: @Sendable (Certificates) -> String = {
    "\"api.pinfold.test\": [\"\($0.ecdsa.pin)\"]"
  }

  /// Nothing, then everything that switches a rule off or holds it.
  static let gates = [
    PolicyRow("a rule and nothing else is enforced", "pin_mismatch", "enforce", step: "rule api.pinfold.test"),
    PolicyRow(
      "the kill switch leaves chain and host name", "chain_verified", "disabled", step: "kill switch",
      policy: "enabled: false"),
    PolicyRow(
      "a rule can be switched off alone", "chain_verified", "disabled", step: "the rule is not enabled",
      rule: { "{ pins: [\"\($0.other.pin)\"], enabled: false }" }),
    PolicyRow(
      "an app that is too old", "chain_verified", "disabled", step: "app version 1.9 is below min_app_version 2",
      policy: #"min_app_version: "2.0""#, instance: #"app_version: "1.9.0""#),
    PolicyRow(
      "an app that is new enough", "pin_mismatch", "enforce", step: "version 2 is at least min_app_version 2",
      policy: #"min_app_version: "2.0""#, instance: #"app_version: "2""#),
    PolicyRow(
      "an app of unknown version is pinned", "pin_mismatch", "enforce", step: "version is not known",
      policy: #"min_app_version: "2.0""#),
  ]

  /// `d` falls on 40.0232 for the policy, and on 32.7496 for the rule.
  static let rollouts = [
    PolicyRow(
      "an instance outside of the share", "chain_verified", "disabled", step: "outside the rollout of 40.0 percent",
      policy: "rollout_percentage: 40", instance: #"id: "d""#),
    PolicyRow(
      "an instance inside of it", "pin_mismatch", "enforce", step: "inside the rollout of 40.1 percent",
      policy: "rollout_percentage: 40.1", instance: #"id: "d""#),
    PolicyRow(
      "with another version it is where it was", "pin_mismatch", "enforce", step: "device_id falls on 40.0232",
      policy: "rollout_percentage: 40.1", instance: #"id: "d""#, version: 2),
    PolicyRow(
      "what is not sticky is drawn for each version", "pin_mismatch", "enforce", step: "device_id falls on 26.3945",
      policy: "rollout_percentage: 27, rollout_strategy: { sticky: false }", instance: #"id: "d""#),
    PolicyRow(
      "and drawn anew", "chain_verified", "disabled", step: "device_id falls on 82.3583",
      policy: "rollout_percentage: 27, rollout_strategy: { sticky: false }", instance: #"id: "d""#, version: 2),
    PolicyRow(
      "a rule has a draw of its own: outside", "chain_verified", "disabled", step: "falls on 32.7496",
      instance: #"id: "d""#, rule: { "{ pins: [\"\($0.other.pin)\"], rollout_percentage: 32 }" }),
    PolicyRow(
      "a rule has a draw of its own: inside", "pin_mismatch", "enforce", step: "falls on 32.7496",
      instance: #"id: "d""#, rule: { "{ pins: [\"\($0.other.pin)\"], rollout_percentage: 33 }" }),
    PolicyRow(
      "by the installation's id, which is made at the start", "chain_verified", "disabled",
      step: "outside the rollout of 0.0 percent, install_id falls on",
      policy: #"rollout_percentage: 0, rollout_strategy: { seed: "install_id" }"#),
    PolicyRow(
      "by a user who is not known", "pin_mismatch", "enforce", step: "user_id is not known",
      policy: #"rollout_percentage: 0, rollout_strategy: { seed: "user_id" }"#),
    PolicyRow(
      "on the whitelist", "pin_mismatch", "enforce", step: "inside the whitelist of 2",
      policy: #"rollout_percentage: 0, rollout_strategy: { method: "whitelist", ids: ["me", "you"] }"#,
      instance: #"id: "me""#),
    PolicyRow(
      "off the whitelist", "chain_verified", "disabled", step: "outside the whitelist of 1",
      policy: #"rollout_strategy: { method: "whitelist", ids: ["you"] }"#, instance: #"id: "me""#),
    PolicyRow(
      "in the region", "pin_mismatch", "enforce", step: "inside the regions EU, UK",
      policy: #"rollout_strategy: { method: "geography", regions: ["UK", "EU"] }"#, instance: #"region: "EU""#),
    PolicyRow(
      "in another one", "chain_verified", "disabled", step: "outside the regions EU",
      policy: #"rollout_strategy: { method: "geography", regions: ["EU"] }"#, instance: #"region: "US""#),
  ]

  /// Where the pins come from, and which of them match.
  static let pins = [
    PolicyRow(
      "builtin pins stand in for a rule that is off", "pin_match", "enforce", step: "1 builtin pins",
      policy: "enabled: false", builtin: serversPin),
    PolicyRow(
      "but not for one that is on", "pin_mismatch", "enforce", step: "1 pins of the policy", builtin: serversPin),
    PolicyRow(
      "nor where the policy does not want them", "chain_verified", "disabled", step: "chain and host name",
      policy: "enabled: false, fallback: { use_builtin_pins: false }", builtin: serversPin),
    PolicyRow(
      "nor for hosts it does not list", "chain_verified", "disabled", step: "chain and host name",
      policy: #"enabled: false, fallback: { builtin_pin_hosts: ["www.pinfold.test"] }"#, builtin: serversPin),
    PolicyRow(
      "and for those it lists", "pin_match", "enforce", step: "1 builtin pins",
      policy: #"enabled: false, fallback: { builtin_pin_hosts: ["api.pinfold.test"] }"#, builtin: serversPin),
    PolicyRow(
      "builtin pins are pins: another key is refused", "pin_mismatch", "enforce", step: "1 builtin pins",
      policy: "enabled: false", builtin: { "\"api.pinfold.test\": [\"\($0.rsa.pin)\"]" }),
    PolicyRow(
      "the primary pin", "pin_match", "enforce", step: "3 pins of the policy", rule: { three($0, first: true) }),
    PolicyRow(
      "the emergency pin", "pin_match", "enforce", step: "3 pins of the policy", rule: { three($0, first: false) }),
    PolicyRow(
      "an expired rule", "pins_expired", "blocked", step: "the rule's pins expired 2021-01-01T00:00:00Z",
      rule: { "{ pins: [\"\($0.ecdsa.pin)\"], expires_at: \"2021-01-01T00:00:00Z\" }" }),
    PolicyRow(
      "an expired rule that is switched off is off", "chain_verified", "disabled", step: "kill switch",
      policy: "enabled: false",
      rule: { "{ pins: [\"\($0.ecdsa.pin)\"], expires_at: \"2021-01-01T00:00:00Z\" }" }),
  ]

  private static func three(_ certificates: Certificates, first: Bool) -> String {
    let (own, other) = (certificates.ecdsa.pin, certificates.other.pin)
    return """
      { pins: { primary: "\(first ? own : other)", backup: "\(certificates.rsa.pin)", emergency: "\(first ? other : own)" } }
      """
  }
}
