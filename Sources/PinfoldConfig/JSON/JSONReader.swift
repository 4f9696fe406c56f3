/// Reads JSON5 (spec.json5.org) or strict JSON (RFC 8259) piece by piece, without building anything.
///
/// The caller asks for what should come next; the reader says what is there, or where it is not. Memory does not grow
/// with the text, nesting is bounded. Member names may repeat here: who reads an object has to refuse that.
package struct JSONReader {
  /// Which extensions pass.
  package enum Dialect: Sendable {
    /// RFC 8259 to the letter: for what machines send.
    case json
    /// What people write.
    case json5
  }

  /// What begins at the next byte.
  package enum Kind: String, Sendable {
    case object = "an object"
    case array = "a list"
    case string = "a string"
    case number = "a number"
    case bool = "true or false"
    case null
  }

  /// Levels of nesting. The deepest document of ours has six.
  package static let maximumDepth = 32

  let bytes: ArraySlice<UInt8>
  let dialect: Dialect
  /// Index of the next byte in `bytes`.
  var position: Int
  /// Per open container: whether nothing was read of it yet.
  private var fresh: [Bool] = []

  /// Begins at the first byte; in JSON5 a byte order mark is skipped.
  package init(_ bytes: ArraySlice<UInt8>, dialect: Dialect = .json5) {
    self.bytes = bytes
    self.dialect = dialect
    position = bytes.startIndex
    if dialect == .json5, bytes.starts(with: [0xef, 0xbb, 0xbf]) { position += 3 }
  }

  /// Offset of the next byte from the start of the text.
  package var offset: Int { position - bytes.startIndex }

  var next: UInt8? { position < bytes.endIndex ? bytes[position] : nil }

  func byte(after distance: Int) -> UInt8? {
    position + distance < bytes.endIndex ? bytes[position + distance] : nil
  }

  func error(_ message: String, at place: Int? = nil) -> JSONError {
    JSONError(at: (place ?? position) - bytes.startIndex, message)
  }

  /// What stands at the next byte, for a message.
  var found: String {
    guard let next else { return "the end of the text" }
    let scalar = Unicode.Scalar(next)
    return next >= 0x21 && next < 0x7f ? "\"\(scalar)\"" : "byte 0x\(String(next, radix: 16))"
  }

  // MARK: Structure

  /// Skips white space and comments, then says what begins; its offset is `offset` afterwards.
  package mutating func peek() throws(JSONError) -> Kind {
    try skipSpace()
    switch next {
    case 0x7b: return .object
    case 0x5b: return .array
    case 0x22: return .string
    case 0x27 where dialect == .json5: return .string
    case 0x74, 0x66: return .bool
    case 0x6e: return .null
    case (0x30...0x39)?, 0x2d: return .number
    case 0x2b, 0x2e, 0x49, 0x4e: if dialect == .json5 { return .number }
    default: break
    }
    throw error("expected a value, found \(found)")
  }

  /// Enters an object; then call `nextMember` until it answers `nil`, reading one value after each name.
  package mutating func beginObject() throws(JSONError) { try begin(.object) }

  /// Enters a list; then call `nextElement` until it answers `false`, reading one value after each `true`.
  package mutating func beginArray() throws(JSONError) { try begin(.array) }

  private mutating func begin(_ wanted: Kind) throws(JSONError) {
    let kind = try peek()
    guard kind == wanted else { throw error("expected \(wanted.rawValue), found \(kind.rawValue)") }
    guard fresh.count < Self.maximumDepth else { throw error("nested deeper than \(Self.maximumDepth) levels") }
    fresh.append(true)
    position += 1
  }

  /// The next member's name with its offset, or `nil` behind the closing brace.
  package mutating func nextMember() throws(JSONError) -> (name: String, offset: Int)? {
    guard try advance(closing: 0x7d, name: "}") else { return nil }
    let start = offset
    let name = try memberName()
    try skipSpace()
    guard next == 0x3a else { throw error("expected \":\" after a member's name, found \(found)") }
    position += 1
    return (name, start)
  }

  /// Whether an element follows.
  package mutating func nextElement() throws(JSONError) -> Bool { try advance(closing: 0x5d, name: "]") }

  private mutating func advance(closing: UInt8, name: String) throws(JSONError) -> Bool {
    try skipSpace()
    guard let isFresh = fresh.last else { throw error("no object or list is open") }
    if !isFresh, next != closing {
      guard next == 0x2c else { throw error("expected \",\" or \"\(name)\", found \(found)") }
      let comma = position
      position += 1
      try skipSpace()
      if next == closing, dialect == .json { throw error("a trailing comma", at: comma) }
    }
    fresh[fresh.count - 1] = false
    guard next == closing else { return true }
    position += 1
    fresh.removeLast()
    return false
  }

  /// Demands that nothing but white space and comments is left.
  package mutating func end() throws(JSONError) {
    try skipSpace()
    guard next == nil else { throw error("expected the end of the text, found \(found)") }
  }

  // MARK: Words

  /// Reads `true` or `false`.
  package mutating func bool() throws(JSONError) -> Bool {
    let kind = try peek()
    guard kind == .bool else { throw error("expected true or false, found \(kind.rawValue)") }
    let isTrue = next == 0x74
    try word(isTrue ? "true" : "false")
    return isTrue
  }

  /// Reads `null`.
  package mutating func null() throws(JSONError) {
    let kind = try peek()
    guard kind == .null else { throw error("expected null, found \(kind.rawValue)") }
    try word("null")
  }

  /// A word that must not run on into a longer one.
  mutating func word(_ text: StaticString) throws(JSONError) {
    let wanted = Array(text.description.utf8)
    guard bytes[position...].starts(with: wanted) else { throw error("expected \(text), found another word") }
    let start = position
    position += wanted.count
    if runsOn { throw error("expected \(text), found a longer word", at: start) }
  }

  /// Whether the next byte would belong to the word or number before it.
  var runsOn: Bool {
    guard let next, Self.continuesWord(next) else { return false }
    return next < 0x80 || wideSpace() == nil
  }

  static func continuesWord(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x5f, 0x24, 0x80...: true
    default: false
    }
  }

  /// Reads one value of any kind and forgets it.
  package mutating func skipValue() throws(JSONError) {
    switch try peek() {
    case .object:
      try beginObject()
      while try nextMember() != nil { try skipValue() }
    case .array:
      try beginArray()
      while try nextElement() { try skipValue() }
    case .string: try skipString()
    case .number: _ = try number()
    case .bool: _ = try bool()
    case .null: try null()
    }
  }
}
