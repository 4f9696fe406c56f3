import PinfoldLoop
import PinfoldServer

/// `pinfold run`: the proxy.
enum RunCommand: Subcommand {
  static let syntax = CommandSyntax(
    name: "run", summary: "Serve as a proxy until SIGTERM or SIGINT", usage: ["[-c FILE]"], options: [.config],
    details: """
      SIGHUP reads configuration and policies again; a mistake in them changes nothing. SIGTERM and SIGINT
      end the proxy: it takes no new tunnels, and open ones have limits.drain_seconds. The log goes to
      standard error. Without an acceptable policy it serves all the same, refuses every tunnel, and says
      so on /readyz.
      """)

  static func run(_ arguments: Arguments, console: Console) throws(CommandFailure) -> ExitCode {
    let path = try ConfigurationFile.path(arguments)
    try Signal.holding { () throws(CommandFailure) in
      try Server.start(configurationFile: path, environment: ConfigurationFile.environment).serve()
    }
    return .good
  }
}
