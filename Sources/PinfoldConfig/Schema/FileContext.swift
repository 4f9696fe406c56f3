/// Gathers what is wrong with one file while it is being read.
final class FileContext {
  let file: String
  let bytes: ArraySlice<UInt8>
  private var found: [(offset: Int?, path: String, message: String)] = []
  /// Paths of all keys that were asked for, when somebody wants to know them.
  var askedKeys: Set<String>?

  /// Complaints that are kept. More help nobody, and a file of a million mistakes must not fill the memory.
  static let limit = 50

  init(file: String, bytes: ArraySlice<UInt8>) {
    self.file = file
    self.bytes = bytes
  }

  var isFull: Bool { found.count >= Self.limit }
  var isEmpty: Bool { found.isEmpty }

  func complain(at offset: Int?, _ path: String, _ message: String) {
    if !isFull { found.append((offset, path, message)) }
  }

  func complain(_ error: JSONError) { complain(at: error.offset, "", error.message) }

  func place(_ offset: Int) -> SourcePlace { SourcePlace(of: offset, in: bytes) }

  /// All complaints in the order of the file; those without a place come last.
  var errors: FileErrors {
    let ordered = found.enumerated().sorted {
      ($0.element.offset ?? .max, $0.offset) < ($1.element.offset ?? .max, $1.offset)
    }
    return FileErrors(
      file: file,
      ordered.map {
        Complaint(
          at: $0.element.offset.map(place), path: Self.oneLine($0.element.path), Self.oneLine($0.element.message))
      })
  }

  /// Text of the file stands in messages: it must not break a line of a log, nor steer a terminal.
  private static func oneLine(_ text: String) -> String {
    guard text.unicodeScalars.contains(where: isControl) else { return text }
    var result = ""
    for scalar in text.unicodeScalars {
      if isControl(scalar) {
        result += "\\u{\(String(scalar.value, radix: 16))}"
      } else {
        result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: true
    default: false
    }
  }
}

/// The path of a key, put together only when somebody reads it.
indirect enum KeyPath: Sendable {
  case root
  case member(of: KeyPath, String)
  case entry(of: KeyPath, String)
  case element(of: KeyPath, Int)

  /// `tls.tls13`
  func member(_ key: String) -> KeyPath { .member(of: self, key) }
  /// `hosts["api.example.com"]`, for keys that the operator chooses.
  func entry(_ key: String) -> KeyPath { .entry(of: self, key) }
  /// `listen[0]`
  func element(_ index: Int) -> KeyPath { .element(of: self, index) }

  var text: String {
    switch self {
    case .root: ""
    case .member(.root, let key): key
    case .member(let parent, let key): parent.text + "." + key
    case .entry(let parent, let key): "\(parent.text)[\"\(key)\"]"
    case .element(let parent, let index): "\(parent.text)[\(index)]"
    }
  }
}

/// A value of the file with its path.
struct Field {
  let node: JSONNode
  let path: KeyPath
  let context: FileContext

  var offset: Int { node.range.lowerBound }

  /// The value as it is written, its first bytes.
  var source: String {
    let start = context.bytes.startIndex + node.range.lowerBound
    return String(decoding: context.bytes[start..<start + min(node.range.count, 40)], as: UTF8.self)
  }

  func complain(_ message: String) { context.complain(at: offset, path.text, message) }

  func expected(_ wanted: String) { complain("expected \(wanted), found \(node.kind.rawValue)") }

  /// The value as text with its place, for later readers.
  func located(_ text: String) -> Located { Located(text, place: context.place(offset), path: path.text) }
}
