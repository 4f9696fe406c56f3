import PinfoldModel

/// Whether an instance belongs to the share of instances that a rollout names.
///
/// The policy draws once, and each rule draws for itself: where an instance falls for one rule says nothing of where it
/// falls for another or for the policy. So a rule at 50 percent inside a policy at 50 percent is for a quarter of all
/// instances, and it is not always the same unlucky ones that try everything first.
///
/// Whatever is not known counts as inside: pins stay on where in doubt.
struct Rollout {
  let strategy: RolloutStrategy
  let identity: InstanceIdentity
  /// The user of the proxy, for `seed: "user_id"`.
  let user: String?
  /// Version of the policy, for draws that are not sticky.
  var policyVersion: UInt64 = 0

  /// Who draws.
  enum Draw {
    case policy
    /// A rule, by its pattern.
    case rule(String)
  }

  /// The identity that decides; `nil` when this instance does not know it.
  var id: String? {
    switch strategy.seed {
    case .deviceID: identity.deviceID
    case .installID: identity.installID
    case .userID: user
    }
  }

  /// Where the identity falls, 0 ..< 100. Sticky: the same identity always falls on the same place, so that a growing
  /// percentage only ever adds instances. Otherwise it is drawn anew with each version of the policy.
  func bucket(_ draw: Draw) -> Double? {
    guard let id else { return nil }
    var key = Self.key
    if case .rule(let pattern) = draw { key.0 ^= SipHash.hash(Array(pattern.utf8), key: Self.ruleKey) }
    if !strategy.sticky {
      let version = (0..<8).map { UInt8(truncatingIfNeeded: policyVersion >> ($0 * 8)) }
      key.1 ^= SipHash.hash(version, key: Self.versionKey)
    }
    return Double(SipHash.hash(Array(id.utf8), key: key) % 1_000_000) / 10_000
  }

  /// These keep the draws apart from each other and from any other use of the hash: "pinfold rollout1" and so on, in
  /// ASCII. They are part of what an instance falls on, and never change.
  private static let key: (UInt64, UInt64) = (0x7069_6e66_6f6c_6420, 0x726f_6c6c_6f75_7431)
  private static let ruleKey: (UInt64, UInt64) = (0x7069_6e66_6f6c_6420, 0x7275_6c65_2d6b_6579)
  private static let versionKey: (UInt64, UInt64) = (0x7069_6e66_6f6c_6420, 0x7665_7273_696f_6e73)

  func includes(percentage: Double, _ draw: Draw) -> Bool {
    switch strategy.method {
    case .percentage:
      guard percentage < 100 else { return true }
      guard let bucket = bucket(draw) else { return true }
      return bucket < percentage
    case .whitelist: return id.map { strategy.ids.contains($0) } ?? true
    case .geography: return identity.region.map { strategy.regions.contains($0) } ?? true
    }
  }

  /// For a step of an explanation.
  func text(percentage: Double, _ draw: Draw) -> String {
    let seed = strategy.seed.rawValue
    switch strategy.method {
    case .percentage:
      guard percentage < 100 else { return "rollout of 100 percent" }
      guard let bucket = bucket(draw) else { return "rollout of \(percentage) percent, and \(seed) is not known" }
      return "rollout of \(percentage) percent, \(seed) falls on \(bucket)"
    case .whitelist: return "whitelist of \(strategy.ids.count), by \(seed)" + (id == nil ? ", which is not known" : "")
    case .geography:
      let unknown = identity.region == nil ? ", and instance.region is not known" : ""
      return "regions \(strategy.regions.sorted().joined(separator: ", "))\(unknown)"
    }
  }
}

/// SipHash-2-4 (Aumasson and Bernstein, 2012): a stable keyed hash, the same on every machine and in every version.
enum SipHash {
  static func hash(_ bytes: [UInt8], key: (UInt64, UInt64)) -> UInt64 {
    var state = State(key)
    var word: UInt64 = 0
    for (position, byte) in bytes.enumerated() {
      word |= UInt64(byte) << UInt64((position & 7) << 3)
      if position & 7 == 7 {
        state.absorb(word)
        word = 0
      }
    }
    state.absorb(word | UInt64(bytes.count & 255) << 56)
    return state.finished()
  }

  private struct State {
    var (a, b, c, d): (UInt64, UInt64, UInt64, UInt64)

    init(_ key: (UInt64, UInt64)) {
      a = key.0 ^ 0x736f_6d65_7073_6575
      b = key.1 ^ 0x646f_7261_6e64_6f6d
      c = key.0 ^ 0x6c79_6765_6e65_7261
      d = key.1 ^ 0x7465_6462_7974_6573
    }

    mutating func absorb(_ word: UInt64) {
      d ^= word
      round()
      round()
      a ^= word
    }

    func finished() -> UInt64 {
      var state = self
      state.c ^= 0xff
      for _ in 0..<4 { state.round() }
      return state.a ^ state.b ^ state.c ^ state.d
    }

    private mutating func round() {
      a = a &+ b
      b = rotated(b, 13) ^ a
      a = rotated(a, 32)
      c = c &+ d
      d = rotated(d, 16) ^ c
      a = a &+ d
      d = rotated(d, 21) ^ a
      c = c &+ b
      b = rotated(b, 17) ^ c
      c = rotated(c, 32)
    }

    private func rotated(_ word: UInt64, _ count: UInt64) -> UInt64 { word << count | word >> (64 - count) }
  }
}
