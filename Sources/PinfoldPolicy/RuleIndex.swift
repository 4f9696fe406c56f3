import PinfoldModel

/// An open-addressing index from (name, reach, port) to rule numbers.
///
/// Names are hashed from their last byte to their first, so that one pass gives the hash of every suffix. A candidate
/// costs one probe, and none when no rule has its reach, port kind and number of labels.
struct RuleIndex: Sendable {
  /// High half: hash. Low half: rule number + 1, 0 for an empty slot. The count is a power of two, at most half full.
  private var slots: [UInt64] = Array(repeating: 0, count: 16)
  private var used = 0
  /// Per (reach, has port): a bit for each number of labels that occurs, the last bit for 63 and more.
  private var labelCounts: [6 of UInt64] = .init(repeating: 0)

  /// FNV-1a's parameters (64 bit).
  private static let offsetBasis: UInt64 = 0xcbf2_9ce4_8422_2325
  private static let prime: UInt64 = 0x100_0000_01b3

  /// Folds reach and port into a name's hash and spreads it over 32 bits.
  private static func finish(_ hash: UInt64, _ reach: HostPattern.Reach, _ port: UInt16) -> UInt32 {
    var value = hash ^ (UInt64(reach.rawValue) << 16 | UInt64(port)) &* 0x9e37_79b9_7f4a_7c15
    value ^= value >> 32
    value = value &* 0xd6e8_feb8_6659_fd93
    value ^= value >> 32
    return UInt32(truncatingIfNeeded: value)
  }

  private static func kind(_ reach: HostPattern.Reach, _ port: UInt16) -> Int {
    Int(reach.rawValue) << 1 | (port == 0 ? 0 : 1)
  }

  private static func bit(labels: Int) -> UInt64 { 1 << UInt64(min(labels, 63)) }

  // MARK: Building

  /// Notes rule `number`, whose record and name are in the arrays already. Returns the rule that has the same pattern
  /// if there is one, and then changes nothing.
  mutating func insert(_ number: Int, records: [RuleTable.Record], names: [UInt8]) -> Int? {
    let record = records[number]
    let start = Int(record.nameOffset)
    let name = names.span.extracting(start..<start + Int(record.nameLength))
    var hash = Self.offsetBasis
    var labels = 1
    for position in stride(from: name.count - 1, through: 0, by: -1) {
      if name[position] == 0x2e { labels += 1 }
      hash = (hash ^ UInt64(name[position])) &* Self.prime
    }
    let finished = Self.finish(hash, record.reach, record.port)
    if let same = probe(finished, record.reach, record.port, name, records, names) { return same }
    if (used + 1) * 2 > slots.count { grow() }
    place(UInt64(finished) << 32 | UInt64(number + 1))
    used += 1
    labelCounts[Self.kind(record.reach, record.port)] |= Self.bit(labels: labels)
    return nil
  }

  private mutating func place(_ slot: UInt64) {
    let mask = slots.count - 1
    var position = Int(slot >> 32) & mask
    while slots[position] != 0 { position = (position + 1) & mask }
    slots[position] = slot
  }

  private mutating func grow() {
    let old = slots
    slots = Array(repeating: 0, count: old.count * 2)
    for slot in old where slot != 0 { place(slot) }
  }

  // MARK: Looking up

  private func probe(
    _ hash: UInt32, _ reach: HostPattern.Reach, _ port: UInt16, _ name: Span<UInt8>, _ records: [RuleTable.Record],
    _ names: [UInt8]
  ) -> Int? {
    let mask = slots.count - 1
    var position = Int(hash) & mask
    while true {
      let slot = slots[position]
      if slot == 0 { return nil }
      if UInt32(truncatingIfNeeded: slot >> 32) == hash {
        let number = Int(slot & 0xffff_ffff) - 1
        let record = records[number]
        if record.reach == reach, record.port == port, Self.equal(name, record, names) { return number }
      }
      position = (position + 1) & mask
    }
  }

  private static func equal(_ name: Span<UInt8>, _ record: RuleTable.Record, _ names: [UInt8]) -> Bool {
    guard name.count == Int(record.nameLength) else { return false }
    let start = Int(record.nameOffset)
    for position in 0..<name.count where name[position] != names[start + position] { return false }
    return true
  }

  /// The candidate with this reach for the suffix of `name` that begins at `start`: first with the port, then without.
  private func candidate(
    _ reach: HostPattern.Reach, _ hash: UInt64, _ labels: Int, _ port: UInt16, _ suffix: Span<UInt8>,
    _ records: [RuleTable.Record], _ names: [UInt8]
  ) -> Int? {
    let bit = Self.bit(labels: labels)
    if labelCounts[Self.kind(reach, port)] & bit != 0,
      let found = probe(Self.finish(hash, reach, port), reach, port, suffix, records, names)
    {
      return found
    }
    guard labelCounts[Self.kind(reach, 0)] & bit != 0 else { return nil }
    return probe(Self.finish(hash, reach, 0), reach, 0, suffix, records, names)
  }

  /// The number of the rule for this host, by the precedence that `RuleTable` states.
  func find(
    _ name: Span<UInt8>, port: UInt16, isAddress: Bool, records: [RuleTable.Record], names: [UInt8]
  ) -> Int? {
    // An address has no labels: it counts as it did when its rule was inserted, and only exact rules name it.
    var hash = Self.offsetBasis
    var labels = 1
    var parentHash = hash
    var parentStart = 0
    for position in stride(from: name.count - 1, through: 0, by: -1) {
      if name[position] == 0x2e {
        labels += 1
        parentHash = hash
        parentStart = position + 1
      }
      hash = (hash ^ UInt64(name[position])) &* Self.prime
    }
    if let found = candidate(.exact, hash, labels, port, name, records, names) { return found }
    if isAddress { return nil }
    if parentStart > 0 {
      let parent = name.extracting(parentStart..<name.count)
      if let found = candidate(.oneLabel, parentHash, labels - 1, port, parent, records, names) { return found }
    }
    guard labelCounts[0] | labelCounts[1] != 0 else { return nil }
    return deepest(name, port, records, names)
  }

  /// The longest `**.` rule above or at the name. Walks from the right and keeps the last hit.
  private func deepest(
    _ name: Span<UInt8>, _ port: UInt16, _ records: [RuleTable.Record], _ names: [UInt8]
  ) -> Int? {
    var best: Int?
    var hash = Self.offsetBasis
    var labels = 0
    for position in stride(from: name.count - 1, through: 0, by: -1) {
      hash = (hash ^ UInt64(name[position])) &* Self.prime
      guard position == 0 || name[position - 1] == 0x2e else { continue }
      labels += 1
      let suffix = name.extracting(position..<name.count)
      if let found = candidate(.anyDepth, hash, labels, port, suffix, records, names) { best = found }
    }
    return best
  }
}
