import FoundationEssentials
import PinfoldConfig
import PinfoldCrypto
import PinfoldModel
import PinfoldPolicy
import Testing

@testable import PinfoldSupply

/// Whose signatures count, step by step: the root rule of The Update Framework.
@Suite struct RotationTests {
  @Test func `keys follow one another over several rotations and restarts, and the old ones count no more`() throws {
    let fixture = try RotationFixture()
    let keys = fixture.generations
    #expect(try fixture.restart(with: fixture.bundle(1, by: keys[0])).version == 1)
    #expect(try fixture.restart(with: fixture.rotation(2, from: 0, to: 1)).version == 2)
    #expect(try fixture.restart(with: fixture.bundle(3, by: keys[0])).words == ["signatures"])
    #expect(try fixture.restart(with: fixture.bundle(3, by: keys[1])).version == 3)
    #expect(try fixture.restart(with: fixture.rotation(4, from: 1, to: 2)).version == 4)
    #expect(try fixture.restart(with: fixture.bundle(5, by: keys[1])).words == ["signatures"])
    #expect(try fixture.restart(with: fixture.bundle(5, by: keys[0])).words == ["signatures"])
    #expect(try fixture.restart(with: fixture.bundle(5, by: keys[2])).version == 5)
    #expect(try fixture.restart(with: fixture.bundle(5, by: keys[2])).version == 5)
  }

  @Test func `a rotation counts at once, without a restart`() throws {
    let fixture = try RotationFixture()
    try fixture.put("b", fixture.rotation(1, from: 0, to: 1))
    var keeper = try fixture.keeper()
    let report = keeper.load(now: fixture.now)
    #expect(report.outcome == .changed && report.isSuccess && report.rotations == [1] && report.warnings.isEmpty)
    #expect(keeper.load(now: fixture.now).outcome == .unchanged)
    #expect(keeper.load(now: fixture.now).rotations.isEmpty)
    try fixture.put("b", fixture.bundle(2, by: fixture.generations[0]))
    #expect(keeper.load(now: fixture.now).refusals.map(\.word) == ["signatures"])
    try fixture.put("b", fixture.bundle(2, by: fixture.generations[1]))
    #expect(keeper.load(now: fixture.now).outcome == .changed)
  }

  /// Whose keys sign a rotation from the first generation to the second, each with two keys.
  struct Row: CustomTestStringConvertible, Sendable {
    let testDescription: String
    var old: [Int]
    var new: [Int]
    var oldRequired = 1
    var newRequired = 1
    var word: String?
  }

  static let rows = [
    Row(testDescription: "signed by one key of each, as each asks", old: [0], new: [0]),
    Row(testDescription: "signed by the other key of each", old: [1], new: [1]),
    Row(testDescription: "signed by all", old: [0, 1], new: [0, 1], oldRequired: 2, newRequired: 2),
    Row(testDescription: "signed by the old keys only", old: [0, 1], new: [], word: "rotation"),
    Row(testDescription: "signed by the new keys only", old: [], new: [0, 1], word: "signatures"),
    Row(testDescription: "signed by nobody", old: [], new: [], word: "signatures"),
    Row(testDescription: "one old key short", old: [0], new: [0, 1], oldRequired: 2, word: "signatures"),
    Row(testDescription: "one new key short", old: [0, 1], new: [1], newRequired: 2, word: "rotation"),
  ]

  @Test("A rotation needs enough of the old keys and enough of the new ones", arguments: rows)
  func thresholds(row: Row) throws {
    let fixture = try RotationFixture()
    fixture.required = row.oldRequired
    let document = fixture.policy(version: 1, next: fixture.generations[1], required: row.newRequired)
    let signers = row.old.map { fixture.generations[0][$0] } + row.new.map { fixture.generations[1][$0] }
    let (version, words) = try fixture.restart(with: PolicyBundle.sign(document, keys: signers))
    #expect(words == (row.word.map { [$0] } ?? []))
    #expect(version == (row.word == nil ? 1 : nil))
    // What was refused has changed nothing.
    let next = try fixture.restart(
      with: fixture.bundle(2, by: row.word == nil ? fixture.generations[1] : fixture.generations[0]))
    #expect(next.version == 2)
  }

  @Test func `a key of both sets counts for each of them`() throws {
    let fixture = try RotationFixture()
    let shared = fixture.generations[0][0]
    let next = [shared, fixture.generations[1][0]]
    let document = fixture.policy(version: 1, next: next, required: 2)
    #expect(try fixture.restart(with: PolicyBundle.sign(document, keys: [shared])).words == ["rotation"])
    #expect(try fixture.restart(with: PolicyBundle.sign(document, keys: next)).version == 1)
    #expect(try fixture.restart(with: fixture.bundle(2, by: [shared])).words == ["signatures"])
  }

