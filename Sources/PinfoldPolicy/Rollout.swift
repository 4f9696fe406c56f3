import PinfoldModel

/// Whether an instance belongs to the share of instances that a rollout names.
///
/// Whatever is not known counts as inside: pins stay on where in doubt.
struct Rollout {
  let strategy: RolloutStrategy
  let identity: InstanceIdentity
  /// The user of the proxy, for `seed: "user_id"`.
  let user: String?

  /// The identity that decides; `nil` when this instance does not know it.
  var id: String? {
    switch strategy.seed {
    case .deviceID: identity.deviceID
    case .installID: identity.installID
    case .userID: user
    }
  }

  /// Where the identity falls, 0 ..< 100. The same identity always falls on the same place, so that a growing
  /// percentage only ever adds instances.
  var bucket: Double? {
    id.map { Double(SipHash.hash(Array($0.utf8), key: Self.key) % 1_000_000) / 10_000 }
  }

  /// Keeps the buckets apart from any other use of the hash.
  private static let key: (UInt64, UInt64) = (0x7069_6e66_6f6c_6420, 0x726f_6c6c_6f75_7431)

  func includes(percentage: Double) -> Bool {
    switch strategy.method {
    case .percentage:
      guard percentage < 100 else { return true }
      guard let bucket else { return true }
      return bucket < percentage
    case .whitelist: return id.map { strategy.ids.contains($0) } ?? true
    case .geography: return identity.region.map { strategy.regions.contains($0) } ?? true
    }
  }

  /// For a step of an explanation.
  func text(percentage: Double) -> String {
    switch strategy.method {
    case .percentage:
      guard percentage < 100 else { return "rollout of 100 percent" }
      guard let bucket else { return "rollout of \(percentage) percent, and \(strategy.seed.rawValue) is not known" }
      return "rollout of \(percentage) percent, \(strategy.seed.rawValue) falls on \(bucket)"
    case .whitelist: return "whitelist of \(strategy.ids.count), by \(strategy.seed.rawValue)"
    case .geography: return "regions \(strategy.regions.sorted().joined(separator: ", "))"
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
