import FoundationEssentials
import Testing

@testable import PinfoldCommand

/// `explain` where the record of a device's key is damaged: it has to say what the running proxy does.
@Suite struct DamagedKeyTests {
  struct Row: CustomTestStringConvertible {
    let testDescription: String
    var hosts = ""
    var more = ""
    /// Whether the record has a say.
    var isRefused = true
    /// What is shown otherwise.
    var source = "device"
    var mode = "blocked"
  }

  private static let host = "device.local:8443"

  private static let rows = [
    Row(testDescription: "a host that no rule names, where those are blocked"),
    Row(testDescription: "a host that no rule names, where those are verified", more: "unpinned: \"verify\","),
    Row(testDescription: "a host that no rule names, where those are tunnelled", more: "unpinned: \"tunnel\","),
    Row(
      testDescription: "a rule that learns keys",
      hosts: "\"device.local:8443\": { trust_on_first_use: true, verify_chain: false }", source: "policy"),
    Row(
      testDescription: "a rule that learns keys beside its own",
      hosts: "\"device.local:8443\": { pins: [\"\(PolicyFolder.pin)\"], trust_on_first_use: true }", source: "policy"),
    Row(
      testDescription: "a rule that learns keys and only reports",
      hosts: "\"device.local:8443\": { trust_on_first_use: true, verify_chain: false, mode: \"report\" }",
      source: "policy"),
    Row(
      testDescription: "a rule that does not ask for trusted keys",
      hosts: "\"device.local:8443\": { pins: [\"\(PolicyFolder.pin)\"] }", isRefused: false, source: "policy",
      mode: "enforce"),
    Row(
      testDescription: "a rule that is switched off",
      hosts: "\"device.local:8443\": { enabled: false, pins: [\"\(PolicyFolder.pin)\"] }",
      isRefused: false, source: "none", mode: "disabled"),
    Row(
      testDescription: "builtin pins", more: "builtin_pins: { \"device.local:8443\": [\"\(PolicyFolder.pin)\"] },",
      isRefused: false, source: "builtin", mode: "enforce"),
  ]

  private static func explain(_ path: String) -> Tool { Tool("explain", "-c", path, host) }

  @Test(arguments: rows) func `it shows the proxy's decision, and how to begin anew`(_ row: Row) throws {
    let place = try PolicyFolder()
    defer { try? FileManager.default.removeItem(atPath: place.scratch["state"]) }
    let hosts = row.hosts.isEmpty ? "\"api.example.com\": { pins: [\"\(PolicyFolder.pin)\"] }" : row.hosts
    #expect(try place.sign(PolicyFolder.policy(hosts: hosts)).status == .good)
    let path = try place.scratch.write(
      "pinfold.json5",
      """
      { state_dir: "state", policy: { bundles: ["policy.signed.json"], trusted_keys: ["\(place.publicKey)"], \(row.more) } }
      """)
    let payload = try place.scratch.write(
      "pairing.json",
      """
      { "version": "1", "host": "device.local", "port": 8443, "code": "271-828", "expiresAt": "2045-01-01T00:00:00Z",
        "certificateFingerprint": "\(String(repeating: "ab", count: 32))" }
      """)
    let paired = Tool("pair", "-c", path, "--offline", payload)
    #expect(paired.status == .good, "\(paired)")
    #expect(!Self.explain(path).output.contains { $0.contains("begins anew") })
    let cache = place.scratch["state"] + "/cache"
    let name = try #require(try FileManager.default.contentsOfDirectory(atPath: cache).first { $0.hasPrefix("trust-") })
    var bytes = try #require(FileManager.default.contents(atPath: "\(cache)/\(name)"))
    bytes[bytes.count - 1] ^= 1
    try bytes.write(to: URL(filePath: "\(cache)/\(name)"))

    let explained = Self.explain(path)
    #expect(explained.output.contains("source: \(row.source)"), "\(explained)")
    #expect(explained.output.contains("mode: \(row.mode)"), "\(explained)")
    let advice = "steps: refused with pins_unavailable: pinfold trust forget \(Self.host) begins anew"
    #expect(explained.output.contains(advice) == row.isRefused, "\(explained)")
    #expect(explained.output.contains { $0.contains("altered, cut off, or sealed") } == row.isRefused)
    if row.isRefused { #expect(explained.status == .failed, "\(explained)") }
    #expect(Tool("trust", "forget", "-c", path, Self.host).status == .good)
    #expect(!Self.explain(path).output.contains { $0.contains("begins anew") })
  }
}
