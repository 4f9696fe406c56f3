import FoundationEssentials
import PinfoldConfig
import PinfoldModel
import PinfoldPolicy
import Testing

@testable import PinfoldSupply

/// What is made of bodies that came from a URL; how they come is tested where the server is.
@Suite struct FetchedBundleTests {
  private static let url = "https://policy.example.com/policy.signed.json"
  private static let second = "https://mirror.example.com/policy.signed.json"

  private func keeper(_ fixture: SupplyFixture, _ bundles: [String] = [url]) throws -> PolicyKeeper {
    var warnings: [String] = []
    let cache = try SealedCache(stateDirectory: "\(fixture.path)/state", keyFile: nil, warnings: &warnings)
    return PolicyKeeper(
      source: try fixture.source(bundles), stateDirectory: "\(fixture.path)/state", cache: cache)
  }

  @Test func `before anything came there is nothing to refuse`() throws {
    let fixture = try SupplyFixture()
    var keeper = try keeper(fixture)
    let report = keeper.load(now: fixture.now)
    #expect(report.outcome == .waiting && report.refusals.isEmpty && keeper.inForce == nil)
    #expect(keeper.preview(now: fixture.now).refusals.map(\.word) == ["not_fetched"])
  }

  @Test func `what came is taken, and comes back after a restart with the server away`() throws {
    let fixture = try SupplyFixture()
    var first = try keeper(fixture)
    first.fetched.receive(fixture.bundle(version: 3), etag: "\"a\"", from: Self.url)
    #expect(first.load(now: fixture.now).outcome == .changed)
    #expect(first.fetched.etag(of: Self.url) == "\"a\"")
    var second = try keeper(fixture)
    #expect(second.load(now: fixture.now).outcome == .changed)
    #expect(second.inForce?.document.version == 3 && second.inForce?.file == Self.url)
    // The server may call it something else by now.
    #expect(second.fetched.etag(of: Self.url) == nil)
  }

  @Test(arguments: ["garbage", "stranger", "rollback", "expired"])
  func `what is refused does not take the place of what was good, here or in the cache`(kind: String) throws {
    let fixture = try SupplyFixture()
    var first = try keeper(fixture)
    first.fetched.receive(fixture.bundle(version: 3), etag: nil, from: Self.url)
    _ = first.load(now: fixture.now)
    let (bad, word): ([UInt8], String) =
      switch kind {
      case "garbage": (Array("<html>".utf8), "envelope")
      case "stranger": (try SupplyFixture().bundle(version: 4), "signatures")
      case "rollback": (fixture.bundle(version: 2), "rollback")
      default: (fixture.bundle(version: 4, expiresIn: -1), "expired")
      }
    first.fetched.receive(bad, etag: "\"a\"", from: Self.url)
    let report = first.load(now: fixture.now)
    // The right one might be called the same.
    #expect(first.fetched.etag(of: Self.url) == nil)
    #expect(report.outcome == .kept && report.refusals.map(\.word) == [word])
    #expect(first.inForce?.document.version == 3)
    var second = try keeper(fixture)
    #expect(second.load(now: fixture.now).outcome == .changed && second.inForce?.document.version == 3)
  }

  @Test func `what lies in the cache is verified again, under the keys of the day`() throws {
    let fixture = try SupplyFixture()
    var first = try keeper(fixture)
    first.fetched.receive(fixture.bundle(version: 3), etag: nil, from: Self.url)
    _ = first.load(now: fixture.now)
    let later = Timestamp(seconds: fixture.now.seconds + 100_000)
    var second = try keeper(fixture)
    #expect(second.load(now: later).refusals.map(\.word) == ["expired"])
    let other = try SupplyFixture()
    let source = try other.source([Self.url])
    var warnings: [String] = []
    let cache = try SealedCache(stateDirectory: "\(fixture.path)/state", keyFile: nil, warnings: &warnings)
    var third = PolicyKeeper(source: source, stateDirectory: "\(other.path)/state", cache: cache)
    #expect(third.load(now: fixture.now).refusals.map(\.word) == ["signatures"])
  }

