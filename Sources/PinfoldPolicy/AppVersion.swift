/// A version of the app beside Pinfold, `1.5.0`: 1–8 decimal numbers, compared one by one, missing ones as zero.
///
/// What follows a `-` or `+` (pre-release, build) does not count.
package struct AppVersion: Comparable, Hashable, Sendable {
  private let parts: [UInt32]

  /// Reads the written form; `nil` for anything else.
  package init?(_ text: some StringProtocol) {
    let core = text.prefix { $0 != "-" && $0 != "+" }
    let fields = core.split(separator: ".", omittingEmptySubsequences: false)
    guard (1...8).contains(fields.count) else { return nil }
    var parts: [UInt32] = []
    for field in fields {
      guard field.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let part = UInt32(field) else { return nil }
      parts.append(part)
    }
    while parts.count > 1, parts.last == 0 { parts.removeLast() }
    self.parts = parts
  }

  /// The normal form, without trailing zeros.
  package var text: String { parts.map(String.init).joined(separator: ".") }

  package static func < (left: Self, right: Self) -> Bool { left.parts.lexicographicallyPrecedes(right.parts) }
}
