import PinfoldModel
import PinfoldPolicy
import Testing

/// Values that tests share. Digests are one byte repeated, so that a row can name them by a number.
enum Samples {
  static func digest(_ number: UInt8) -> Digest256 {
    guard let digest = Digest256(Array(repeating: number, count: 32)) else { fatalError("32 bytes are a digest") }
    return digest
  }

  static func authority(_ text: String) throws -> Authority { try #require(Authority(text)) }

  static func pattern(_ text: String) throws -> HostPattern { try HostPattern(text) }

  static func table(_ rules: [(String, [Pin])], _ change: (inout RuleSettings) -> Void = { _ in }) throws -> RuleTable {
    var settings = RuleSettings()
    change(&settings)
    var builder = RuleTableBuilder()
    for (pattern, pins) in rules {
      try builder.add(try HostPattern(pattern), pins: pins.map { ($0, .listed) }, settings: settings)
    }
    return builder.table()
  }

  /// 1970-01-01T00:16:40Z and 00:33:20Z: what every sample document is issued and expires at.
  static let issued = Timestamp(seconds: 1000)
  static let now = Timestamp(seconds: 1500)
  static let expiry = Timestamp(seconds: 2000)

  static func document(_ table: RuleTable, _ change: (inout PolicyDocument) -> Void = { _ in }) -> PolicyDocument {
    var document = PolicyDocument(version: 7, issuedAt: issued, expiresAt: expiry, table: table)
    change(&document)
    return document
  }
}
