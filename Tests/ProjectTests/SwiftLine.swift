/// What a scanner that knows only lines can say of Swift laid out by `swift format`: enough for rules about imports,
/// access and comments, and no more.
enum SwiftLine {
  private static let access: Set<String> = ["public", "package", "internal", "private", "fileprivate"]
  private static let modifiers: Set<String> = [
    "static", "final", "mutating", "nonmutating", "consuming", "borrowing", "indirect", "lazy", "weak", "override",
    "convenience", "required", "nonisolated", "nonisolated(unsafe)", "unowned", "prefix", "postfix", "infix",
    "isolated",
    "distributed", "dynamic", "class", "private(set)", "fileprivate(set)", "internal(set)", "unsafe",
  ]
  private static let kinds: Set<String> = [
    "func", "var", "let", "struct", "enum", "class", "actor", "protocol", "init", "typealias", "subscript",
    "associatedtype", "macro",
  ]

  /// The words of a line, leading attributes dropped; empty for a comment.
  private static func words(_ line: String) -> ArraySlice<Substring> {
    let trimmed = line.drop { $0 == " " }
    guard !trimmed.hasPrefix("//") else { return [] }
    return trimmed.split(separator: " ").drop { $0.hasPrefix("@") }
  }

  /// The module that an import line names, in any of its spellings.
  static func importedModule(_ line: String) -> String? {
    var words = words(line)
    while let first = words.first, access.contains(String(first)) { words = words.dropFirst() }
    guard words.first == "import" else { return nil }
    words = words.dropFirst()
    if words.count > 1, let kind = words.first, kinds.contains(String(kind)) { words = words.dropFirst() }
    return words.first.map { String($0.prefix { $0 != "." && $0 != ";" }) }
  }

  /// Whether the line begins a declaration with `package` access that has to be documented. The functions that
  /// protocols of the standard library prescribe need no words of ours.
  static func beginsPackageDeclaration(_ line: String) -> Bool {
    var words = words(line)
    var isPackage = false
    while let first = words.first {
      if first == "package" {
        isPackage = true
      } else if first == "class" || !modifiers.contains(String(first)) {
        break
      }
      words = words.dropFirst()
    }
    guard isPackage, let kind = words.first else { return false }
    let name = String(words.dropFirst().first ?? "")
    let prescribed = ["==", "<", "hash(into", "encode(to", "description:", "deinit"]
    guard !prescribed.contains(where: { name == $0 || name.hasPrefix($0) }) else { return false }
    return kinds.contains {
      kind == $0 || kind.hasPrefix("\($0)(") || kind.hasPrefix("\($0)?") || kind.hasPrefix("\($0)<")
    }
  }

  /// Whether a doc comment stands over the line, attributes in between allowed. One comment may stand over a block of
  /// properties of one line each, without an empty line between them: a table of numbers, or two ends of one thing.
  static func isDocumented(_ index: Int, in lines: [String]) -> Bool {
    let isProperty = isOneLineProperty(lines[index])
    for (place, line) in lines[..<index].enumerated().reversed() {
      let trimmed = line.drop { $0 == " " }
      if trimmed.hasPrefix("///") { return true }
      if isProperty, isOneLineProperty(line) { continue }
      // A type that is nothing but a table of constants says it all in its own comment.
      if lines[index].contains("static let "), line.hasSuffix("{") { return isDocumented(place, in: lines) }
      guard trimmed.hasPrefix("@") || trimmed.hasPrefix("#if") else { return false }
    }
    return false
  }

  /// Whether the line begins a declaration for users outside the package.
  static func beginsPublicDeclaration(_ line: String) -> Bool {
    let words = words(line)
    guard let place = words.firstIndex(where: { $0 == "public" || $0 == "open" }) else { return false }
    return words[..<place].allSatisfy { modifiers.contains(String($0)) }
      && words[place...].dropFirst().first.map { word in
        modifiers.contains(String(word)) || word == "import"
          || kinds.contains { word == $0 || word.hasPrefix("\($0)(") }
      } ?? false
  }

  private static func isOneLineProperty(_ line: String) -> Bool {
    beginsPackageDeclaration(line) && (line.contains(" let ") || line.contains(" var ")) && !line.hasSuffix("{")
  }

  /// The line without its trailing comment and without what stands between quotation marks.
  static func code(_ line: String) -> String {
    var result = ""
    var isQuoted = false
    var previous: Character = " "
    for character in line {
      if character == "\"", previous != "\\" { isQuoted.toggle() }
      if !isQuoted {
        if character == "/", previous == "/" { return String(result.dropLast()) }
        result.append(character)
      }
      previous = character
    }
    return result
  }

  /// Whether the line carries a comment, or the line above is one.
  static func hasComment(_ index: Int, in lines: [String]) -> Bool {
    if code(lines[index]).count < lines[index].count, lines[index].contains("//") { return true }
    return index > 0 && lines[index - 1].drop { $0 == " " }.hasPrefix("//")
  }
}
