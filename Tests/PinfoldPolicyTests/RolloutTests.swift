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

  @Test("The share of a hundred thousand identities is right within one percent", arguments: [1.0, 12.5, 50, 99])
  func share(_ percentage: Double) {
    var inside = 0
    for number in 0..<100_000 {
      var identity = InstanceIdentity()
      identity.deviceID = "device-\(number)"
      let rollout = Rollout(strategy: RolloutStrategy(), identity: identity, user: nil)
      if rollout.includes(percentage: percentage) { inside += 1 }
    }
    #expect(abs(Double(inside) / 1000 - percentage) < 1)
  }

  @Test func `an identity that is inside stays inside while the percentage grows`() {
    for number in 0..<200 {
      var identity = InstanceIdentity()
      identity.deviceID = "device-\(number)"
      let rollout = Rollout(strategy: RolloutStrategy(), identity: identity, user: nil)
      var wasInside = false
      for percentage in stride(from: 0.0, through: 100, by: 2.5) {
        let isInside = rollout.includes(percentage: percentage)
        #expect(isInside || !wasInside)
        wasInside = isInside
      }
      #expect(wasInside)
      #expect(!rollout.includes(percentage: 0))
    }
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
