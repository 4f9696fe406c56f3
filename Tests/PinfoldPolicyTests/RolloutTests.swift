import PinfoldModel
import Testing

@testable import PinfoldPolicy

@Suite struct RolloutTests {
  @Test func `the hash is SipHash-2-4, by its authors' vectors`() {
    // Key 00…0f, messages of 0, 1, 7, 8 and 15 bytes counting up from zero.
    let key: (UInt64, UInt64) = (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908)
    func hash(_ count: UInt8) -> UInt64 { SipHash.hash(Array(0..<count), key: key) }
    #expect(hash(0) == 0x726f_db47_dd0e_0e31)
    #expect(hash(1) == 0x74f8_39c5_93dc_67fd)
    #expect(hash(7) == 0xab02_00f5_8b01_d137)
    #expect(hash(8) == 0x93f5_f579_9a93_2462)
    #expect(hash(15) == 0xa129_ca61_49be_45e5)
  }

  private func rollout(
    _ id: String?, sticky: Bool = true, version: UInt64 = 0, _ method: RolloutStrategy.Method = .percentage
  ) -> Rollout {
    var identity = InstanceIdentity()
    identity.deviceID = id
    var strategy = RolloutStrategy()
    strategy.sticky = sticky
    strategy.method = method
    return Rollout(strategy: strategy, identity: identity, user: nil, policyVersion: version)
  }

  struct Golden: CustomTestStringConvertible {
    var id: String
    var draw: Rollout.Draw
    /// `nil`: sticky.
    var version: UInt64?
    var bucket: Double
    var testDescription: String { "\(id) for \(draw), version \(version.map(String.init) ?? "any")" }
  }

  /// Worked out by a second implementation, in Python. Another value here would move users from one side to the other.
  @Test(
    "Where an identity falls never changes",
    arguments: [
      Golden(id: "d", draw: .policy, version: nil, bucket: 40.0232),
      Golden(id: "d", draw: .policy, version: 7, bucket: 1.8872),
      Golden(id: "d", draw: .rule("api.example.com"), version: nil, bucket: 14.8208),
      Golden(id: "d", draw: .rule("api.example.com"), version: 7, bucket: 44.1752),
      Golden(id: "d", draw: .rule("*.example.com"), version: nil, bucket: 30.5244),
      Golden(id: "d", draw: .rule("*.example.com"), version: 7, bucket: 61.1608),
      Golden(id: "", draw: .policy, version: nil, bucket: 94.5128),
      Golden(id: "", draw: .policy, version: 7, bucket: 4.2562),
      Golden(id: "", draw: .rule("api.example.com"), version: nil, bucket: 64.5492),
      Golden(id: "", draw: .rule("api.example.com"), version: 7, bucket: 70.1243),
      Golden(id: "", draw: .rule("*.example.com"), version: nil, bucket: 59.0014),
      Golden(id: "", draw: .rule("*.example.com"), version: 7, bucket: 87.7696),
      Golden(id: "device-1", draw: .policy, version: nil, bucket: 76.2209),
      Golden(id: "device-1", draw: .policy, version: 7, bucket: 0.7403),
      Golden(id: "device-1", draw: .rule("api.example.com"), version: nil, bucket: 40.2064),
      Golden(id: "device-1", draw: .rule("api.example.com"), version: 7, bucket: 30.9868),
      Golden(id: "device-1", draw: .rule("*.example.com"), version: nil, bucket: 62.8435),
      Golden(id: "device-1", draw: .rule("*.example.com"), version: 7, bucket: 69.4629),
      Golden(id: "3d1219c7c4c5404aaa1f6d2a48adfda4", draw: .policy, version: nil, bucket: 77.408),
      Golden(id: "3d1219c7c4c5404aaa1f6d2a48adfda4", draw: .policy, version: 7, bucket: 13.5331),
      Golden(id: "3d1219c7c4c5404aaa1f6d2a48adfda4", draw: .rule("api.example.com"), version: nil, bucket: 16.6819),
      Golden(id: "3d1219c7c4c5404aaa1f6d2a48adfda4", draw: .rule("api.example.com"), version: 7, bucket: 50.3639),
      Golden(id: "3d1219c7c4c5404aaa1f6d2a48adfda4", draw: .rule("*.example.com"), version: nil, bucket: 59.3323),
      Golden(id: "3d1219c7c4c5404aaa1f6d2a48adfda4", draw: .rule("*.example.com"), version: 7, bucket: 13.4031),
      Golden(id: "пинфолд", draw: .policy, version: nil, bucket: 44.5254),
      Golden(id: "пинфолд", draw: .policy, version: 7, bucket: 9.4219),
      Golden(id: "пинфолд", draw: .rule("api.example.com"), version: nil, bucket: 37.359),
      Golden(id: "пинфолд", draw: .rule("api.example.com"), version: 7, bucket: 18.7173),
      Golden(id: "пинфолд", draw: .rule("*.example.com"), version: nil, bucket: 23.8551),
      Golden(id: "пинфолд", draw: .rule("*.example.com"), version: 7, bucket: 72.5874),
    ])
  func golden(_ row: Golden) {
    let version = row.version
    #expect(rollout(row.id, sticky: version == nil, version: version ?? 3).bucket(row.draw) == row.bucket)
  }

