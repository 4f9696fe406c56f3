import PinfoldConfig
import PinfoldModel

/// The members of one strict JSON object (RFC 8259) in the order they came, none of them twice.
struct RecordMembers {
  private let list: [(name: String, node: JSONNode)]

  /// Reads a whole text. Throws `malformed` or `duplicateMember`.
  init(_ bytes: [UInt8]) throws(PinRecordError) {
    var list: [(name: String, node: JSONNode)] = []
    var names: Set<String> = []
    var repeated: String?
    do throws(JSONError) {
      var json = JSONReader(bytes[...], dialect: .json)
      try json.beginObject()
      while let (name, offset) = try json.nextMember() {
        guard names.insert(name).inserted else {
          repeated = name
          throw JSONError(at: offset, "a member that is there twice")
        }
        list.append((name, try JSONNode(reading: &json)))
      }
      try json.end()
    } catch {
      if let repeated { throw .duplicateMember(PinRecordError.quoted(repeated)) }
      // The reader quotes names of the text.
      let message = error.message.unicodeScalars.map { $0.isASCII && $0.value >= 0x20 ? Character($0) : "?" }
      throw .malformed(String(message.prefix(160)), offset: error.offset)
    }
    self.list = list
  }

  /// All names in the order they came.
  var names: [String] { list.map(\.name) }

  /// Where the value of the member ends, in bytes from the start of the text.
  func end(of index: Int) -> Int { list[index].node.range.upperBound }

  /// Whether the member is there.
  func has(_ name: String) -> Bool { node(name) != nil }

  func string(_ name: String) throws(PinRecordError) -> String {
    let node = try demanded(name)
    guard case .string(let text) = node.value else { throw wrong(name, node, "a string") }
    return text
  }

  /// A string member that need not be there, but has to be a string when it is.
  func optionalString(_ name: String) throws(PinRecordError) -> String? {
    has(name) ? try string(name) : nil
  }

  /// A whole number from 0 to the last second of the year 9999: seconds of either kind, safe to add up.
  func seconds(_ name: String) throws(PinRecordError) -> Int64 {
    let node = try demanded(name)
    let limit: Int64 = 253_402_300_799
    guard case .number(let number) = node.value, let value = number.integer, value >= 0, value <= limit else {
      throw wrong(name, node, "a whole number of seconds, 0 or more")
    }
    return value
  }

  func strings(_ name: String) throws(PinRecordError) -> [String] {
    let node = try demanded(name)
    guard case .array(let elements) = node.value else { throw wrong(name, node, "a list of strings") }
    var result: [String] = []
    for element in elements {
      guard case .string(let text) = element.value else { throw wrong(name, node, "a list of strings") }
      result.append(text)
    }
    return result
  }

  /// A date and time of RFC 3339.
  func time(_ name: String) throws(PinRecordError) -> Timestamp {
    guard let time = Timestamp(try string(name)) else {
      throw wrong(name, try demanded(name), "a time such as \"2026-11-21T00:00:00Z\"")
    }
    return time
  }

  /// Standard base64 with its padding.
  func base64(_ name: String) throws(PinRecordError) -> [UInt8] {
    guard let bytes = Base64.decode(try string(name)) else {
      throw wrong(name, try demanded(name), "base64 with its padding")
    }
    return bytes
  }

  private func node(_ name: String) -> JSONNode? { list.first { $0.name == name }?.node }

  private func demanded(_ name: String) throws(PinRecordError) -> JSONNode {
    guard let node = node(name) else { throw .malformed("\"\(name)\" is missing", offset: 0) }
    return node
  }

  private func wrong(_ name: String, _ node: JSONNode, _ wanted: String) -> PinRecordError {
    .malformed("\"\(name)\" is not \(wanted)", offset: node.range.lowerBound)
  }
}
