import PinfoldConfig
import PinfoldModel
import PinfoldPolicy
import Testing

/// One file per mistake in `Fixtures/policy`, with everything Pinfold says about it.
@Suite struct BadPolicyTests {
  @Test("A policy document with a mistake is refused with its place and what would be right", arguments: rows)
  func isRefused(_ row: BadFile) throws {
    let bytes = try Fixture.bytes("policy/\(row.file).json5")
    let errors = try #require(throws: FileErrors.self) {
      _ = try PolicyDocument(reading: bytes[...], file: "policy.json5")
    }
    #expect(errors.text == row.message)
  }

  @Test func `every file of the folder has its row`() throws {
    #expect(try Fixture.names("policy") == Self.rows.map { $0.file + ".json5" }.sorted())
  }

  static let rows: [BadFile] = [
    BadFile(
      "chain-match-without-chain",
      """
      policy.json5:5:26: ssl_pinning_config.hosts["api.example.com"]: match "chain" needs a chain that was verified: drop "verify_chain": false or match the leaf
      """),
    BadFile(
      "config-a-list",
      """
      policy.json5:1:106: ssl_pinning_config: expected an object, found a list
      """),
    BadFile(
      "control-characters",
      """
      policy.json5:1:3: unknown key "ver\\u{a}sion\\u{1b}[31m"
      """),
    BadFile(
      "empty-object",
      """
      policy.json5:1:1: "version" is missing
      policy.json5:1:1: "issued_at" is missing
      policy.json5:1:1: "expires_at" is missing
      policy.json5:1:1: "ssl_pinning_config" is missing
      """),
    BadFile(
      "expires-before-issued",
      """
      policy.json5:1:62: expires_at: expected a time after issued_at
      """),
    BadFile(
      "issued-after-expiry",
      """
      policy.json5:1:62: issued_at: expected a time before expires_at
      """),
    BadFile(
      "fallback-host",
      """
      policy.json5:5:37: ssl_pinning_config.fallback.builtin_pin_hosts[0]: "*.example.com": expected one host, without a wildcard
      """),
    BadFile(
      "fallback-host-port",
      """
      policy.json5:5:37: ssl_pinning_config.fallback.builtin_pin_hosts[0]: a host's builtin pins stand in on every port: leave the port out
      """),
    BadFile(
      "hosts-a-list",
      """
      policy.json5:4:12: ssl_pinning_config.hosts: expected an object from hosts to rules, found a list
      """),
    BadFile(
      "issued-at-date-only",
      """
      policy.json5:1:26: issued_at: "2026-11-21" is not a time such as "2026-11-21T00:00:00Z" (RFC 3339)
      """),
    BadFile(
      "keys-empty",
      """
      policy.json5:3:25: trusted_keys.keys: expected 1 to 64 keys, found 0
      """),
    BadFile(
      "keys-missing",
      """
      policy.json5:3:17: trusted_keys: "keys" is missing: whose signatures count from this policy on
      """),
    BadFile(
      "keys-no-threshold",
      """
      policy.json5:3:17: trusted_keys: "required_signatures" is missing: how many of the keys have to sign
      """),
    BadFile(
      "keys-not-an-object",
      """
      policy.json5:3:17: trusted_keys: expected an object, found a list
      """),
    BadFile(
      "keys-threshold",
      """
      policy.json5:3:53: trusted_keys.required_signatures: 2 signatures cannot come from 1 keys
      """),
    BadFile(
      "keys-twice",
      """
      policy.json5:3:31: trusted_keys.keys[1]: the same key is there twice
      """),
    BadFile(
      "keys-unknown-key",
      """
      policy.json5:3:17: trusted_keys: "required_signatures" is missing: how many of the keys have to sign
      policy.json5:3:32: trusted_keys: unknown key "required_signature"; did you mean "required_signatures"?
      """),
    BadFile(
      "match-unknown",
      """
      policy.json5:5:98: ssl_pinning_config.hosts["api.example.com"].match: "root" is not one of "leaf", "chain"
      """),
    BadFile(
      "min-app-version",
      """
      policy.json5:5:22: ssl_pinning_config.min_app_version: expected a version such as "1.5.0", found a number
      """),
    BadFile(
      "mode-typo",
      """
      policy.json5:5:97: ssl_pinning_config.hosts["api.example.com"].mode: "reprot" is not one of "enforce", "report"; did you mean "report"?
      """),
    BadFile(
      "monitoring-samples",
      """
      policy.json5:5:32: ssl_pinning_config.monitoring.min_samples: expected a whole number from 1 to 1000000, found 0
      """),
    BadFile(
      "monitoring-threshold",
      """
      policy.json5:5:38: ssl_pinning_config.monitoring.failure_threshold: expected a number from 0 to 100, found 120
      """),
    BadFile(
      "monitoring-unknown-key",
      """
      policy.json5:5:19: ssl_pinning_config.monitoring: unknown key "autodisable"; did you mean "auto_disable"?
      """),
    BadFile(
      "no-hosts",
      """
      policy.json5:3:23: ssl_pinning_config: "hosts" is missing
      """),
    BadFile(
      "pattern-bad-a-label",
      """
      policy.json5:5:7: ssl_pinning_config.hosts["xn--a.example.com"]: "xn--a.example.com" is no host pattern: a host is a domain name of letters, digits, "-" and "_" without empty labels, or an IP address (IPv6 in brackets before a port)
      """),
    BadFile(
      "pattern-deep-suffix",
      """
      policy.json5:5:7: ssl_pinning_config.hosts["**.com"]: "**.com" is no host pattern: "com" is a public suffix under which strangers register names: name a domain below it
      """),
    BadFile(
      "pattern-empty-label",
      """
      policy.json5:5:7: ssl_pinning_config.hosts["api..example.com"]: "api..example.com" is no host pattern: a host is a domain name of letters, digits, "-" and "_" without empty labels, or an IP address (IPv6 in brackets before a port)
      """),
    BadFile(
      "pattern-empty",
      """
      policy.json5:5:7: ssl_pinning_config.hosts[""]: expected a host, found an empty string
      """),
    BadFile(
      "pattern-idn-suffix",
      """
      policy.json5:5:7: ssl_pinning_config.hosts["*.рф"]: "*.рф" is no host pattern: "xn--p1ai" is a public suffix under which strangers register names: name a domain below it
      """),
    BadFile(
      "pattern-numeric",
      """
      policy.json5:5:7: ssl_pinning_config.hosts["192.168.1"]: "192.168.1" is no host pattern: a host is a domain name of letters, digits, "-" and "_" without empty labels, or an IP address (IPv6 in brackets before a port)
      """),
    BadFile(
      "pattern-path",
      """
      policy.json5:5:7: ssl_pinning_config.hosts["api.example.com/v1"]: "api.example.com/v1" is no host pattern: a host is a domain name of letters, digits, "-" and "_" without empty labels, or an IP address (IPv6 in brackets before a port)
      """),
    BadFile(
      "pattern-port-text",
      """
      policy.json5:5:7: ssl_pinning_config.hosts["api.example.com:https"]: "api.example.com:https" is no host pattern: a port is 1 to 65535 in decimal
      """),
    BadFile(
      "pattern-port-zero",
      """
      policy.json5:5:7: ssl_pinning_config.hosts["api.example.com:0"]: "api.example.com:0" is no host pattern: a port is 1 to 65535 in decimal
      """),
    BadFile(
      "pattern-star-alone",
      """
      policy.json5:5:7: ssl_pinning_config.hosts["*"]: "*" is no host pattern: "*" stands only at the front, as "*." (one label) or "**." (any depth and the name itself)
      """),
    BadFile(
      "pattern-star-in-label",
      """
      policy.json5:5:7: ssl_pinning_config.hosts["api-*.example.com"]: "api-*.example.com" is no host pattern: "*" stands only at the front, as "*." (one label) or "**." (any depth and the name itself)
      """),
    BadFile(
      "pattern-star-inside",
      """
      policy.json5:5:7: ssl_pinning_config.hosts["api.*.example.com"]: "api.*.example.com" is no host pattern: "*" stands only at the front, as "*." (one label) or "**." (any depth and the name itself)
      """),
    BadFile(
      "pattern-suffix",
      """
      policy.json5:5:7: ssl_pinning_config.hosts["com"]: "com" is no host pattern: "com" is a public suffix under which strangers register names: name a domain below it
      """),
    BadFile(
      "pattern-three-stars",
      """
      policy.json5:5:7: ssl_pinning_config.hosts["***.example.com"]: "***.example.com" is no host pattern: "*" stands only at the front, as "*." (one label) or "**." (any depth and the name itself)
      """),
    BadFile(
      "pattern-twice-idn",
      """
      policy.json5:6:7: ssl_pinning_config.hosts["xn--bcher-kva.example"]: xn--bcher-kva.example has a rule already
      """),
    BadFile(
      "pattern-twice",
      """
      policy.json5:6:7: ssl_pinning_config.hosts["API.Example.COM."]: api.example.com has a rule already
      """),
    BadFile(
      "pattern-url",
      """
      policy.json5:5:7: ssl_pinning_config.hosts["https://api.example.com"]: "https://api.example.com" is no host pattern: a host is a domain name of letters, digits, "-" and "_" without empty labels, or an IP address (IPv6 in brackets before a port)
      """),
    BadFile(
      "pattern-wildcard-address",
      """
      policy.json5:5:7: ssl_pinning_config.hosts["*.192.168.1.1"]: "*.192.168.1.1" is no host pattern: a wildcard stands before a domain name, not before an IP address
      """),
    BadFile(
      "pattern-wildcard-suffix",
      """
      policy.json5:5:7: ssl_pinning_config.hosts["*.co.uk"]: "*.co.uk" is no host pattern: "co.uk" is a public suffix under which strangers register names: name a domain below it
      """),
    BadFile(
      "pin-not-canonical",
      """
      policy.json5:5:35: ssl_pinning_config.hosts["api.example.com"].pins[0]: "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB=" is not a pin: "sha256/" or "cert-sha256/" and the SHA-256 as 44 characters of base64 or 64 hex digits
      """),
    BadFile(
      "pin-sha1",
      """
      policy.json5:5:35: ssl_pinning_config.hosts["api.example.com"].pins[0]: "sha1/AAAAAAAAAAAAAAAAAAAAAAAAAAA=" is not a pin: "sha256/" or "cert-sha256/" and the SHA-256 as 44 characters of base64 or 64 hex digits
      """),
    BadFile(
      "pin-short",
      """
      policy.json5:5:90: ssl_pinning_config.hosts["api.example.com"].pins[1]: "sha256/AAAA" is not a pin: "sha256/" or "cert-sha256/" and the SHA-256 as 44 characters of base64 or 64 hex digits
      """),
    BadFile(
      "pin-without-prefix",
      """
      policy.json5:5:35: ssl_pinning_config.hosts["api.example.com"].pins[0]: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=" is not a pin: "sha256/" or "cert-sha256/" and the SHA-256 as 44 characters of base64 or 64 hex digits
      """),
    BadFile(
      "rollout-over-100",
      """
      policy.json5:5:111: ssl_pinning_config.hosts["api.example.com"].rollout_percentage: expected a number from 0 to 100, found 101
      """),
    BadFile(
      "rule-expiry",
      """
      policy.json5:5:103: ssl_pinning_config.hosts["api.example.com"].expires_at: "tomorrow" is not a time such as "2026-11-21T00:00:00Z" (RFC 3339)
      """),
    BadFile(
      "rule-not-an-object",
      """
      policy.json5:5:26: ssl_pinning_config.hosts["api.example.com"]: expected an object, found a list
      """),
    BadFile(
      "rule-pin-role",
      """
      policy.json5:5:100: ssl_pinning_config.hosts["api.example.com"].pins: unknown key "secondary"
      """),
    BadFile(
      "rule-pins-text",
      """
      policy.json5:5:34: ssl_pinning_config.hosts["api.example.com"].pins: expected a list of pins, or an object with "primary", "backup" and "emergency", found a string
      """),
    BadFile(
      "rule-unknown-key",
      """
      policy.json5:5:91: ssl_pinning_config.hosts["api.example.com"]: unknown key "verify_chains"; did you mean "verify_chain"?
      """),
    BadFile(
      "rule-with-empty-pin-object",
      """
      policy.json5:5:34: ssl_pinning_config.hosts["api.example.com"].pins: a rule needs "pins", at least one
      """),
    BadFile(
      "rule-with-empty-pins",
      """
      policy.json5:5:34: ssl_pinning_config.hosts["api.example.com"].pins: a rule needs "pins", at least one
      """),
    BadFile(
      "rule-without-pins",
      """
      policy.json5:5:26: ssl_pinning_config.hosts["api.example.com"]: a rule needs "pins", at least one
      """),
    BadFile(
      "sni-unknown",
      """
      policy.json5:5:96: ssl_pinning_config.hosts["api.example.com"].sni: "none" is not one of "required", "optional"
      """),
    BadFile(
      "strategy-geography-without-regions",
      """
      policy.json5:5:23: ssl_pinning_config.rollout_strategy: method "geography" needs "regions", a list of regions
      """),
    BadFile(
      "strategy-method",
      """
      policy.json5:5:33: ssl_pinning_config.rollout_strategy.method: "random" is not one of "percentage", "whitelist", "geography"
      """),
    BadFile(
      "strategy-seed",
      """
      policy.json5:5:31: ssl_pinning_config.rollout_strategy.seed: "session_id" is not one of "device_id", "user_id", "install_id"
      """),
    BadFile(
      "strategy-whitelist-without-ids",
      """
      policy.json5:5:23: ssl_pinning_config.rollout_strategy: method "whitelist" needs "ids", a list of identities
      """),
    BadFile(
      "tls13-unknown",
      """
      policy.json5:5:98: ssl_pinning_config.hosts["api.example.com"].tls13: "allow" is not one of "probe", "key_log", "deny"
      """),
    BadFile(
      "too-deep",
      """
      policy.json5:5:62: nested deeper than 32 levels
      """),
    BadFile(
      "too-many-pins",
      """
      policy.json5:5:34: ssl_pinning_config.hosts["api.example.com"].pins: more than 64 pins
      """),
    BadFile(
      "two-bad-rules",
      """
      policy.json5:5:32: ssl_pinning_config.hosts["a.example.com"].pins: a rule needs "pins", at least one
      policy.json5:6:7: ssl_pinning_config.hosts["b..example.com"]: "b..example.com" is no host pattern: a host is a domain name of letters, digits, "-" and "_" without empty labels, or an IP address (IPv6 in brackets before a port)
      """),
    BadFile(
      "unknown-config-key",
      """
      policy.json5:4:5: ssl_pinning_config: unknown key "enable"; did you mean "enabled"?
      """),
    BadFile(
      "unknown-top-key",
      """
      policy.json5:3:3: unknown key "versoin"; did you mean "version"?
      """),
    BadFile(
      "verify-chain-text",
      """
      policy.json5:5:105: ssl_pinning_config.hosts["api.example.com"].verify_chain: expected true or false, found a string
      """),
    BadFile(
      "version-text",
      """
      policy.json5:1:12: version: expected a whole number from 1 to 9007199254740991, found a string
      """),
    BadFile(
      "version-twice",
      """
      policy.json5:1:15: the member "version" is there twice
      """),
    BadFile(
      "version-zero",
      """
      policy.json5:1:12: version: expected a whole number from 1 to 9007199254740991, found 0
      """),
  ]
}
