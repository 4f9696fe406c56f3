/// Renders help texts. They are golden texts of the tests: what is printed is what was read by somebody.
enum Help {
  private static let indent = "  "

  /// `pinfold --help`.
  static func overview(of commands: [CommandSyntax]) -> String {
    let rows = commands.map { ($0.name, $0.summary) }
    return """
      Usage: pinfold COMMAND [OPTIONS]

      A forward HTTPS proxy that lets a connection through only after the upstream's key matched a signed pin.

      Commands:
      \(table(rows))

      Options:
      \(table([("-h, --help", "show this help"), ("--version", "show the version")]))

      "pinfold COMMAND --help" explains a command. Exit status: 0 good, 1 refused or failed, 64 usage,
      78 configuration.
      """
  }

  /// `pinfold COMMAND --help`.
  static func text(for command: CommandSyntax) -> String {
    var lines: [String] = []
    for (index, usage) in command.usage.enumerated() {
      let lead = index == 0 ? "Usage: " : "       "
      lines.append("\(lead)pinfold \(command.name)\(usage.isEmpty ? "" : " \(usage)")")
    }
    lines += ["", "\(command.summary)."]
    if !command.operands.isEmpty {
      lines += ["", "Arguments:", table(command.operands.map { ($0.name, $0.help) })]
    }
    lines += ["", "Options:", table((command.options + [.help]).map { (label($0), $0.help) })]
    if !command.details.isEmpty { lines += ["", command.details] }
    return lines.joined(separator: "\n")
  }

  private static func label(_ option: OptionSyntax) -> String {
    let names = [option.short, option.long].compactMap(\.self).joined(separator: ", ")
    let value = option.value.map { " \($0)" } ?? ""
    return names + value + (option.repeats ? " …" : "")
  }

  /// Two columns; further lines of a help text stand under its first.
  private static func table(_ rows: [(String, String)]) -> String {
    let width = (rows.map(\.0.count).max() ?? 0) + 2
    return rows.map { name, help in
      let padding = String(repeating: " ", count: width - name.count)
      let hanging = "\n" + indent + String(repeating: " ", count: width)
      return indent + name + padding + help.split(separator: "\n").joined(separator: hanging)
    }.joined(separator: "\n")
  }
}