  /// Guards against mix-and-match: the signatures cover the document with its keys, as a whole.
  @Test func `the keys of one bundle do not go with the signatures of another`() throws {
    let fixture = try RotationFixture()
    let own = fixture.policy(version: 1, next: fixture.generations[2])
    let other = String(decoding: fixture.rotation(1, from: 0, to: 1), as: UTF8.self)
    let mixed = other.replacing(
      Base64.encode(fixture.policy(version: 1, next: fixture.generations[1])), with: Base64.encode(own))
    #expect(mixed != other)
    #expect(try fixture.restart(with: Array(mixed.utf8)).words == ["signatures"])
    // Signatures of two honest bundles in one envelope: each key counts only over what it signed.
    let halves = [fixture.bundle(1, by: fixture.generations[0]), PolicyBundle.sign(own, keys: fixture.generations[2])]
    let signatures = try halves.map { half in
      let text = String(decoding: half, as: UTF8.self)
      let start = try #require(text.firstRange(of: "\"signatures\":["))
      return String(text[start.upperBound...].dropLast(3))
    }
    let envelope =
      "{\"payloadType\":\"\(PolicyBundle.payloadType)\",\"payload\":\"\(Base64.encode(own))\","
      + "\"signatures\":[\(signatures.joined(separator: ","))]}\n"
    #expect(try fixture.restart(with: Array(envelope.utf8)).words == ["signatures"])
  }

  @Test func `an older rotation that is played back is refused, and changes nobody's keys`() throws {
    let fixture = try RotationFixture()
    let first = fixture.rotation(1, from: 0, to: 1)
    _ = try fixture.restart(with: first)
    _ = try fixture.restart(with: fixture.rotation(2, from: 1, to: 2))
    #expect(try fixture.restart(with: first).version == nil)
    // The same step under a higher version, by keys that count no more.
    #expect(try fixture.restart(with: fixture.rotation(3, from: 0, to: 1)).words == ["signatures"])
    #expect(try fixture.restart(with: fixture.bundle(4, by: fixture.generations[2])).version == 4)
  }

  @Test func `naming the keys that count already is no rotation`() throws {
    let fixture = try RotationFixture()
    let same = fixture.policy(version: 1, next: fixture.generations[0].reversed())
    try fixture.put("b", PolicyBundle.sign(same, keys: fixture.generations[0]))
    var keeper = try fixture.keeper()
    #expect(keeper.load(now: fixture.now).rotations.isEmpty && keeper.trust.links.isEmpty)
  }

  @Test func `new keys in the version in force with other contents count for nothing`() throws {
    let fixture = try RotationFixture()
    try fixture.put("b", fixture.bundle(1, by: fixture.generations[0]))
    try fixture.put("c", fixture.bundle(1, by: fixture.generations[0]))
    var keeper = try fixture.keeper(["b", "c"])
    #expect(keeper.load(now: fixture.now).outcome == .changed)
    // Alone, and beside the very bundle that is in force.
    for names in [["b", "c"], ["c"]] {
      for name in names { try fixture.put(name, fixture.rotation(1, from: 0, to: 1)) }
      let report = keeper.load(now: fixture.now)
      #expect(report.refusals.map(\.word) == names.map { _ in "version_reused" } && report.rotations.isEmpty)
      #expect(keeper.trust.links.isEmpty)
      try fixture.put("b", fixture.bundle(1, by: fixture.generations[0]))
    }
    #expect(AcceptedState(try fixture.base.get("state/policy.state"))?.rotation == nil)
    // Nobody has to care any more once there is a newer one, which the keys of before sign.
    try fixture.put("b", fixture.bundle(2, by: fixture.generations[0]))
    let report = keeper.load(now: fixture.now)
    #expect(report.outcome == .changed && report.isSuccess, "\(report)")
    #expect(try fixture.restart(with: fixture.bundle(3, by: fixture.generations[0])).version == 3)
  }

  @Test func `keys that are none refuse the policy, with their place`() throws {
    let fixture = try RotationFixture()
    let text = String(decoding: fixture.policy(version: 1), as: UTF8.self)
    for (keys, words) in [
      ("\"AAAA\"", "trusted_keys.keys[0]: 3 bytes"),
      ("\"\(String(repeating: "A", count: 43))=\"", "trusted_keys.keys[0]"),
    ] {
      let document = "{trusted_keys: {keys: [\(keys)], required_signatures: 1}, \(text.dropFirst())"
      let bytes = PolicyBundle.sign(Array(document.utf8), keys: fixture.generations[0])
      let error = try #require(throws: BundleRefusal.self) {
        try PolicyBundle(envelope: bytes, trust: fixture.source().trust, file: "b")
      }
      #expect(error.word == "invalid" && error.description.hasPrefix("b: \(words)"), "\(error)")
    }
  }
}
