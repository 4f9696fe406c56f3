import PinfoldModel
import Testing

@testable import PinfoldTelemetry

@Suite struct HostLabelTests {
  private func hosts(_ page: Page) -> Set<String> {
    Set(
      page.samples.keys.filter { $0.hasPrefix("pinfold_verifications_total") }
        .map { String($0.split(separator: "\"")[1]) })
  }

  private func verify(_ shard: MetricShard, _ host: HostLabel) {
    shard.verification(host: host, method: .inBand, reason: .pinMatch, nanoseconds: 1)
  }

  @Test func `a thousand hosts have their own label and all others share one`() {
    let metrics = Metrics()
    let (one, two) = (metrics.makeShard(), metrics.makeShard())
    for index in 0..<1500 { verify(index % 2 == 0 ? one : two, .pinned("h\(index).example.com")) }
    let page = Page(metrics)
    #expect(hosts(page).count == 1001)
    #expect(hosts(page).contains("other"))
    #expect(!hosts(page).contains("h1000.example.com"))
    #expect(
      page["pinfold_verifications_total{host=\"other\",method=\"in_band\",result=\"success\",reason=\"pin_match\"}"]
        == "500")
  }

  @Test func `a host keeps its label on every shard once the table is full`() {
    let metrics = Metrics()
    let (one, two) = (metrics.makeShard(), metrics.makeShard())
    for index in 0..<1000 { verify(one, .pinned("h\(index)")) }
    verify(two, .pinned("h999"))
    verify(two, .pinned("late"))
    let page = Page(metrics)
    #expect(
      page["pinfold_verifications_total{host=\"h999\",method=\"in_band\",result=\"success\",reason=\"pin_match\"}"]
        == "2")
    #expect(!hosts(page).contains("late"))
  }

  @Test func `an unpinned host never has a label`() {
    let metrics = Metrics()
    let shard = metrics.makeShard()
    verify(shard, .unpinned)
    #expect(hosts(Page(metrics)) == ["other"])
  }

  @Test func `hosts that rules name exactly come before those that clients ask for`() {
    let metrics = Metrics()
    metrics.label((0..<5000).map { "exact\($0)" })
    let shard = metrics.makeShard()
    verify(shard, .pinned("exact999"))
    verify(shard, .pinned("exact1000"))
    verify(shard, .pinned("seen"))
    #expect(hosts(Page(metrics)) == ["exact999", "other"])
  }

  @Test func `gauges are asked for each labelled host at each scrape`() {
    let metrics = Metrics()
    metrics.label(["a", "b", "gone"])
    let page = Page(
      metrics,
      Scrape(version: "1", policy: PolicySample(version: 7, expiry: Timestamp(seconds: 1_800_000_000))) { host in
        switch host {
        case "a": HostSample(state: .report, pinsExpiry: Timestamp(seconds: 1_799_999_999), failureRatio: 0.25)
        case "b": HostSample(state: nil)
        default: nil
        }
      })
    #expect(page["pinfold_enforcement{host=\"a\",state=\"report\"}"] == "1")
    #expect(page["pinfold_enforcement{host=\"a\",state=\"enforce\"}"] == "0")
    #expect(page["pinfold_enforcement{host=\"b\",state=\"enforce\"}"] == "0")
    #expect(page.count(of: "pinfold_enforcement") == 8)
    #expect(page["pinfold_pins_expiry_timestamp_seconds{host=\"a\"}"] == "1799999999")
    #expect(page["pinfold_failure_ratio{host=\"a\"}"] == "0.25")
    #expect(page.count(of: "pinfold_failure_ratio") == 1)
    #expect(page["pinfold_policy_version"] == "7")
    #expect(page["pinfold_policy_expiry_timestamp_seconds"] == "1800000000")
  }

  @Test func `a label cannot leave its quotes`() {
    let metrics = Metrics()
    verify(metrics.makeShard(), .pinned("a\"} 1\nforged_total \\"))
    let page = Page(metrics)
    #expect(
      page[
        "pinfold_verifications_total{host=\"a\\\"} 1\\nforged_total \\\\\",method=\"in_band\",result=\"success\","
          + "reason=\"pin_match\"}"] == "1")
    #expect(page.count(of: "forged_total") == 0)
  }
}
