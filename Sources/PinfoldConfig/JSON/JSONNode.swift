/// A small JSON text as a tree that remembers where each value stood.
package struct JSONNode: Sendable {
  /// What a value can be; numbers as written, members in order.
  package indirect enum Value: Sendable {
    case null
    case bool(Bool)
    case number(JSONNumber)
    case string(String)
    case array([JSONNode])
    case object([JSONMember])
  }

  /// What the value is.
  package var value: Value
  /// The bytes of the value, counted from the start of the text.
  package var range: Range<Int>

  /// Values in one tree. A tree is for configuration files and envelopes; what grows is read piece by piece.
  package static let maximumCount = 100_000

  init(value: Value, range: Range<Int>) {
    self.value = value
    self.range = range
  }

  /// Reads a whole text. Member names that repeat are refused.
  package init(parsing bytes: ArraySlice<UInt8>, dialect: JSONReader.Dialect = .json5) throws(JSONError) {
    var reader = JSONReader(bytes, dialect: dialect)
    try self.init(reading: &reader)
    try reader.end()
  }

  /// Reads the reader's next value.
  package init(reading reader: inout JSONReader) throws(JSONError) {
    var budget = Self.maximumCount
    try self.init(reading: &reader, budget: &budget)
  }

  private init(reading reader: inout JSONReader, budget: inout Int) throws(JSONError) {
    let kind = try reader.peek()
    let start = reader.offset
    budget -= 1
    guard budget >= 0 else { throw JSONError(at: start, "more than \(Self.maximumCount) values") }
    switch kind {
    case .null:
      try reader.null()
      value = .null
    case .bool: value = .bool(try reader.bool())
    case .number: value = .number(try reader.number())
    case .string: value = .string(try reader.string())
    case .array:
      var elements: [JSONNode] = []
      try reader.beginArray()
      while try reader.nextElement() { elements.append(try JSONNode(reading: &reader, budget: &budget)) }
      value = .array(elements)
    case .object: value = .object(try Self.members(&reader, &budget))
    }
    range = start..<reader.offset
  }

  private static func members(_ reader: inout JSONReader, _ budget: inout Int) throws(JSONError) -> [JSONMember] {
    var members: [JSONMember] = []
    var names: Set<String> = []
    try reader.beginObject()
    while let (name, offset) = try reader.nextMember() {
      // Few members are compared one by one; a set pays off later.
      let isNew = members.count < 16 ? !members.contains { $0.name == name } : !names.contains(name)
      guard isNew else { throw JSONError(at: offset, "the member \"\(name)\" is there twice") }
      members.append(JSONMember(name: name, offset: offset, node: try JSONNode(reading: &reader, budget: &budget)))
      if members.count == 16 { names = Set(members.map(\.name)) } else if members.count > 16 { names.insert(name) }
    }
    return members
  }

  /// What kind of value this is, for messages.
  package var kind: JSONReader.Kind {
    switch value {
    case .null: .null
    case .bool: .bool
    case .number: .number
    case .string: .string
    case .array: .array
    case .object: .object
    }
  }

  /// The member of an object; `nil` for other names and other kinds.
  package subscript(_ name: String) -> JSONNode? {
    guard case .object(let members) = value else { return nil }
    return members.first { $0.name == name }?.node
  }
}

/// One member of an object.
package struct JSONMember: Sendable {
  /// The name with its escapes resolved.
  package var name: String
  /// Where the name stands.
  package var offset: Int
  package var node: JSONNode
}
