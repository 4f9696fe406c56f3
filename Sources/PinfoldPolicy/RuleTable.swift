package import PinfoldModel

/// All rules of a policy, found by host in time that depends on the number of labels alone.
///
/// Storage is flat: names end to end, pins end to end, fixed-size records, one open-addressing index, settings shared.
/// A million rules with one pin each take about 100 MB.
///
/// Precedence: exact beats `*.` beats `**.`; of two `**.` the longer name wins; of two keys with the same pattern the
/// one with a port wins. A port never lifts a wider pattern above a narrower one, so that `*.example.com:8443` does
/// not take the pins of `api.example.com` away.
package final class RuleTable: Sendable {
  /// One rule. 20 bytes.
  struct Record: Sendable {
    var nameOffset: UInt32
    var pinOffset: UInt32
    var settings: UInt32
    /// 0: every port.
    var port: UInt16
    var nameLength: UInt8
    var reach: HostPattern.Reach
    var pinCount: UInt8
  }

  let names: [UInt8]
  let records: [Record]
  let pins: PinSet.Storage
  let settings: [RuleSettings]
  let index: RuleIndex

  init(names: [UInt8], records: [Record], pins: PinSet.Storage, settings: [RuleSettings], index: RuleIndex) {
    self.names = names
    self.records = records
    self.pins = pins
    self.settings = settings
    self.index = index
  }

  /// No rule.
  package static let empty = RuleTableBuilder().table()

  /// Number of rules.
  package var count: Int { records.count }

  /// The rule that speaks for this host and port, by precedence.
  package func rule(for authority: Authority) -> RuleReference? {
    let found: Int?
    switch authority.host {
    case .name(let name):
      found = index.find(name.utf8.span, port: authority.port, isAddress: false, records: records, names: names)
    case .address(let address):
      let text = address.unmapped.text
      found = index.find(text.utf8.span, port: authority.port, isAddress: true, records: records, names: names)
    }
    return found.map { RuleReference(table: self, number: $0) }
  }

  /// All rules in the order they were added.
  package var rules: some Sequence<RuleReference> {
    (0..<records.count).lazy.map { RuleReference(table: self, number: $0) }
  }
}

/// A rule where it lies in its table; keeps the table alive.
package struct RuleReference: Sendable {
  private let table: RuleTable
  /// Position in the table, from 0. Stable for one table only.
  package let number: Int

  init(table: RuleTable, number: Int) {
    self.table = table
    self.number = number
  }

  private var record: RuleTable.Record { table.records[number] }

  /// How far the pattern reaches.
  package var reach: HostPattern.Reach { record.reach }
  /// The one port the rule is for; `nil` for every port.
  package var port: UInt16? { record.port == 0 ? nil : record.port }
  package var settings: RuleSettings { table.settings[Int(record.settings)] }

  /// The rule's pins.
  package var pins: PinSet {
    let start = Int(record.pinOffset)
    return PinSet(storage: table.pins, range: start..<start + Int(record.pinCount))
  }

  /// The pattern in its normal written form.
  package var pattern: String {
    let start = Int(record.nameOffset)
    let name = String(decoding: table.names[start..<start + Int(record.nameLength)], as: UTF8.self)
    guard let port else { return reach.prefix + name }
    let isIPv6 = name.utf8.contains(0x3a)
    return reach.prefix + (isIPv6 ? "[\(name)]:\(port)" : "\(name):\(port)")
  }
}
