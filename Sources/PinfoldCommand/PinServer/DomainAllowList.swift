import PinfoldModel
import PinfoldPolicy

/// The domains a pin server answers for. What is asked is compared as text, as the family's servers do: white space
/// around it and the case of letters do not count, a trailing dot does.
struct DomainAllowList: Sendable {
  let patterns: [HostPattern]
  /// Whether an address that is on the list is served.
  let allowsAddresses: Bool

  /// Whether the list has the domain. What is allowed may still be no host: the pattern itself is on its list too.
  func allows(_ asked: String) -> Bool {
    var text = asked.lowercased()[...]
    while text.first?.isWhitespace == true { text = text.dropFirst() }
    while text.last?.isWhitespace == true { text = text.dropLast() }
    guard !text.isEmpty, allowsAddresses || !Self.isAddress(text) else { return false }
    return patterns.contains { Self.matches($0, text) }
  }

  private static func matches(_ pattern: HostPattern, _ text: Substring) -> Bool {
    let base = pattern.host.text
    if pattern.reach == .exact { return text == base || text == "[\(base)]" }
    if text == pattern.text { return true }
    if pattern.reach == .anyDepth, text == base { return true }
    guard text.hasSuffix("." + base) else { return false }
    return pattern.reach == .anyDepth || !text.utf8.dropLast(base.utf8.count + 1).contains(0x2e)
  }

  private static func isAddress(_ text: Substring) -> Bool {
    text.utf8.first == 0x5b || IPAddress(text) != nil
  }
}
