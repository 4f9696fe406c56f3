package import PinfoldModel

/// Collects rules into a `RuleTable`.
package struct RuleTableBuilder {
  private var names: [UInt8] = []
  private var records: [RuleTable.Record] = []
  private var digests: [Digest256] = []
  private var tags: [UInt8] = []
  private var settings: [RuleSettings] = []
  private var settingNumbers: [RuleSettings: UInt32] = [:]
  private var index = RuleIndex()

  /// No rule yet.
  package init() {}

  /// Adds a rule. Changes nothing when it throws.
  package mutating func add(
    _ pattern: HostPattern, pins: [(pin: Pin, role: PinRole)], settings: RuleSettings = RuleSettings()
  ) throws(RuleTableError) {
    guard pins.count <= PinSet.limit else { throw .tooManyPins }
    let text = pattern.host.text
    guard let nameOffset = UInt32(exactly: names.count), let pinOffset = UInt32(exactly: digests.count),
      UInt32(exactly: records.count + 1) != nil, let nameLength = UInt8(exactly: text.utf8.count)
    else { throw .full }
    names.append(contentsOf: text.utf8)
    records.append(
      RuleTable.Record(
        nameOffset: nameOffset, pinOffset: pinOffset, settings: number(of: settings), port: pattern.port ?? 0,
        nameLength: nameLength, reach: pattern.reach, pinCount: UInt8(pins.count)))
    if index.insert(records.count - 1, records: records, names: names) != nil {
      records.removeLast()
      names.removeLast(text.utf8.count)
      throw .duplicate
    }
    for (pin, role) in pins {
      digests.append(PinSet.digest(of: pin))
      tags.append(PinSet.tag(of: pin, role: role))
    }
  }

  private mutating func number(of wanted: RuleSettings) -> UInt32 {
    // Neighbours mostly agree, and then no hash is needed.
    if let last = records.last?.settings, settings[Int(last)] == wanted { return last }
    if let known = settingNumbers[wanted] { return known }
    let number = UInt32(truncatingIfNeeded: settings.count)
    settings.append(wanted)
    settingNumbers[wanted] = number
    return number
  }

  /// Number of rules so far.
  package var count: Int { records.count }

  /// The finished table.
  package consuming func table() -> RuleTable {
    RuleTable(
      names: names, records: records, pins: PinSet.Storage(digests: digests, tags: tags), settings: settings,
      index: index)
  }
}

/// Why a rule could not be added.
package enum RuleTableError: Error, Sendable {
  /// The same pattern is there already, perhaps in another spelling.
  case duplicate
  /// More than `PinSet.limit` pins.
  case tooManyPins
  /// 2³² rules, pins or bytes of names.
  case full
}
