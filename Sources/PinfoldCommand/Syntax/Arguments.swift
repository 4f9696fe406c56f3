import PinfoldModel

/// The command line of one command, read by its syntax.
struct Arguments: Equatable, Sendable {
  /// Values by the option's long name, in the order given; a switch has one empty value.
  private(set) var values: [String: [String]] = [:]
  /// Bare words, in order.
  private(set) var operands: [String] = []

  /// Reads everything behind the command's name. Options and operands may mix; `--` ends the options, `-` alone is
  /// an operand. `--name=value`, `--name value`, `-n value` and `-nvalue` are understood.
  ///
  /// Throws `ExitCode.usage` failures: unknown or repeated options, missing values, too many or too few operands.
  init(_ words: some Collection<String>, syntax: CommandSyntax) throws(CommandFailure) {
    var reader = Reader(syntax: syntax, rest: Array(words)[...])
    while let word = reader.rest.popFirst() {
      if word == "--" {
        operands += reader.rest
        break
      }
      guard word.hasPrefix("-"), word != "-" else {
        operands.append(word)
        continue
      }
      let (option, value) = try reader.option(word)
      guard option.repeats || values[option.long] == nil else {
        throw reader.misuse("option \(quoted(option.long)) is given twice")
      }
      values[option.long, default: []].append(value)
    }
    if operands.count > syntax.operands.count {
      throw reader.misuse("unexpected argument \(quoted(operands[syntax.operands.count]))")
    }
    if let missing = syntax.operands.dropFirst(operands.count).first(where: \.isRequired) {
      throw reader.misuse("\(missing.name) is missing")
    }
  }

  /// The one value of an option, if it was given.
  subscript(option: OptionSyntax) -> String? { values[option.long]?.last }

  /// All values of an option.
  func all(_ option: OptionSyntax) -> [String] { values[option.long] ?? [] }

  /// The value of an option that the command cannot do without.
  func required(_ option: OptionSyntax, of syntax: CommandSyntax) throws(CommandFailure) -> String {
    if let value = self[option] { return value }
    let name = [option.short ?? option.long, option.value].compactMap(\.self).joined(separator: " ")
    throw .usage("\(syntax.name): \(name) is missing", help: "pinfold \(syntax.name) --help")
  }

  /// Whether a switch was given.
  func has(_ option: OptionSyntax) -> Bool { values[option.long] != nil }
}

/// What is left of the words, and how to name a mistake in them.
private struct Reader {
  let syntax: CommandSyntax
  var rest: ArraySlice<String>

  mutating func option(_ word: String) throws(CommandFailure) -> (OptionSyntax, value: String) {
    let (name, attached) = Self.split(word)
    guard let option = syntax.options.first(where: { $0.long == name || $0.short == name }) else {
      let known = (syntax.options + [.help]).flatMap { [$0.long, $0.short].compactMap(\.self) }
      throw misuse("unknown option \(quoted(name))" + suggestion(for: name, among: known))
    }
    guard let valueName = option.value else {
      guard attached == nil else { throw misuse("option \(quoted(name)) takes no value") }
      return (option, "")
    }
    guard let value = attached ?? rest.popFirst() else {
      throw misuse("option \(quoted(name)) needs a value: \(valueName)")
    }
    guard !value.isEmpty else { throw misuse("option \(quoted(name)) has an empty value") }
    return (option, value)
  }

  private static func split(_ word: String) -> (name: String, attached: String?) {
    if word.hasPrefix("--") {
      guard let equals = word.firstIndex(of: "=") else { return (word, nil) }
      return (String(word[..<equals]), String(word[word.index(after: equals)...]))
    }
    guard word.count > 2 else { return (word, nil) }
    return (String(word.prefix(2)), String(word.dropFirst(2)))
  }

  func misuse(_ message: String) -> CommandFailure {
    .usage("\(syntax.name): \(message)", help: "pinfold \(syntax.name) --help")
  }
}

/// `: did you mean "…"?`, or nothing when no known word is near.
func suggestion(for word: String, among known: [String]) -> String {
  Nearest.match(word, among: known).map { ": did you mean \(quoted($0))?" } ?? ""
}
