import PinfoldModel
import PinfoldPolicy

/// A policy in a few `key: value` lines, the same for `sign`, `verify` and `check`.
enum PolicySummary {
  static func lines(_ document: PolicyDocument, signers: [String]) -> [String] {
    signers.map { "keyid: \($0)" } + [
      "version: \(document.version)",
      "issued: \(document.issuedAt.text)",
      "expires: \(document.expiresAt.text)",
      "hosts: \(document.table.count)",
    ]
  }
}
