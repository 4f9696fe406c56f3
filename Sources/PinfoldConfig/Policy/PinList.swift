import PinfoldModel
package import PinfoldPolicy

/// A file that says which pins hosts have (JSON5): `{ "api.example.com": ["sha256/…"], "*.example.com": { primary: … } }`.
package struct PinList: Sendable {
  /// Bytes such a file may have: room for 100,000 hosts.
  package static let byteLimit = 16 << 20

  /// The pins by host, each rule with at least one, all of them pins of keys.
  package let table: RuleTable

  /// Reads a whole file. Throws everything that is wrong with it, each with its place.
  package init(reading bytes: [UInt8], file: String) throws(FileErrors) {
    let context = FileContext(file: file, bytes: bytes[...])
    var builder = RuleTableBuilder()
    do throws(JSONError) {
      let node = try JSONNode(parsing: bytes[...])
      for entry in Field(node: node, path: .root, context: context).entries("an object from hosts to pins") ?? [] {
        Self.add(entry.key, entry.value, to: &builder)
      }
    } catch {
      context.complain(error)
    }
    guard context.isEmpty else { throw context.errors }
    table = builder.table()
  }

  private static func add(_ key: Field, _ value: Field, to builder: inout RuleTableBuilder) {
    guard let pattern = key.pattern(), let pins = value.pins() else { return }
    if pattern.port != nil { key.complain("a record speaks for a host on every port: leave the port out") }
    if pins.isEmpty { value.complain("expected at least one pin") }
    for (pin, _) in pins {
      if case .certificate = pin { value.complain("records have pins of keys (sha256/…), not of certificates") }
    }
    do throws(RuleTableError) { try builder.add(pattern, pins: pins) } catch {
      key.complain(error == .duplicate ? "\(pattern.text) is there already" : "more than \(PinSet.limit) pins")
    }
  }
}
