import PinfoldModel
import Testing

@testable import PinfoldTelemetry

/// The samples of a rendered page by their full series text, and its HELP and TYPE lines.
struct Page {
  let lines: [Substring]
  private(set) var samples: [String: String] = [:]

  init(_ metrics: Metrics, _ scrape: Scrape = Scrape(version: "1.2.3")) {
    lines = String(decoding: metrics.render(scrape), as: UTF8.self).split(separator: "\n")
    for line in lines where !line.hasPrefix("#") {
      guard let space = line.lastIndex(of: " ") else { continue }
      let series = String(line[..<space])
      if samples.updateValue(String(line[line.index(after: space)...]), forKey: series) != nil {
        Issue.record("two samples of \(series)")
      }
    }
  }

  subscript(series: String) -> String? { samples[series] }
  func count(of name: String) -> Int { samples.keys.filter { $0.hasPrefix(name) }.count }
}

@Suite struct MetricsTests {
  @Test func `the exported names are the contract's`() {
    let contract: Set = [
      "pinfold_verifications_total", "pinfold_verification_seconds", "pinfold_tunnels_total", "pinfold_tunnels_active",
      "pinfold_relayed_bytes_total", "pinfold_enforcement", "pinfold_breaker_trips_total", "pinfold_failure_ratio",
      "pinfold_pin_fetches_total", "pinfold_pins_expiry_timestamp_seconds", "pinfold_policy_version",
      "pinfold_policy_expiry_timestamp_seconds", "pinfold_policy_reloads_total", "pinfold_probe_total",
      "pinfold_cache_total", "pinfold_build_info", "process_cpu_seconds_total", "process_resident_memory_bytes",
      "process_virtual_memory_bytes", "process_open_fds", "process_max_fds", "process_start_time_seconds",
    ]
    #expect(Set(MetricFamily.allCases.map(\.rawValue)) == contract)
    let page = Page(Metrics())
    #expect(page.lines.filter { $0.hasPrefix("# TYPE ") }.count == contract.count)
    #expect(page.lines.filter { $0.hasPrefix("# HELP ") }.count == contract.count)
  }

  @Test func `help texts need no escaping`() {
    for family in MetricFamily.allCases {
      #expect(family.help.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7f && $0 != 0x5c }, "\(family)")
    }
  }

  @Test func `a row holds every reason and the whole histogram`() {
    #expect(Reason.allCases.count <= CounterRow.width)
    #expect(MetricShard.sumCell < CounterRow.width)
    #expect(ProbeKind.allCases.count * AttemptResult.allCases.count <= CounterRow.width)
  }

