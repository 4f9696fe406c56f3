import Foundation
import PinfoldModel
import Testing

/// Code and papers are tested against each other: what an operator reads has to be what the program says.
@Suite struct PaperTests {
  private static let reference = "docs/reference.md"

  /// Names that dashboards and alerts rely on. They change with a major version only.
  private static let metrics: Set<String> = [
    "pinfold_verifications_total", "pinfold_verification_seconds", "pinfold_tunnels_total", "pinfold_tunnels_active",
    "pinfold_relayed_bytes_total", "pinfold_enforcement", "pinfold_breaker_trips_total", "pinfold_failure_ratio",
    "pinfold_pin_fetches_total", "pinfold_pins_expiry_timestamp_seconds", "pinfold_policy_version",
    "pinfold_policy_expiry_timestamp_seconds", "pinfold_policy_reloads_total", "pinfold_probe_total",
    "pinfold_cache_total", "pinfold_build_info",
  ]

  /// A mention elsewhere on the page is no row: what stands there is read from the first cells of tables.
  @Test("Every reason has its row in the reference, with its verdict, and no other word has one")
  func reasonsAreDocumented() throws {
    let text = try Project.text(Self.reference)
    let rows = text.matches(of: /(?m)^\| `([a-z0-9_]+)` \| (allowed|refused) \|/).map { "\($0.1) \($0.2)" }
    #expect(rows.sorted() == Reason.allCases.map { "\($0.rawValue) \($0.allows ? "allowed" : "refused")" }.sorted())
  }

  /// The help of each command is golden text, tested against the program elsewhere.
  @Test("The reference shows each command as its help does") func commandsAreDocumented() throws {
    let text = try Project.text(Self.reference)
    var commands = 0
    for name in try Project.names(in: "Tests/PinfoldCommandTests/Help") where name != "pinfold.txt" {
      let help = try Project.text("Tests/PinfoldCommandTests/Help/\(name)")
      let usages = help.matches(of: /(?m)^(?:Usage: |       )(pinfold [^\n]+)$/).map { String($0.1) }
      #expect(!usages.isEmpty, "\(name)")
      for usage in usages { #expect(text.contains("| `\(usage)` |"), "\(usage)") }
      commands += 1
    }
    #expect(commands >= 10)
  }

  @Test("The metrics of the reference are the metrics of the contract, each with its row")
  func metricsAreDocumented() throws {
    let text = try Project.text(Self.reference)
    #expect(text.matches(of: /(?m)^\| `(pinfold_[a-z_]+)` \|/).map { String($0.1) }.sorted() == Self.metrics.sorted())
    #expect(Set(text.matches(of: /`(pinfold_[a-z_]+)/).map { String($0.1) }) == Self.metrics)
  }

  @Test("Every metric of the contract is written down in the sources") func metricsAreInTheSources() throws {
    let sources = try Project.swiftFiles(below: "Sources").filter { $0.target == "PinfoldTelemetry" }
    let text = sources.flatMap(\.lines).joined(separator: "\n")
    let found = Set(text.matches(of: /"(pinfold_[a-z_]+)["\\{]/).map { String($0.1) })
    for name in Self.metrics.union(found) {
      #expect(found.contains(name), "\(name) is not exported")
      #expect(Self.metrics.contains(name), "\(name) is exported and no part of the contract")
    }
  }

  @Test("Alerts speak only of metrics that exist") func alertsUseKnownMetrics() throws {
    let text = try Project.text("conf/prometheus/alerts.yml")
    let used = text.matches(of: /pinfold_[a-z_]+/).map { String($0.0) }
    #expect(!used.isEmpty)
    for name in used {
      let base = ["_bucket", "_sum", "_count"].reduce(name) { $0.hasSuffix($1) ? String($0.dropLast($1.count)) : $0 }
      #expect(Self.metrics.contains(base), "\(name)")
    }
  }
}
