import PinfoldModel

/// Reads the members of one object by name, and complains about those nobody asked for.
struct ObjectReader {
  let context: FileContext
  let path: KeyPath
  private let members: [JSONMember]
  /// A bit for each of the first 64 members that were asked for; the schema has no object of more.
  private var taken: UInt64 = 0
  private var asked: [String] = []

  /// An absent object reads like an empty one, so that every key gets its default.
  init(_ field: Field?, path: KeyPath, context: FileContext) {
    self.context = context
    self.path = path
    switch field?.node.value {
    case .object(let members): self.members = members
    case nil: members = []
    default:
      members = []
      field?.expected("an object")
    }
    asked.reserveCapacity(16)
  }

  /// The member's value, or `nil` when it is absent.
  mutating func field(_ key: String) -> Field? {
    asked.append(key)
    context.askedKeys?.insert(path.member(key).text)
    guard let index = members.firstIndex(where: { $0.name == key }) else { return nil }
    if index < 64 { taken |= 1 << UInt64(index) }
    return Field(node: members[index].node, path: path.member(key), context: context)
  }

  /// The member's value, or `nil` when it is absent or `null`.
  mutating func optional(_ key: String) -> Field? {
    guard let field = field(key) else { return nil }
    if case .null = field.node.value { return nil }
    return field
  }

  mutating func object(_ key: String) -> ObjectReader {
    let field = field(key)
    return ObjectReader(field, path: path.member(key), context: context)
  }

  /// Where a member's value stands.
  func offset(_ key: String) -> Int? { members.first { $0.name == key }?.node.range.lowerBound }

  /// Complains about every member that was not asked for.
  func finish() {
    for (index, member) in members.enumerated() where index >= 64 || taken & (1 << UInt64(index)) == 0 {
      context.complain(
        at: member.offset, path.text, "unknown key \"\(member.name)\"" + Suggestion.text(member.name, among: asked))
    }
  }
}

enum Suggestion {
  /// `; did you mean "tls"?`, or nothing.
  static func text(_ word: String, among known: [String]) -> String {
    Nearest.match(word, among: known).map { "; did you mean \"\($0)\"?" } ?? ""
  }
}
