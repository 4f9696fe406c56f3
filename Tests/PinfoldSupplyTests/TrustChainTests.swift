import FoundationEssentials
import PinfoldConfig
import PinfoldCrypto
import PinfoldModel
import PinfoldPolicy
import Testing

@testable import PinfoldSupply

/// What is kept of a rotation, and what is made of it again.
@Suite struct TrustChainTests {
  private func rotated() throws -> RotationFixture {
    let fixture = try RotationFixture()
    _ = try fixture.restart(with: fixture.rotation(1, from: 0, to: 1))
    _ = try fixture.restart(with: fixture.bundle(2, by: fixture.generations[1]))
    return fixture
  }

  private func rotationFile(_ fixture: RotationFixture) throws -> String {
    let folder = "\(fixture.stateDirectory)/cache"
    let names = try FileManager.default.contentsOfDirectory(atPath: folder)
    return "state/cache/" + (try #require(names.first { $0.hasPrefix("rotation-") }))
  }

  @Test func `the state says that keys were rotated, and never which keys`() throws {
    let fixture = try rotated()
    let state = String(decoding: try fixture.base.get("state/policy.state"), as: UTF8.self)
    #expect(state.contains("\nrotation "))
    for key in fixture.generations.joined() { #expect(!state.contains(key.publicKey.text)) }
    #expect(AcceptedState(Array(state.utf8))?.rotation != nil)
  }

  /// Guards: what is lost or altered must not bring keys back that were replaced, perhaps because they were stolen.
  @Test(arguments: ["removed", "altered", "cut off", "key lost"])
  func `without its rotation nothing is taken, whoever signed it`(kind: String) throws {
    let fixture = try rotated()
    let file = try rotationFile(fixture)
    var bytes = try fixture.base.get(file)
    switch kind {
    case "removed": try fixture.base.remove(file)
    case "altered":
      bytes[bytes.count / 2] ^= 1
      try fixture.put(file, bytes)
    case "cut off": try fixture.put(file, Array(bytes.dropLast(600)))
    default: try fixture.base.remove("state/cache.key")
    }
    for signer in fixture.generations[0...1] {
      let (version, words) = try fixture.restart(with: fixture.bundle(3, by: signer))
      #expect(version == nil && words == ["rotation_lost"])
    }
  }

  @Test func `the rotating bundle beside the newest mends a lost rotation`() throws {
    let fixture = try RotationFixture()
    let step = fixture.rotation(1, from: 0, to: 1)
    _ = try fixture.restart(with: step)
    try fixture.base.remove(rotationFile(fixture))
    try fixture.put("step", step)
    try fixture.put("b", fixture.bundle(2, by: fixture.generations[1]))
    var keeper = try fixture.keeper(["b", "step"])
    let report = keeper.load(now: fixture.now)
    #expect(report.outcome == .changed && report.isSuccess, "\(report)")
    // And it is kept again.
    #expect(try fixture.restart(with: fixture.bundle(3, by: fixture.generations[1])).version == 3)
  }

  @Test func `other configured keys begin a new chain`() throws {
    let fixture = try rotated()
    fixture.configured = fixture.generations[1]
    #expect(try fixture.restart(with: fixture.bundle(2, by: fixture.generations[1])).version == 2)
    let state = try #require(AcceptedState(try fixture.base.get("state/policy.state")))
    #expect(state.rotation == nil && state.highestVersion == 2)
    // Keys of the chain before do not count beside them.
    fixture.configured = fixture.generations[3]
    #expect(try fixture.restart(with: fixture.bundle(3, by: fixture.generations[1])).words == ["signatures"])
    #expect(try fixture.restart(with: fixture.bundle(3, by: fixture.generations[3])).version == 3)
  }

  @Test func `a reload under the same keys goes on with the chain, one under others begins anew`() throws {
    let fixture = try RotationFixture()
    try fixture.put("b", fixture.rotation(1, from: 0, to: 1))
    var keeper = try fixture.keeper()
    _ = keeper.load(now: fixture.now)
    try fixture.put("b", fixture.bundle(2, by: fixture.generations[1]))
    var same = PolicyKeeper(
      source: try fixture.source(), stateDirectory: fixture.stateDirectory, previous: keeper)
    let report = same.load(now: fixture.now)
    #expect(report.outcome == .changed && report.rotations.isEmpty && same.trust.version == 1)

    fixture.configured = fixture.generations[3]
    var other = PolicyKeeper(source: try fixture.source(), stateDirectory: fixture.stateDirectory, previous: same)
    #expect(other.load(now: fixture.now).refusals.map(\.word) == ["signatures"])
    #expect(other.inForce?.document.version == 2 && other.trust.version == 0)
    // That time passes does not make them the keys that count: nothing was accepted under them.
    _ = other.noteTime(Timestamp(seconds: fixture.now.seconds + 60))
    #expect(AcceptedState(try fixture.base.get("state/policy.state"))?.rotation != nil)
    try fixture.put("b", fixture.bundle(3, by: fixture.generations[3]))
    #expect(other.load(now: fixture.now).outcome == .changed)
    // The keys before, configured again, are still those that were replaced.
    fixture.configured = fixture.generations[0]
    #expect(try fixture.restart(with: fixture.bundle(4, by: fixture.generations[0])).version == nil)
  }

  @Test func `another threshold begins a new chain too`() throws {
    let fixture = try rotated()
    fixture.required = 2
    #expect(try fixture.restart(with: fixture.bundle(3, by: fixture.generations[1])).words == ["signatures"])
    #expect(try fixture.restart(with: fixture.bundle(3, by: fixture.generations[0])).version == 3)
  }

  @Test(arguments: [["b", "one", "two"], ["two", "one", "b"], ["one", "b", "two"]])
  func `who begins late follows the steps that lie beside the newest, expired or not`(order: [String]) throws {
    let fixture = try RotationFixture()
    try fixture.put("one", fixture.rotation(1, from: 0, to: 1, expiresIn: -10))
    try fixture.put("two", fixture.rotation(2, from: 1, to: 2))
    try fixture.put("b", fixture.bundle(7, by: fixture.generations[2]))
    var keeper = try fixture.keeper(order)
    let report = keeper.load(now: fixture.now)
    #expect(report.outcome == .changed && report.isSuccess && report.rotations == [1, 2], "\(report)")
    #expect(keeper.inForce?.document.version == 7)
    // The same again, after a restart: steps that were taken are nothing to complain of.
    var second = try fixture.keeper(order)
    let again = second.load(now: fixture.now)
    #expect(again.outcome == .changed && again.isSuccess && again.rotations.isEmpty, "\(again)")
    // Without the steps the newest is a stranger's to who has none of them.
    let late = try RotationFixture()
    late.configured = fixture.configured
    #expect(try late.restart(with: fixture.bundle(7, by: fixture.generations[2])).words == ["signatures"])
  }

  @Test func `a step that was left out stops who comes late`() throws {
    let fixture = try RotationFixture()
    try fixture.put("two", fixture.rotation(2, from: 1, to: 2))
    try fixture.put("b", fixture.bundle(7, by: fixture.generations[2]))
    var keeper = try fixture.keeper(["two", "b"])
    #expect(keeper.load(now: fixture.now).refusals.map(\.word) == ["signatures", "signatures"])
    #expect(keeper.inForce == nil)
  }

  @Test func `a rotation that is not issued yet is not followed`() throws {
    let fixture = try RotationFixture()
    let document = fixture.policy(version: 2, next: fixture.generations[1], issuedIn: 3600, expiresIn: 7200)
    try fixture.put("b", PolicyBundle.sign(document, keys: fixture.generations[0] + fixture.generations[1]))
    var keeper = try fixture.keeper()
    #expect(keeper.load(now: fixture.now).refusals.map(\.word) == ["not_yet_issued"])
    #expect(keeper.trust.links.isEmpty)
  }

  @Test func `a policy older than the last rotation is a rollback, though its keys count`() throws {
    let fixture = try RotationFixture()
    // The first generation is named again by the second rotation.
    try fixture.put("one", fixture.rotation(5, from: 0, to: 1, expiresIn: -10))
    try fixture.put("two", fixture.rotation(6, from: 1, to: 0, expiresIn: -10))
    try fixture.put("old", fixture.bundle(3, by: fixture.generations[0]))
    var keeper = try fixture.keeper(["one", "two", "old"])
    #expect(keeper.load(now: fixture.now).refusals.map(\.word) == ["expired", "rollback"])
    #expect(keeper.inForce == nil)
  }

  @Test func `there are 64 rotations at most, then the configuration has to be brought up to date`() throws {
    let fixture = try RotationFixture(2)
    let source = try fixture.source(["b"])
    var chain = TrustChain(source.trust)
    for version in 1...65 {
      let (old, new) = version % 2 == 1 ? (0, 1) : (1, 0)
      try fixture.put("b", fixture.rotation(version, from: old, to: new))
      let seen = source.examine(source.readFiles(), at: fixture.now, highest: 0, chain: chain)
      #expect(seen.refusals.map(\.word) == (version == 65 ? ["rotation"] : []))
      chain = seen.chain
    }
    #expect(chain.links.count == TrustChain.limit)
    #expect(TrustChain(source.trust, record: chain.record).links.map(\.version) == Array(1...64))
  }

  @Test func `every prefix of a record gives a prefix of its chain`() throws {
    let fixture = try RotationFixture()
    let source = try fixture.source(["one", "two"])
    try fixture.put("one", fixture.rotation(1, from: 0, to: 1))
    try fixture.put("two", fixture.rotation(2, from: 1, to: 2))
    let examination = source.examine(
      source.readFiles(), at: fixture.now, highest: 0, chain: TrustChain(source.trust))
    let record = examination.chain.record
    var counts: Set<Int> = []
    for end in stride(from: 0, through: record.count, by: 7) {
      counts.insert(TrustChain(source.trust, record: Array(record[..<end])).links.count)
    }
    #expect(counts.isSubset(of: [0, 1, 2]))
    #expect(TrustChain(source.trust, record: record).links.count == 2)
    // A byte of the first policy, which lies 120 bytes behind the frame.
    var altered = record
    altered[180] ^= 1
    #expect(TrustChain(source.trust, record: altered).links.isEmpty)
    fixture.configured = fixture.generations[3]
    #expect(TrustChain(try fixture.source().trust, record: record).links.isEmpty)
  }

  @Test func `a look changes nothing`() throws {
    let fixture = try RotationFixture()
    try fixture.put("b", fixture.rotation(1, from: 0, to: 1))
    var keeper = PolicyKeeper(source: try fixture.source(), stateDirectory: fixture.stateDirectory)
    let seen = keeper.preview(now: fixture.now)
    #expect(seen.newest?.document.version == 1 && keeper.trust.version == 1)
    #expect(!FileManager.default.fileExists(atPath: fixture.stateDirectory))
  }

  @Test func `what was found and not taken counts for nothing, here or at the next start`() throws {
    let fixture = try RotationFixture()
    try fixture.put("b", fixture.bundle(1, by: fixture.generations[0]))
    var keeper = try fixture.keeper()
    _ = keeper.load(now: fixture.now)
    let state = try fixture.base.get("state/policy.state")
    try fixture.put("b", fixture.rotation(2, from: 0, to: 1))
    let finding = keeper.examine(now: fixture.now)
    #expect(finding.report.refusals.isEmpty && keeper.inForce?.document.version == 1 && keeper.trust.links.isEmpty)
    #expect(try fixture.base.get("state/policy.state") == state)
    #expect(throws: (any Error).self) { try rotationFile(fixture) }
    // Another one is signed by the keys of before.
    try fixture.put("b", fixture.bundle(3, by: fixture.generations[0]))
    #expect(keeper.load(now: fixture.now).outcome == .changed)
    // Taken, the same is remembered.
    try fixture.put("b", fixture.rotation(4, from: 0, to: 1))
    let report = keeper.take(keeper.examine(now: fixture.now))
    #expect(report.outcome == .changed && report.rotations == [4] && keeper.trust.version == 4)
    #expect(try fixture.restart(with: fixture.bundle(5, by: fixture.generations[0])).words == ["signatures"])
  }

  @Test func `a rotation that cannot be kept counts all the same, with a warning`() throws {
    let fixture = try RotationFixture()
    try fixture.put("b", fixture.rotation(1, from: 0, to: 1))
    var keeper = PolicyKeeper(source: try fixture.source(), stateDirectory: fixture.stateDirectory)
    let report = keeper.load(now: fixture.now)
    #expect(report.outcome == .changed && report.warnings.count == 1)
    #expect(keeper.trust.version == 1)
  }
}
