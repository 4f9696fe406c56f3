import PinfoldLoop
import PinfoldServer

/// `pinfold demo`: shows itself on loopback.
enum DemoCommand: Subcommand {
  static let once = OptionSyntax(long: "--once", help: "end after the self-check, with 0 or 1")
  static let port = OptionSyntax(long: "--port", value: "PORT", help: "port of the proxy (default: 3128)")
  static let adminPort = OptionSyntax(
    long: "--admin-port", value: "PORT", help: "port of the admin site (default: 9128)")

  static let syntax = CommandSyntax(
    name: "demo", summary: "Show Pinfold at work on loopback, with servers and keys of its own",
    usage: ["[--once] [--port PORT] [--admin-port PORT]"], options: [once, port, adminPort],
    details: """
      Makes a throw-away authority, servers for TLS 1.2 and TLS 1.3, a signing key and a signed policy,
      serves as a proxy on 127.0.0.1, and has curl fetch pages through it: from servers with the pinned
      key, which passes, and from servers with another key, which is refused. Then it serves until Ctrl-C,
      or until its terminal is closed. Nothing of it stays behind.
      """)

  static func run(_ arguments: Arguments, console: Console) throws(CommandFailure) -> ExitCode {
    let proxyPort = try number(arguments, port, default: 3128)
    let adminPort = try number(arguments, adminPort, default: 9128)
    guard proxyPort != adminPort else {
      throw .usage("demo: proxy and admin site need two ports", help: "pinfold demo --help")
    }
    guard let curl = ChildProcess.find("curl") else {
      throw CommandFailure(.failed, "the demonstration needs curl in PATH; on Debian: apt-get install curl")
    }
    try CommandFailure.failing { () throws(NetworkFailure) in
      try LocalPort.demandFree(proxyPort, option: port.long)
      try LocalPort.demandFree(adminPort, option: self.adminPort.long)
    }
    let endsItself = arguments.has(once)
    return try Signal.holding { () throws(CommandFailure) in
      try serve(port: proxyPort, adminPort: adminPort, curl: curl, endsItself: endsItself, console: console)
    }
  }

  /// Makes everything, serves, and takes everything away again.
  private static func serve(
    port proxyPort: UInt16, adminPort: UInt16, curl: String, endsItself: Bool, console: Console
  ) throws(CommandFailure) -> ExitCode {
    let setup = try DemoSetup(port: proxyPort, adminPort: adminPort)
    // Its servers stop and its files go with it.
    defer { withExtendedLifetime(setup) {} }
    let text = DemoText(
      port: proxyPort, adminPort: adminPort, caFile: setup.caFile, configFile: setup.configurationFile,
      program: CommandLine.arguments.first ?? "pinfold")
    guard let admin = AdminClient("127.0.0.1:\(adminPort)") else {
      throw CommandFailure(.failed, "no admin address")
    }
    let tour = DemoTour(console: console, text: text, curl: curl, admin: admin)
    let server = try Server.start(configurationFile: setup.configurationFile, environment: [:])
    let thread: LoopThread
    do throws(IOError) {
      thread = try LoopThread(name: "demo", loop: try EventLoop())
    } catch {
      throw CommandFailure(.failed, "cannot start: \(error.text)")
    }
    thread.loop.execute {
      tour.run { if endsItself { server.drain() } else { console.line(text.suggestions) } }
    }
    try server.serve(endsWithTerminal: true)
    thread.stop()
    // Whoever ends a demonstration by Ctrl-C has seen enough; --once promises a whole one.
    return tour.isGood ?? !endsItself ? .good : .failed
  }

  private static func number(
    _ arguments: Arguments, _ option: OptionSyntax, default fallback: UInt16
  ) throws(CommandFailure) -> UInt16 {
    guard let text = arguments[option] else { return fallback }
    guard let number = UInt16(text), number > 0, String(number) == text else {
      throw .usage(
        "demo: \(option.long) \(quoted(text)) is no port; right would be 1 to 65535", help: "pinfold demo --help")
    }
    return number
  }
}
