import Testing

@testable import PinfoldConfig

/// A text and what a reader makes of it.
struct JSONRow: CustomTestStringConvertible {
  var testDescription: String
  var text: String
  /// What the tree shows; `nil` when the text has to be refused.
  var shown: String?
  /// The same for strict JSON.
  var strict: String?

  init(_ name: String, _ text: String, _ shown: String?, strict: String? = nil) {
    testDescription = name
    self.text = text
    self.shown = shown
    self.strict = strict
  }

  init(both name: String, _ text: String, _ shown: String?) { self.init(name, text, shown, strict: shown) }
}

@Suite struct JSONReaderTests {
  @Test("JSON5 and strict JSON read the same text by their own rules", arguments: rows)
  func reads(_ row: JSONRow) {
    #expect(Self.show(row.text, .json5) == row.shown)
    #expect(Self.show(row.text, .json) == row.strict)
  }

  @Test func `no prefix of a document is a document`() {
    let text = #"{"a": [1, -2.5e3, true, null], 'b': {c: "x\u0041\n"}, /* d */ d: 0x1F}"#
    let bytes = Array(text.utf8)
    #expect(Self.show(text, .json5) != nil)
    for count in 0..<bytes.count {
      #expect(throws: JSONError.self) { try JSONNode(parsing: bytes[..<count]) }
    }
  }

  @Test func `a slice that does not begin at zero reads the same and counts from its own start`() throws {
    let bytes = Array("xxxx{a: 1}yy".utf8)
    let node = try JSONNode(parsing: bytes[4..<10])
    #expect(node.range == 0..<6)
    #expect(node["a"]?.range == 4..<5)
    #expect(throws: JSONError(at: 1, "a number with a leading zero")) {
      try JSONNode(parsing: Array("xx[01]".utf8)[2...])
    }
  }

  @Test func `ranges are the bytes as received`() throws {
    let text = #"{"pins": ["a" , "b"], "expires": "2026" }"#
    let bytes = Array(text.utf8)
    let node = try JSONNode(parsing: bytes[...], dialect: .json)
    let pins = try #require(node["pins"])
    #expect(String(decoding: bytes[pins.range], as: UTF8.self) == #"["a" , "b"]"#)
  }

  @Test func `thirty-two levels pass and thirty-three do not, skipped or not`() throws {
    func nested(_ count: Int) -> [UInt8] {
      Array((String(repeating: "[", count: count) + String(repeating: "]", count: count)).utf8)
    }
    _ = try JSONNode(parsing: nested(32)[...])
    #expect(throws: JSONError(at: 32, "nested deeper than 32 levels")) { try JSONNode(parsing: nested(33)[...]) }
    var reader = JSONReader(nested(33)[...])
    #expect(throws: JSONError.self) { try reader.skipValue() }
  }

  @Test func `a tree has its limit of values`() {
    let text = "[" + String(repeating: "0,", count: JSONNode.maximumCount) + "]"
    #expect(throws: JSONError.self) { try JSONNode(parsing: Array(text.utf8)[...]) }
  }

  @Test("A repeated name is refused, few members or many", arguments: [2, 15, 16, 17, 40])
  func duplicate(_ count: Int) throws {
    let members = (0..<count).map { "k\($0): 0" }
    _ = try JSONNode(parsing: Array("{\(members.joined(separator: ","))}".utf8)[...])
    for repeated in [0, count / 2, count - 1] {
      let text = "{\((members + ["\"k\(repeated)\": 0"]).joined(separator: ","))}"
      #expect(throws: JSONError.self) { try JSONNode(parsing: Array(text.utf8)[...]) }
    }
  }

  @Test func `a string of bytes that are not UTF-8 is refused`() {
    #expect(throws: JSONError(at: 0, "a string that is not UTF-8")) {
      try JSONNode(parsing: [0x22, 0xc3, 0x28, 0x22])
    }
  }

  @Test func `places count lines by LF, CR and CRLF, and columns by characters`() {
    let bytes = Array("a\nb\r\nc\rdé,x".utf8)[...]
    let places = [0, 2, 5, 7, 8, 10, 11].map { SourcePlace(of: $0, in: bytes) }
    #expect(
      places == [
        SourcePlace(line: 1, column: 1), SourcePlace(line: 2, column: 1), SourcePlace(line: 3, column: 1),
        SourcePlace(line: 4, column: 1), SourcePlace(line: 4, column: 2), SourcePlace(line: 4, column: 3),
        SourcePlace(line: 4, column: 4),
      ])
  }

  /// A form of the tree that tells every kind of value apart.
  static func show(_ text: String, _ dialect: JSONReader.Dialect) -> String? {
    (try? JSONNode(parsing: Array(text.utf8)[...], dialect: dialect)).map(show)
  }

  private static func show(_ node: JSONNode) -> String {
    switch node.value {
    case .null: "null"
    case .bool(let value): "\(value)"
    case .number(.integer(let value)): "\(value)"
    case .number(.real(let value)): "r\(value)"
    case .number(.notFinite): "not finite"
    case .string(let value): "<\(value)>"
    case .array(let elements): "[" + elements.map(show).joined(separator: " ") + "]"
    case .object(let members): "{" + members.map { "\($0.name)=\(show($0.node))" }.joined(separator: " ") + "}"
    }
  }
}
