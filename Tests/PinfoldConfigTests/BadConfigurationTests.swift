import PinfoldConfig
import PinfoldModel
import PinfoldPolicy
import Testing

/// One file per mistake in `Fixtures/config`, with everything Pinfold says about it.
@Suite struct BadConfigurationTests {
  @Test("A configuration with a mistake is refused with its place and what would be right", arguments: rows)
  func isRefused(_ row: BadFile) throws {
    let bytes = try Fixture.bytes("config/\(row.file).json5")
    let errors = try #require(throws: FileErrors.self) {
      _ = try Configuration.parse(bytes, file: "pinfold.json5", directory: "/etc/pinfold")
    }
    #expect(errors.text == row.message)
  }

  @Test func `every file of the folder has its row`() throws {
    #expect(try Fixture.names("config") == Self.rows.map { $0.file + ".json5" }.sorted())
  }

  static let rows: [BadFile] = [
    BadFile(
      "admin-listen",
      """
      pinfold.json5: admin: [::1]:9000 is an address of "listen" too; right would be another port
      """),
    BadFile(
      "admin-socket",
      """
      pinfold.json5:1:10: admin: "unix:/run/admin.sock" is not an address such as "127.0.0.1:9128" or "[::1]:9128"
      """),
    BadFile(
      "allow-host-bits",
      """
      pinfold.json5:1:27: destinations.allow[0]: "10.0.0.1/8" is not a CIDR block such as "10.0.0.0/8" or "fd00::/8"
      """),
    BadFile(
      "app-version",
      """
      pinfold.json5:1:28: instance.app_version: "one" is not a version such as "1.5.0"
      """),
    BadFile(
      "builtin-pin-none",
      """
      pinfold.json5:1:48: policy.builtin_pins["api.example.com"]: expected at least one pin
      """),
    BadFile(
      "builtin-pin-short",
      """
      pinfold.json5:1:49: policy.builtin_pins["api.example.com"][0]: "sha256/abc" is not a pin: "sha256/" or "cert-sha256/" and the SHA-256 as 44 characters of base64 or 64 hex digits
      """),
    BadFile(
      "builtin-pin-twice",
      """
      pinfold.json5:3:3: policy.builtin_pins["API.example.com."]: api.example.com has builtin pins already
      """),
    BadFile(
      "builtin-pin-wildcard",
      """
      pinfold.json5:1:29: policy.builtin_pins["*.example.com"]: "*.example.com": expected one host, without a wildcard
      """),
    BadFile(
      "clients-prefix",
      """
      pinfold.json5:1:23: access.clients[0]: "10.0.0.0/33" is not a CIDR block such as "10.0.0.0/8" or "fd00::/8"
      """),
    BadFile(
      "deny-name",
      """
      pinfold.json5:1:26: destinations.deny[0]: "localhost" is not a CIDR block such as "10.0.0.0/8" or "fd00::/8"
      """),
    BadFile(
      "duplicate-key",
      """
      pinfold.json5:3:3: the member "workers" is there twice
      """),
    BadFile(
      "empty",
      """
      pinfold.json5:1:1: expected a value, found the end of the text
      """),
    BadFile(
      "limit-zero",
      """
      pinfold.json5:1:32: limits.handshake_seconds: expected a whole number from 1 to 300, found 0
      """),
    BadFile(
      "listen-empty",
      """
      pinfold.json5:1:11: listen: expected at least one address
      """),
    BadFile(
      "listen-name",
      """
      pinfold.json5:1:12: listen[0]: "localhost:3128" is not an address such as "127.0.0.1:3128", "[::1]:3128" or "unix:/run/pinfold/proxy.sock"
      """),
    BadFile(
      "listen-not-a-list",
      """
      pinfold.json5:1:11: listen: expected a list of addresses, found a string
      """),
    BadFile(
      "listen-without-port",
      """
      pinfold.json5:1:12: listen[0]: "127.0.0.1" is not an address such as "127.0.0.1:3128", "[::1]:3128" or "unix:/run/pinfold/proxy.sock"
      """),
    BadFile(
      "log-format",
      """
      pinfold.json5:1:18: log.format: "JSON" is not one of "auto", "json", "text"; did you mean "json"?
      """),
    BadFile(
      "log-level",
      """
      pinfold.json5:1:17: log.level: "verbose" is not one of "debug", "info", "warning", "error"
      """),
    BadFile(
      "missing-comma",
      """
      pinfold.json5:3:3: expected "," or "}", found "a"
      """),
    BadFile(
      "not-an-object",
      """
      pinfold.json5:1:1: expected an object, found a list
      """),
    BadFile(
      "nul-in-path",
      """
      pinfold.json5:1:14: state_dir: a NUL character inside a string
      """),
    BadFile(
      "octal-number",
      """
      pinfold.json5:1:12: a number with a leading zero
      """),
    BadFile(
      "pin-service-domain-port",
      """
      pinfold.json5:1:60: pin_services[0].domains[0]: a pin service speaks for hosts on every port: leave the port out
      """),
    BadFile(
      "pin-service-domain-twice",
      """
      pinfold.json5:3:63: pin_services[1].domains[1]: *.example.com belongs to pin_services[0] already: a host has one service
      """),
    BadFile(
      "pin-service-lifetimes",
      """
      pinfold.json5:2:42: pin_services[0].max_ttl_seconds: expected at least min_ttl_seconds, which is 600
      """),
    BadFile(
      "pin-service-no-keys",
      """
      pinfold.json5:1:99: pin_services[0].trusted_keys: expected at least one
      """),
    BadFile(
      "pin-service-suffix",
      """
      pinfold.json5:1:67: pin_services[0].domains[0]: "*.co.uk" is no host pattern: "co.uk" is a public suffix under which strangers register names: name a domain below it
      """),
    BadFile(
      "pin-service-url",
      """
      pinfold.json5:1:28: pin_services[0].urls[0]: "ftp://pins.example.com" is not a URL such as "https://pins.example.com/v1/pins"
      """),
    BadFile(
      "pin-service-without-urls",
      """
      pinfold.json5:1:19: pin_services[0]: "urls" is missing: where records are fetched
      """),
    BadFile(
      "policy-bundle-http",
      """
      pinfold.json5:1:23: policy.bundles[0]: "http://policy.example.com/policy.signed.json" is not a file or an https:// URL such as "https://policy.example.com/policy.signed.json"
      """),
    BadFile(
      "policy-bundle-size",
      """
      pinfold.json5:1:31: policy.max_bundle_bytes: expected a whole number from 1024 to 4294967296, found 10
      """),
    BadFile(
      "policy-bundle-url",
      """
      pinfold.json5:1:23: policy.bundles[0]: "https://user@policy.example.com/policy" is not a file or an https:// URL such as "https://policy.example.com/policy.signed.json"
      """),
    BadFile(
      "policy-bundles-without-keys",
      """
      pinfold.json5:1:22: policy.trusted_keys: bundles need at least one trusted key: pinfold keygen makes one
      """),
    BadFile(
      "policy-key-twice",
      """
      pinfold.json5:1:36: policy.trusted_keys[1]: the same key is there twice
      """),
    BadFile(
      "policy-more-signatures-than-keys",
      """
      pinfold.json5:1:79: policy.required_signatures: 2 signatures cannot come from 1 trusted keys
      """),
    BadFile(
      "policy-no-signature",
      """
      pinfold.json5:1:34: policy.required_signatures: expected a whole number from 1 to 64, found 0
      """),
    BadFile(
      "policy-not-an-object",
      """
      pinfold.json5:1:11: policy: expected an object, found a string
      """),
    BadFile(
      "policy-refresh",
      """
      pinfold.json5:1:30: policy.refresh_seconds: expected a whole number from 1 to 86400, found 0
      """),
    BadFile(
      "port-too-large",
      """
      pinfold.json5:1:27: destinations.ports[0]: expected a whole number from 1 to 65535, found 65536
      """),
    BadFile(
      "port-zero",
      """
      pinfold.json5:1:32: destinations.ports[1]: expected a whole number from 1 to 65535, found 0
      """),
    BadFile(
      "resolve-to-a-name",
      """
      pinfold.json5:1:53: destinations.resolve["api.example.com:443"]: "localhost:8443" is not an address such as "127.0.0.1:8443"
      """),
    BadFile(
      "resolve-without-port",
      """
      pinfold.json5:1:30: destinations.resolve["api.example.com"]: "api.example.com": expected a host with its port, such as "api.example.com:443"
      """),
    BadFile(
      "audit-client-unknown",
      """
      pinfold.json5:1:20: audit.client: "adress" is not one of "hash", "address"; did you mean "address"?
      """),
    BadFile(
      "audit-file-is-directory",
      """
      pinfold.json5:1:18: audit.file: expected a file, such as "audit.jsonl"
      """),
    BadFile(
      "retention-negative",
      """
      pinfold.json5:1:28: audit.retention_days: expected a whole number from 1 to 36500, found -90
      """),
    BadFile(
      "several-mistakes",
      """
      pinfold.json5:2:12: workers: expected a whole number from 0 to 1024, found -1
      pinfold.json5:3:17: tls.tls13: "prob" is not one of "probe", "key_log", "deny"; did you mean "probe"?
      pinfold.json5:4:3: unknown key "limit"; did you mean "limits"?
      """),
    BadFile(
      "state-dir-empty",
      """
      pinfold.json5:1:14: state_dir: expected a path, found an empty string
      """),
    BadFile(
      "string-over-two-lines",
      """
      pinfold.json5:1:10: a string that is not closed on its line
      """),
    BadFile(
      "text-after-the-end",
      """
      pinfold.json5:2:1: expected the end of the text, found "{"
      """),
    BadFile(
      "tls-ca-file-number",
      """
      pinfold.json5:1:19: tls.ca_file: expected a path, found a number
      """),
    BadFile(
      "tls-resumption",
      """
      pinfold.json5:1:22: tls.resumption: "allow" is not one of "probe", "refuse"
      """),
    BadFile(
      "tls13-key-log-without-pipe",
      """
      pinfold.json5:1:17: tls.tls13: "key_log" needs tls.key_log, the path of the pipe that apps write to
      """),
    BadFile(
      "tls13-typo",
      """
      pinfold.json5:1:17: tls.tls13: "keylog" is not one of "probe", "key_log", "deny"; did you mean "key_log"?
      """),
    BadFile(
      "unclosed-comment",
      """
      pinfold.json5:2:3: a comment that is not closed by "*/"
      """),
    BadFile(
      "unclosed-object",
      """
      pinfold.json5:2:1: expected a member's name, found the end of the text
      """),
    BadFile(
      "unknown-key-without-neighbour",
      """
      pinfold.json5:1:3: unknown key "colour"
      """),
    BadFile(
      "unknown-nested-key",
      """
      pinfold.json5:3:5: tls: unknown key "reumption"; did you mean "resumption"?
      """),
    BadFile(
      "unknown-top-key",
      """
      pinfold.json5:3:3: unknown key "tsl"; did you mean "tls"?
      """),
    BadFile(
      "unpinned-typo",
      """
      pinfold.json5:1:23: policy.unpinned: "verfy" is not one of "block", "verify", "tunnel"; did you mean "verify"?
      """),
    BadFile(
      "unpinned-word",
      """
      pinfold.json5:1:23: policy.unpinned: expected one of "block", "verify", "tunnel", found true or false
      """),
    BadFile(
      "workers-fraction",
      """
      pinfold.json5:1:12: workers: expected a whole number from 0 to 1024, found 1.5
      """),
    BadFile(
      "workers-infinite",
      """
      pinfold.json5:1:12: workers: expected a whole number from 0 to 1024, found Infinity
      """),
    BadFile(
      "workers-negative",
      """
      pinfold.json5:1:12: workers: expected a whole number from 0 to 1024, found -1
      """),
    BadFile(
      "workers-text",
      """
      pinfold.json5:1:12: workers: expected a whole number from 0 to 1024, found a string
      """),
  ]
}