  @Test(
    "The share of a hundred thousand identities is right within one percent",
    arguments: [1.0, 12.5, 50, 99], [Rollout.Draw.policy, .rule("api.example.com")])
  func share(_ percentage: Double, _ draw: Rollout.Draw) {
    let inside = (0..<100_000).count { rollout("device-\($0)").includes(percentage: percentage, draw) }
    #expect(abs(Double(inside) / 1000 - percentage) < 1)
  }

  @Test("A draw that is not sticky has the right share too") func shareOfVersions() {
    let inside = (0..<100_000).count {
      rollout("device-\($0)", sticky: false, version: 9).includes(percentage: 25, .policy)
    }
    #expect(abs(Double(inside) / 1000 - 25) < 1)
  }

  /// Half of the instances have the policy, half of those the rule, and another half the other rule.
  @Test("Rules and the policy draw independently of each other") func independence() {
    var (both, rules, sameForTwoVersions) = (0, 0, 0)
    for number in 0..<100_000 {
      let draws = rollout("device-\(number)")
      let first = draws.includes(percentage: 50, .rule("api.example.com"))
      if first, draws.includes(percentage: 50, .policy) { both += 1 }
      if first, draws.includes(percentage: 50, .rule("*.example.com")) { rules += 1 }
      let next = [1, 2].map {
        rollout("device-\(number)", sticky: false, version: $0).includes(percentage: 50, .policy)
      }
      if next[0] == next[1] { sameForTwoVersions += 1 }
    }
    #expect(abs(both - 25_000) < 1000)
    #expect(abs(rules - 25_000) < 1000)
    #expect(abs(sameForTwoVersions - 50_000) < 1000)
  }

  @Test("An identity that is inside stays inside while the percentage grows, whatever the version")
  func growing() {
    for number in 0..<200 {
      for draw in [Rollout.Draw.policy, .rule("api.example.com")] {
        var wasInside = false
        for (version, percentage) in stride(from: 0.0, through: 100, by: 2.5).enumerated() {
          let isInside = rollout("device-\(number)", version: UInt64(version)).includes(percentage: percentage, draw)
          #expect(isInside || !wasInside)
          wasInside = isInside
        }
        #expect(wasInside)
        #expect(!rollout("device-\(number)").includes(percentage: 0, draw))
      }
    }
  }

  @Test("Who is not known is inside, by every method", arguments: RolloutStrategy.Method.allCases)
  func unknown(_ method: RolloutStrategy.Method) {
    #expect(rollout(nil, method).includes(percentage: 0, .policy))
    #expect(rollout(nil, method).text(percentage: 0, .policy).contains("not known"))
  }

  @Test func `the seed names whose identity counts`() {
    var identity = InstanceIdentity()
    identity.deviceID = "d"
    identity.installID = "i"
    func id(_ seed: RolloutStrategy.Seed) -> String? {
      var strategy = RolloutStrategy()
      strategy.seed = seed
      return Rollout(strategy: strategy, identity: identity, user: "u").id
    }
    #expect(RolloutStrategy.Seed.allCases.map(id) == ["d", "u", "i"])
  }

  @Test(
    "Versions compare number by number",
    arguments: [
      ("1.5.0", "1.5.1", true), ("1.5", "1.5.0", false), ("1.9", "1.10", true), ("2", "1.99.99", false),
      ("1.5.0-beta", "1.5.0", false), ("1.5.0+7", "1.5.1", true), ("0", "0.0.1", true),
    ])
  func versions(_ left: String, _ right: String, _ isLess: Bool) throws {
    let (left, right) = (try #require(AppVersion(left)), try #require(AppVersion(right)))
    #expect((left < right) == isLess)
    #expect(!(left < right && right < left))
  }

  @Test(
    "What is no version is refused",
    arguments: ["", ".", "1.", "v1", "1..2", "-1", "1.2.3.4.5.6.7.8.9", "4294967296", "1 "])
  func noVersion(_ text: String) { #expect(AppVersion(text) == nil) }
}