  @Test func `the newest of files and URLs wins, and an older one beside it is nothing to speak of`() throws {
    let fixture = try SupplyFixture()
    try fixture.put("file", fixture.bundle(version: 5))
    var keeper = try keeper(fixture, ["file", Self.url, Self.second])
    keeper.fetched.receive(fixture.bundle(version: 4), etag: nil, from: Self.url)
    #expect(keeper.load(now: fixture.now).outcome == .changed && keeper.inForce?.document.version == 5)
    #expect(keeper.load(now: fixture.now).isSuccess)
    keeper.fetched.receive(fixture.bundle(version: 6), etag: nil, from: Self.second)
    #expect(keeper.load(now: fixture.now).outcome == .changed && keeper.inForce?.file == Self.second)
    let report = keeper.load(now: fixture.now)
    #expect(report.isSuccess && report.outcome == .unchanged, "\(report)")
    // Alone it is a rollback.
    keeper.fetched.receive(Array("gone".utf8), etag: nil, from: Self.second)
    #expect(keeper.load(now: fixture.now).refusals.map(\.word) == ["rollback", "rollback", "envelope"])
  }

  @Test func `one version with two contents is refused when it comes from elsewhere`() throws {
    let fixture = try SupplyFixture()
    try fixture.put("file", fixture.bundle(version: 5))
    var keeper = try keeper(fixture, [Self.url, "file"])
    _ = keeper.load(now: fixture.now)
    keeper.fetched.receive(fixture.bundle(version: 5, host: "b.example.com"), etag: nil, from: Self.url)
    let report = keeper.load(now: fixture.now)
    #expect(report.refusals.map(\.word) == ["version_reused"])
    #expect(keeper.inForce?.file == "\(fixture.path)/file")
  }

  @Test func `a smaller limit refuses what was fetched under a larger one`() throws {
    let fixture = try SupplyFixture()
    let bytes = fixture.bundle(version: 3)
    var first = try keeper(fixture)
    first.fetched.receive(bytes, etag: nil, from: Self.url)
    _ = first.load(now: fixture.now)
    var next = PolicyKeeper(
      source: try fixture.source([Self.url], maxBytes: bytes.count - 1), stateDirectory: "\(fixture.path)/state",
      previous: first)
    #expect(next.load(now: fixture.now).refusals.map(\.word) == ["too_large"])
    #expect(next.inForce?.document.version == 3)
  }

  @Test func `a URL that was taken out of the configuration is forgotten`() throws {
    let fixture = try SupplyFixture()
    var first = try keeper(fixture, [Self.url, Self.second])
    first.fetched.receive(fixture.bundle(version: 3), etag: nil, from: Self.url)
    first.fetched.receive(fixture.bundle(version: 9), etag: nil, from: Self.second)
    var next = PolicyKeeper(
      source: try fixture.source([Self.url]), stateDirectory: "\(fixture.path)/state", previous: first)
    #expect(next.load(now: fixture.now).outcome == .changed && next.inForce?.document.version == 3)
  }

  /// What an operator can do against a stolen key that signed the highest version there is: new keys in the
  /// configuration, and a state without the memory of that version. Either alone does not help.
  @Test func `a fast-forward ends with new keys and a new state`() throws {
    let fixture = try SupplyFixture()
    let honest = try SupplyFixture()
    let state = "\(fixture.path)/state"
    var keeper = try keeper(fixture, ["file"])
    try fixture.put("file", fixture.bundle(version: 9_007_199_254_740_991))
    #expect(keeper.load(now: fixture.now).outcome == .changed)
    try fixture.put("file", fixture.bundle(version: 8))
    #expect(keeper.load(now: fixture.now).refusals.map(\.word) == ["rollback"])
    try honest.put("file", honest.bundle(version: 8))
    var renewed = PolicyKeeper(source: try honest.source(["file"]), stateDirectory: state)
    #expect(renewed.load(now: fixture.now).refusals.map(\.word) == ["rollback"])
    try fixture.remove("state/policy.state")
    renewed = PolicyKeeper(source: try honest.source(["file"]), stateDirectory: state)
    #expect(renewed.load(now: fixture.now).outcome == .changed && renewed.inForce?.document.version == 8)
  }
}
