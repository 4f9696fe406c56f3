import FoundationEssentials
import PinfoldCrypto
import PinfoldModel
import PinfoldPolicy
import Testing

@testable import PinfoldSupply

@Suite struct PolicyKeeperTests {
  private let name = "policy.signed.json"

  @Test func `a first bundle comes into force and is remembered privately`() throws {
    let fixture = try SupplyFixture()
    try fixture.put(name, fixture.bundle(version: 7))
    var keeper = try fixture.keeper()
    let report = keeper.load(now: fixture.now)
    #expect(report.outcome == .changed && report.isSuccess && report.warnings.isEmpty)
    #expect(keeper.inForce?.document.version == 7)
    let state = String(decoding: try fixture.get("state/policy.state"), as: UTF8.self)
    #expect(state == "pinfold-state v1\nhighest_version 7\nclock_floor 2026-11-21T00:00:00Z\n")
    #expect(try fixture.mode("state") == 0o700)
    #expect(try fixture.mode("state/policy.state") == 0o600)
  }

  @Test func `the same version is no news, a higher one is`() throws {
    let fixture = try SupplyFixture()
    try fixture.put(name, fixture.bundle(version: 7))
    var keeper = try fixture.keeper()
    _ = keeper.load(now: fixture.now)
    #expect(keeper.load(now: fixture.now).outcome == .unchanged)
    try fixture.put(name, fixture.bundle(version: 8))
    #expect(keeper.load(now: fixture.now).outcome == .changed)
    #expect(keeper.inForce?.document.version == 8)
  }

  @Test func `the version in force with other contents is refused, loudly`() throws {
    let fixture = try SupplyFixture()
    try fixture.put(name, fixture.bundle(version: 7))
    var keeper = try fixture.keeper()
    _ = keeper.load(now: fixture.now)
    let digest = keeper.inForce?.payloadDigest
    try fixture.put(name, fixture.bundle(version: 7, host: "b.example.com"))
    let report = keeper.load(now: fixture.now)
    #expect(report.outcome == .kept && !report.isSuccess)
    #expect(report.refusals.map(\.word) == ["version_reused"])
    #expect(keeper.inForce?.payloadDigest == digest)
  }

  @Test(arguments: ["rollback", "expired", "broken", "missing", "stranger"])
  func `a bad bundle changes nothing`(kind: String) throws {
    let fixture = try SupplyFixture()
    try fixture.put(name, fixture.bundle(version: 7))
    var keeper = try fixture.keeper()
    _ = keeper.load(now: fixture.now)
    switch kind {
    case "rollback": try fixture.put(name, fixture.bundle(version: 6))
    case "expired": try fixture.put(name, fixture.bundle(version: 8, expiresIn: -1))
    case "broken": try fixture.put(name, Array(fixture.bundle(version: 8).dropLast(9)))
    case "missing": try fixture.remove(name)
    default: try fixture.put(name, SupplyFixture().bundle(version: 8))
    }
    let report = keeper.load(now: fixture.now)
    #expect(report.outcome == .kept && report.refusals.count == 1 && !report.isSuccess)
    #expect(keeper.inForce?.document.version == 7)
  }

  @Test func `without any valid bundle nothing is in force and everything is blocked`() throws {
    let fixture = try SupplyFixture()
    try fixture.put(name, fixture.bundle(version: 7, expiresIn: -1))
    var keeper = try fixture.keeper()
    #expect(keeper.load(now: fixture.now).outcome == .kept)
    guard case .unavailable = keeper.standing else {
      Issue.record("something is in force")
      return
    }
    let authority = try #require(Authority("a.example.com:443"))
    let decision = PolicySnapshot(keeper.standing, local: LocalPolicy()).decide(authority, at: fixture.now)
    #expect(decision.action == .block(.pinsUnavailable) || decision.action == .block(.unpinnedBlocked))
  }

  @Test func `an older bundle does not come back after a restart`() throws {
    let fixture = try SupplyFixture()
    try fixture.put(name, fixture.bundle(version: 7))
    var first = try fixture.keeper()
    _ = first.load(now: fixture.now)
    try fixture.put(name, fixture.bundle(version: 6))
    var second = try fixture.keeper()
    #expect(second.load(now: fixture.now).refusals.map(\.word) == ["rollback"])
    #expect(second.inForce == nil)
    try fixture.put(name, fixture.bundle(version: 7))
    #expect(second.load(now: fixture.now).outcome == .changed)
  }

