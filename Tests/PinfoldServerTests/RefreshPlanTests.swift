import PinfoldConfig
import PinfoldModel
import PinfoldSupply
import PinfoldTLS
import Testing

@testable import PinfoldServer

/// When a bundle's server is asked again.
@Suite struct RefreshPlanTests {
  private static let key = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="

  private func plan(refresh: Int, bundles: [String] = ["https://a.test/p", "/tmp/file", "https://b.test/p"]) throws
    -> RefreshPlan?
  {
    let list = bundles.map { "\"\($0)\"" }.joined(separator: ", ")
    let text = "{policy: {bundles: [\(list)], trusted_keys: [\"\(Self.key)\"], refresh_seconds: \(refresh)}}"
    let configuration = try Configuration.parse(Array(text.utf8), file: "c", directory: "/tmp")
    let source = try BundleSource(configuration.policy, file: "c")
    return try RefreshPlan(source, configuration, trusting: TrustStore([]), file: "c")
  }

  @Test("Only URLs are fetched, each once") func urls() throws {
    let plan = try #require(try plan(refresh: 300, bundles: ["https://a.test/p", "/tmp/f", "HTTPS://A.test:443/p"]))
    #expect(plan.urls.map(\.text) == ["https://a.test/p"])
    #expect(try self.plan(refresh: 300, bundles: ["/tmp/file"]) == nil)
  }

  @Test(
    "After a failure it asks again soon, then ever later, and never later than the refresh",
    arguments: [
      (300, 0, 300), (300, 1, 1), (300, 2, 2), (300, 3, 4), (300, 9, 256), (300, 10, 300), (300, 1_000_000, 300),
      (1, 0, 1), (1, 5, 1), (86_400, 17, 65_536), (86_400, 18, 86_400), (86_400, Int.max, 86_400),
    ])
  func backOff(refresh: Int, failures: Int, seconds: Int) throws {
    let plan = try #require(try plan(refresh: refresh))
    #expect(plan.pause(afterFailures: failures, draw: 1) == .seconds(seconds))
  }

  @Test("Pauses are drawn within a tenth to either side, so that a fleet spreads out") func jitter() throws {
    let plan = try #require(try plan(refresh: 100))
    let pauses = (0..<1000).map { _ in plan.pause(afterFailures: 0) }
    #expect(pauses.allSatisfy { $0 >= .seconds(90) && $0 <= .seconds(110) })
    #expect(pauses.contains { $0 < .seconds(92) } && pauses.contains { $0 > .seconds(108) })
  }
}