  @Test(arguments: Reason.allCases) func `each reason is its own series with its own result`(reason: Reason) {
    let metrics = Metrics()
    let shard = metrics.makeShard()
    shard.tunnel(reason)
    shard.verification(host: .pinned("api.example.com"), method: .inBand, reason: reason, nanoseconds: nil)
    let page = Page(metrics)
    let result = reason.allows ? "allowed" : "refused"
    #expect(page["pinfold_tunnels_total{result=\"\(result)\",reason=\"\(reason.rawValue)\"}"] == "1")
    #expect(page.samples.filter { $0.key.hasPrefix("pinfold_tunnels_total") && $0.value != "0" }.count == 1)
    let outcome = reason.isSuccess ? "success" : "failure"
    #expect(
      page[
        "pinfold_verifications_total{host=\"api.example.com\",method=\"in_band\",result=\"\(outcome)\","
          + "reason=\"\(reason.rawValue)\"}"] == "1")
    #expect(page.count(of: "pinfold_verifications_total") == 1)
  }

  @Test func `a mismatch that was let through is an allowed tunnel and a failed verification`() {
    let metrics = Metrics()
    let shard = metrics.makeShard()
    shard.tunnel(.reportedMismatch)
    shard.verification(host: .pinned("a"), method: .probe, reason: .reportedMismatch, nanoseconds: 1)
    let page = Page(metrics)
    #expect(page["pinfold_tunnels_total{result=\"allowed\",reason=\"reported_mismatch\"}"] == "1")
    #expect(
      page[
        "pinfold_verifications_total{host=\"a\",method=\"probe\",result=\"failure\",reason=\"reported_mismatch\"}"]
        == "1")
  }

  @Test func `counters of closed label sets start at zero, so that a first failure is a rise`() {
    let metrics = Metrics()
    _ = metrics.makeShard()
    let page = Page(metrics)
    #expect(page.count(of: "pinfold_tunnels_total") == Reason.allCases.count)
    #expect(page.count(of: "pinfold_relayed_bytes_total") == 2)
    #expect(page.count(of: "pinfold_probe_total") == 4)
    #expect(page.count(of: "pinfold_cache_total") == 3)
    #expect(page.count(of: "pinfold_policy_reloads_total") == 2)
    #expect(page["pinfold_tunnels_active"] == "0")
    #expect(page["pinfold_policy_version"] == "0")
  }

  @Test func `shards add up and each counter lands in its own series`() {
    let metrics = Metrics()
    let (one, two) = (metrics.makeShard(), metrics.makeShard())
    one.relayed(up: 5)
    two.relayed(up: 1, down: 7)
    one.tunnelStarted()
    two.tunnelStarted()
    one.tunnelStarted()
    two.tunnelEnded()
    one.probe(.twin, .failure)
    two.probe(.openssl, .success)
    two.cache(.stale)
    one.policyReload(.success)
    let page = Page(metrics)
    #expect(page["pinfold_relayed_bytes_total{direction=\"up\"}"] == "6")
    #expect(page["pinfold_relayed_bytes_total{direction=\"down\"}"] == "7")
    #expect(page["pinfold_tunnels_active"] == "2")
    #expect(page["pinfold_probe_total{kind=\"twin\",result=\"failure\"}"] == "1")
    #expect(page["pinfold_probe_total{kind=\"twin\",result=\"success\"}"] == "0")
    #expect(page["pinfold_probe_total{kind=\"openssl\",result=\"success\"}"] == "1")
    #expect(page["pinfold_cache_total{result=\"stale\"}"] == "1")
    #expect(page["pinfold_cache_total{result=\"hit\"}"] == "0")
    #expect(page["pinfold_policy_reloads_total{result=\"success\"}"] == "1")
  }

  @Test func `more ends than starts read as none active, never as an overflow`() {
    let metrics = Metrics()
    metrics.makeShard().tunnelEnded()
    #expect(Page(metrics)["pinfold_tunnels_active"] == "0")
  }

  @Test func `the histogram is cumulative, in seconds, and apart for each method`() {
    let metrics = Metrics()
    let shard = metrics.makeShard()
    for nanoseconds in [1_000_000, 1_000_001, 40_000_000, 20_000_000_000] as [UInt64] {
      shard.verification(host: .unpinned, method: .inBand, reason: .chainVerified, nanoseconds: nanoseconds)
    }
    shard.verification(host: .unpinned, method: .inBand, reason: .handshakeTimeout, nanoseconds: nil)
    let page = Page(metrics)
    func bucket(_ bound: String) -> String? {
      page["pinfold_verification_seconds_bucket{method=\"in_band\",le=\"\(bound)\"}"]
    }
    #expect(bucket("0.001") == "1")
    #expect(bucket("0.0025") == "2")
    #expect(bucket("0.025") == "2")
    #expect(bucket("0.05") == "3")
    #expect(bucket("10.0") == "3")
    #expect(bucket("+Inf") == "4")
    #expect(page["pinfold_verification_seconds_count{method=\"in_band\"}"] == "4")
    #expect(page["pinfold_verification_seconds_sum{method=\"in_band\"}"] == "20.042000001")
    #expect(page["pinfold_verification_seconds_count{method=\"probe\"}"] == "0")
  }

  @Test func `many threads lose no count`() async {
    let metrics = Metrics()
    let shards = (0..<4).map { _ in metrics.makeShard() }
    await withTaskGroup(of: Void.self) { group in
      for worker in 0..<8 {
        group.addTask {
          for round in 0..<5000 {
            shards[worker % 4].tunnel(.pinMatch)
            shards[worker % 4].relayed(up: 3)
            shards[worker % 4].verification(
              host: .pinned("h\(round % 7)"), method: .inBand, reason: .pinMatch, nanoseconds: 1)
          }
        }
      }
      // Scrapes while the counters run.
      group.addTask { for _ in 0..<20 { _ = metrics.render(Scrape(version: "1")) } }
    }
    let page = Page(metrics)
    #expect(page["pinfold_tunnels_total{result=\"allowed\",reason=\"pin_match\"}"] == "40000")
    #expect(page["pinfold_relayed_bytes_total{direction=\"up\"}"] == "120000")
    let verified = page.samples.filter { $0.key.hasPrefix("pinfold_verifications_total") }
    #expect(verified.values.compactMap { Int($0) }.reduce(0, +) == 40000)
    #expect(verified.count == 7)
  }

  @Test func `fetches and breaker trips count by their labels`() {
    let metrics = Metrics()
    metrics.pinFetch(service: "https://pins.example.com", .success)
    metrics.pinFetch(service: "https://pins.example.com", .success)
    metrics.pinFetch(service: "https://pins.example.com", .untrusted)
    metrics.breakerTrip(host: "api.example.com", .alert)
    let page = Page(metrics)
    #expect(
      page["pinfold_pin_fetches_total{service=\"https://pins.example.com\",result=\"success\"}"] == "2")
    #expect(
      page["pinfold_pin_fetches_total{service=\"https://pins.example.com\",result=\"untrusted\"}"] == "1")
    #expect(page["pinfold_breaker_trips_total{host=\"api.example.com\",action=\"alert\"}"] == "1")
  }
}
