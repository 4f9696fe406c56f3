import PinfoldCrypto
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply

/// A policy in a few `key: value` lines, the same for `sign`, `verify` and `check`.
enum PolicySummary {
  static func lines(_ bundle: PolicyBundle) -> [String] {
    let document = bundle.document
    let next = bundle.successors.map { set in
      set.keys.map { "next_keyid: \($0.keyID)" } + ["next_required: \(set.required)"]
    }
    return bundle.signers.map { "keyid: \($0)" } + [
      "version: \(document.version)",
      "issued: \(document.issuedAt.text)",
      "expires: \(document.expiresAt.text)",
      "hosts: \(document.table.count)",
    ] + (next ?? [])
  }

  /// Whose signatures count since keys were rotated, ready to be put into the configuration.
  static func rotated(_ trust: TrustChain) -> [String] {
    ["rotated_by: \(trust.version)"] + trust.current.keys.map { "trusted_key: \($0.text)" } + [
      "required_signatures: \(trust.current.required)"
    ]
  }
}