  @Test func `a clock set back does not revive an expired policy`() throws {
    let fixture = try SupplyFixture()
    try fixture.put(name, fixture.bundle(version: 7, expiresIn: 100))
    var first = try fixture.keeper()
    _ = first.load(now: fixture.now)
    #expect(first.noteTime(Timestamp(seconds: fixture.now.seconds + 1000)).isEmpty)
    var second = try fixture.keeper()
    let report = second.load(now: fixture.now)
    #expect(report.refusals.map(\.word) == ["expired"])
    #expect(report.warnings.count == 1)
  }

  @Test func `a clock that ran ahead is mended by the next policy`() throws {
    let fixture = try SupplyFixture()
    try fixture.put(name, fixture.bundle(version: 7, expiresIn: 100))
    var keeper = try fixture.keeper()
    _ = keeper.load(now: fixture.now)
    _ = keeper.noteTime(Timestamp(seconds: fixture.now.seconds + 1_000_000_000))
    #expect(keeper.clockFloor == Timestamp(seconds: fixture.now.seconds + 100))
    try fixture.put(name, fixture.bundle(version: 8, expiresIn: 200))
    var second = try fixture.keeper()
    #expect(second.load(now: fixture.now).outcome == .changed)
  }

  @Test func `a policy that is found expired stays so, with the clock set back and after a restart`() throws {
    let fixture = try SupplyFixture()
    try fixture.put(name, fixture.bundle(version: 7, expiresIn: 100))
    let later = Timestamp(seconds: fixture.now.seconds + 1_000_000)
    var first = try fixture.keeper()
    #expect(first.load(now: later).refusals.map(\.word) == ["expired"])
    // No further than its end, so that a clock that was wrong is mended by the next policy.
    #expect(first.clockFloor == Timestamp(seconds: fixture.now.seconds + 100))
    #expect(first.load(now: fixture.now).refusals.map(\.word) == ["expired"])
    var second = try fixture.keeper()
    #expect(second.load(now: fixture.now).refusals.map(\.word) == ["expired"] && second.inForce == nil)
    try fixture.put(name, fixture.bundle(version: 8, expiresIn: 200))
    #expect(second.load(now: fixture.now).outcome == .changed)
  }

  @Test func `the time is remembered while a policy is in force, and rises no further than that policy's end`() throws {
    let fixture = try SupplyFixture()
    try fixture.put(name, fixture.bundle(version: 7, expiresIn: 100))
    var keeper = try fixture.keeper()
    _ = keeper.load(now: fixture.now)
    for (seconds, floor) in [(50, 50), (20, 50), (1000, 100)] as [(Int64, Int64)] {
      #expect(keeper.noteTime(Timestamp(seconds: fixture.now.seconds + seconds)).isEmpty)
      let state = try #require(AcceptedState(try fixture.get("state/policy.state")))
      #expect(state.clockFloor.seconds - fixture.now.seconds == floor && state.highestVersion == 7)
    }
  }

  @Test func `a load that brings nothing new does not believe the clock at once`() throws {
    let fixture = try SupplyFixture()
    try fixture.put(name, fixture.bundle(version: 7))
    var keeper = try fixture.keeper()
    _ = keeper.load(now: fixture.now)
    #expect(keeper.load(now: Timestamp(seconds: fixture.now.seconds + 3600)).outcome == .unchanged)
    #expect(keeper.clockFloor == fixture.now)
  }

  @Test func `a time that could not be written is written when it can be`() throws {
    let fixture = try SupplyFixture()
    try fixture.put(name, fixture.bundle(version: 7))
    // A file where the directory should be.
    try fixture.put("state", [])
    var keeper = try fixture.keeper()
    #expect(keeper.load(now: fixture.now).warnings.count == 1)
    #expect(keeper.noteTime(fixture.now).count == 1)
    try fixture.remove("state")
    #expect(keeper.noteTime(fixture.now).isEmpty)
    #expect(AcceptedState(try fixture.get("state/policy.state"))?.highestVersion == 7)
    // And then no more: it is told every few minutes.
    try fixture.remove("state/policy.state")
    #expect(keeper.noteTime(fixture.now).isEmpty)
    #expect(throws: (any Error).self) { try fixture.get("state/policy.state") }
  }

  @Test func `an older policy that is expired says nothing of the time`() throws {
    let fixture = try SupplyFixture()
    try fixture.put(name, fixture.bundle(version: 7, expiresIn: 100))
    var keeper = try fixture.keeper()
    _ = keeper.load(now: fixture.now)
    try fixture.put(name, fixture.bundle(version: 6, expiresIn: 1000))
    #expect(keeper.load(now: Timestamp(seconds: fixture.now.seconds + 1000)).outcome == .kept)
    // It could not come back anyway, and the next policy may end before it.
    #expect(keeper.clockFloor <= Timestamp(seconds: fixture.now.seconds + 100))
  }

