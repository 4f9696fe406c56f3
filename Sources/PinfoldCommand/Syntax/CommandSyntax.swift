/// What one command takes: the parser reads by it and `--help` shows it, so that the two cannot drift apart.
struct CommandSyntax: Sendable {
  /// The word after `pinfold`.
  let name: String
  /// One line, without a full stop: the list of `pinfold --help` and the first line of the command's own help.
  let summary: String
  /// What follows the name on the usage lines.
  let usage: [String]
  var options: [OptionSyntax] = []
  var operands: [OperandSyntax] = []
  /// Paragraphs and examples below the options, already wrapped.
  var details = ""
}

/// One option. Every option has a long form, and at most one letter.
struct OptionSyntax: Sendable {
  let long: String
  var short: String?
  /// Name of the value in help and errors; without it the option is a switch.
  var value: String?
  /// Whether it may be given several times.
  var repeats = false
  let help: String
}

/// One operand: a bare word of the command line.
struct OperandSyntax: Sendable {
  let name: String
  var isRequired = true
  let help: String
}

extension OptionSyntax {
  /// Shared by every command that reads the configuration.
  static let config = OptionSyntax(
    long: "--config", short: "-c", value: "FILE",
    help: "configuration file (default: pinfold.json5 here, then\n/etc/pinfold/pinfold.json5)")

  /// Understood by every command; the dispatcher answers it.
  static let help = OptionSyntax(long: "--help", short: "-h", help: "show this help")
}
