import PinfoldLoop

/// One word of the command line and what it does.
protocol Subcommand: SendableMetatype {
  static var syntax: CommandSyntax { get }
  /// Does the work. A failure's message and status are shown by the caller.
  static func run(_ arguments: Arguments, console: Console) throws(CommandFailure) -> ExitCode
}

/// The command line: finds the command, answers `--help` and `--version`, shows failures.
package enum CommandLineTool {
  /// In the order of help. A command is listed when it works.
  static let commands: [any Subcommand.Type] = [
    RunCommand.self, CheckCommand.self, ExplainCommand.self, PinCommand.self, KeygenCommand.self, SignCommand.self,
    VerifyCommand.self, PinServerCommand.self, PairCommand.self, TrustCommand.self, PasswdCommand.self,
    AuditCommand.self,
    StatusCommand.self, DemoCommand.self, VersionCommand.self,
  ]

  /// Runs `pinfold` with the words behind the program's name and returns what the process exits with.
  package static func run(_ words: [String]) -> ExitCode {
    Descriptors.fillStandard()
    return run(words, console: .standard)
  }

  static func run(_ words: [String], console: Console) -> ExitCode {
    do throws(CommandFailure) {
      return try dispatch(words, console)
    } catch {
      console.complain(error.message)
      return error.status
    }
  }

  private static func dispatch(_ words: [String], _ console: Console) throws(CommandFailure) -> ExitCode {
    guard let first = words.first else { throw .usage("a command is missing", help: "pinfold --help") }
    switch first {
    case "--help", "-h", "help":
      guard first == "help", let topic = words.dropFirst().first else {
        console.line(Help.overview(of: commands.map { $0.syntax }))
        return .good
      }
      console.line(Help.text(for: try command(topic).syntax))
      return .good
    case "--version":
      return try VersionCommand.run(Arguments([], syntax: VersionCommand.syntax), console: console)
    default: break
    }
    let command = try command(first)
    let rest = words.dropFirst()
    guard !asksForHelp(rest) else {
      console.line(Help.text(for: command.syntax))
      return .good
    }
    return try command.run(Arguments(rest, syntax: command.syntax), console: console)
  }

  private static func command(_ name: String) throws(CommandFailure) -> any Subcommand.Type {
    guard let found = commands.first(where: { $0.syntax.name == name }) else {
      let kind = name.hasPrefix("-") ? "option" : "command"
      let known = commands.map { $0.syntax.name } + ["--help", "--version"]
      throw .usage("unknown \(kind) \(quoted(name))" + suggestion(for: name, among: known), help: "pinfold --help")
    }
    return found
  }

  /// Help is answered before mistakes are: who asks for it may well have made one.
  private static func asksForHelp(_ words: some Sequence<String>) -> Bool {
    for word in words where word == "--" || word == "--help" || word == "-h" { return word != "--" }
    return false
  }
}