  @Test(arguments: [
    "", "pinfold-state v1\n", "pinfold-state v2\nhighest_version 7\nclock_floor 2026-11-21T00:00:00Z\n",
    "pinfold-state v1\nhighest_version -7\nclock_floor 2026-11-21T00:00:00Z\n",
    "pinfold-state v1\nhighest_version 07\nclock_floor 2026-11-21T00:00:00Z\n",
    "pinfold-state v1\nhighest_version 7\nclock_floor 2026-11-21T00:00:00Z",
    "pinfold-state v1\nhighest_version 7\nclock_floor yesterday\n",
    "pinfold-state v1\nhighest_version 7\nclock_floor 2026-11-21T00:00:00Z\nmore\n",
    String(repeating: "x", count: 5000),
  ]) func `a damaged state file refuses every bundle and says what to do`(text: String) throws {
    let fixture = try SupplyFixture()
    try fixture.put(name, fixture.bundle(version: 7))
    try FileManager.default.createDirectory(atPath: "\(fixture.path)/state", withIntermediateDirectories: false)
    try fixture.put("state/policy.state", Array(text.utf8))
    var keeper = try fixture.keeper()
    let report = keeper.load(now: fixture.now)
    #expect(report.outcome == .kept)
    #expect(report.refusals.map(\.word) == ["state_unreadable"])
    #expect(report.refusals[0].description.contains("state/policy.state: damaged; put it back"))
    #expect(try fixture.get("state/policy.state") == Array(text.utf8))
  }

  @Test func `a state that cannot be written is a warning, and holds for this process`() throws {
    let fixture = try SupplyFixture()
    try fixture.put(name, fixture.bundle(version: 7))
    // A file where the directory should be: no mode keeps the superuser out.
    try fixture.put("state", [])
    var keeper = try fixture.keeper()
    let report = keeper.load(now: fixture.now)
    #expect(report.outcome == .changed && report.isSuccess)
    #expect(report.warnings.count == 1)
    try fixture.put(name, fixture.bundle(version: 6))
    #expect(keeper.load(now: fixture.now).refusals.map(\.word) == ["rollback"])
  }

  @Test func `a reloaded configuration keeps what was in force until it has something newer`() throws {
    let fixture = try SupplyFixture()
    try fixture.put(name, fixture.bundle(version: 7))
    var keeper = try fixture.keeper()
    _ = keeper.load(now: fixture.now)
    try fixture.put("other", fixture.bundle(version: 6))
    var next = PolicyKeeper(
      source: try fixture.source(["other"]), stateDirectory: "\(fixture.path)/state", previous: keeper)
    #expect(next.load(now: fixture.now).refusals.map(\.word) == ["rollback"])
    #expect(next.inForce?.document.version == 7)
  }

  @Test func `the state reads back what it wrote`() throws {
    var state = AcceptedState()
    #expect(AcceptedState(state.bytes) == state)
    state.highestVersion = .max
    state.clockFloor = Timestamp(seconds: 253_402_300_799)
    #expect(AcceptedState(state.bytes) == state)
  }

  @Test func `what is in force stays so past its expiry, when its hosts are blocked and not unknown`() throws {
    let fixture = try SupplyFixture()
    try fixture.put(name, fixture.bundle(version: 7, expiresIn: 100))
    var keeper = try fixture.keeper()
    _ = keeper.load(now: fixture.now)
    let later = Timestamp(seconds: fixture.now.seconds + 100)
    let report = keeper.load(now: later)
    #expect(report.outcome == .kept && report.refusals.map(\.word) == ["expired"])
    let authority = try #require(Authority("a.example.com:443"))
    let decision = PolicySnapshot(keeper.standing, local: LocalPolicy()).decide(authority, at: later)
    #expect(decision.action == .block(.pinsExpired))
  }

  @Test func `a good bundle beside a bad one comes into force, and the bad one is still told`() throws {
    let fixture = try SupplyFixture()
    try fixture.put("good", fixture.bundle(version: 7))
    try fixture.put("bad", [0])
    var keeper = try fixture.keeper(["bad", "good"])
    let report = keeper.load(now: fixture.now)
    #expect(report.outcome == .changed && !report.isSuccess)
    #expect(report.refusals.map(\.file) == ["\(fixture.path)/bad"])
  }
}
