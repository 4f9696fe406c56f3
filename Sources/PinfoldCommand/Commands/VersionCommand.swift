import PinfoldModel

/// `pinfold version`.
enum VersionCommand: Subcommand {
  static let syntax = CommandSyntax(name: "version", summary: "Show the version", usage: [""])

  static func run(_ arguments: Arguments, console: Console) throws(CommandFailure) -> ExitCode {
    console.line("pinfold \(Release.version)")
    return .good
  }
}
