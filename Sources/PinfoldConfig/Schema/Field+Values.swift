/// The value of one field as something typed; `nil` after a complaint.
extension Field {
  func bool() -> Bool? {
    if case .bool(let value) = node.value { return value }
    expected("true or false")
    return nil
  }

  func integer(in range: ClosedRange<Int>) -> Int? {
    guard case .number(let number) = node.value else {
      expected("a whole number from \(range.lowerBound) to \(range.upperBound)")
      return nil
    }
    guard let value = number.integer, let result = Int(exactly: value), range.contains(result) else {
      complain("expected a whole number from \(range.lowerBound) to \(range.upperBound), found \(source)")
      return nil
    }
    return result
  }

  func percentage() -> Double? {
    guard case .number(let number) = node.value else {
      expected("a number from 0 to 100")
      return nil
    }
    guard let value = number.real, value >= 0, value <= 100 else {
      complain("expected a number from 0 to 100, found \(source)")
      return nil
    }
    return value
  }

  /// A text that is not empty and has no NUL, which would cut it short in C.
  func string(_ wanted: String = "a string") -> String? {
    guard case .string(let value) = node.value else {
      expected(wanted)
      return nil
    }
    guard !value.isEmpty, !value.utf8.contains(0) else {
      complain(value.isEmpty ? "expected \(wanted), found an empty string" : "a NUL character inside a string")
      return nil
    }
    return value
  }

  /// What `make` makes of the text; `wanted` says what it should look like.
  func parsed<Value>(_ wanted: String, _ make: (String) -> Value?) -> Value? {
    guard let text = string(wanted) else { return nil }
    if let value = make(text) { return value }
    complain("\"\(text)\" is not \(wanted)")
    return nil
  }

  func choice<Value: RawRepresentable & CaseIterable>(_ type: Value.Type) -> Value? where Value.RawValue == String {
    let words = Value.allCases.map(\.rawValue)
    let wanted = "one of " + words.map { "\"\($0)\"" }.joined(separator: ", ")
    guard let text = string(wanted) else { return nil }
    if let value = Value(rawValue: text) { return value }
    complain("\"\(text)\" is not \(wanted)" + Suggestion.text(text, among: words))
    return nil
  }

  func elements(_ wanted: String) -> [Field]? {
    guard case .array(let nodes) = node.value else {
      expected(wanted)
      return nil
    }
    return nodes.enumerated().map { Field(node: $1, path: path.element($0), context: context) }
  }

  /// The members of an object whose keys the operator chooses, with where each key stands.
  func entries(_ wanted: String) -> [(key: Field, name: String, value: Field)]? {
    guard case .object(let members) = node.value else {
      expected(wanted)
      return nil
    }
    return members.map { member in
      let path = path.entry(member.name)
      let keyNode = JSONNode(value: .string(member.name), range: member.offset..<member.offset)
      return (
        Field(node: keyNode, path: path, context: context), member.name,
        Field(node: member.node, path: path, context: context)
      )
    }
  }
}
