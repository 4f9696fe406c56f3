import Glibc
import PinfoldConfig
import PinfoldModel

/// `pinfold status`: what a running Pinfold says of itself. It is the health check of the container image.
enum StatusCommand: Subcommand {
  static let admin = OptionSyntax(
    long: "--admin", value: "ADDR",
    help: "admin address (default: $PINFOLD_ADMIN, the configuration's, 127.0.0.1:9128)")
  static let format = OptionSyntax(
    long: "--format", value: "WORD", help: "\"text\" or \"json\" (default: text on a terminal, JSON elsewhere)")
  static let host = OptionSyntax(
    long: "--rearm", value: "HOST",
    help: "end the suspensions of the rule that speaks for\nHOST[:PORT], and print what came of it")
  static let tokenFile = OptionSyntax(
    long: "--token-file", value: "FILE",
    help: "token for --rearm (default: admin.token in the\nconfiguration's state_dir)")

  static let syntax = CommandSyntax(
    name: "status", summary: "Ask a running Pinfold how it is",
    usage: ["[-c FILE] [--admin ADDR] [--format WORD]", "[-c FILE] [--admin ADDR] [--token-file FILE] --rearm HOST"],
    options: [.config, admin, format, host, tokenFile],
    details: """
      Prints the status: alerts and suspensions of the breaker among it. The exit status is 0 when Pinfold
      serves and is ready, and 1 when it is not ready or does not answer, so that this command can be a
      health check. With --rearm it is 0 when the rule is armed.
      """)

  static func run(_ arguments: Arguments, console: Console) throws(CommandFailure) -> ExitCode {
    let isText = try isText(arguments, console)
    if arguments[tokenFile] != nil, arguments[host] == nil {
      throw .usage("status: --token-file is for --rearm HOST, which is missing", help: "pinfold status --help")
    }
    let address = try address(arguments)
    guard let client = AdminClient(address) else {
      throw .usage(
        "status: \(quoted(address)) is no address; right would be 127.0.0.1:9128", help: "pinfold status --help")
    }
    if let text = arguments[host] { return try rearm(text, arguments, client, address, console) }
    do throws(NetworkFailure) {
      let health = try client.get("/healthz")
      guard health.code == 200 else { throw NetworkFailure(message: "/healthz answers \(health.code)") }
      let ready = try client.get("/readyz")
      let status = try client.get("/status")
      guard status.code == 200 else { throw NetworkFailure(message: "/status answers \(status.code)") }
      if isText, let report = StatusReport(json: status.body) {
        for line in report.lines { console.line(line) }
      } else {
        console.line(trimmed(status.body))
      }
      guard ready.code == 200 else {
        console.complain("not ready: \(escaped(trimmed(ready.body)))")
        return .failed
      }
      return .good
    } catch {
      throw CommandFailure(.failed, "no status from \(address): \(error.message)")
    }
  }

  private static func isText(_ arguments: Arguments, _ console: Console) throws(CommandFailure) -> Bool {
    switch arguments[format] {
    case nil: return console.isTerminal
    case "text": return true
    case "json": return false
    case let word?:
      throw .usage("status: \(quoted(word)) is no format; right would be text or json", help: "pinfold status --help")
    }
  }

  // MARK: Re-arming

  private static func rearm(
    _ text: String, _ arguments: Arguments, _ client: AdminClient, _ address: String, _ console: Console
  ) throws(CommandFailure) -> ExitCode {
    guard let authority = DomainNames.authority(text, defaultPort: 443) else {
      throw .usage(
        "status: \(quoted(text)) is no host; right would be api.example.com or 192.0.2.1:8443",
        help: "pinfold status --help")
    }
    let token = try token(arguments)
    do throws(NetworkFailure) {
      // Brackets around IPv6 are no characters of a query (RFC 3986 §3.4).
      let query = authority.text.replacing("[", with: "%5B").replacing("]", with: "%5D")
      let answer = try client.post("/rearm?host=\(query)", token: token)
      let said = escaped(trimmed(answer.body))
      guard answer.code == 200 else { throw NetworkFailure(message: "\(said) (\(answer.code))") }
      console.line(said)
      return .good
    } catch {
      throw CommandFailure(.failed, "not re-armed at \(address): \(error.message)")
    }
  }

  private static func token(_ arguments: Arguments) throws(CommandFailure) -> String {
    let path: String
    if let named = arguments[tokenFile] {
      path = named
    } else {
      path = try ConfigurationFile(arguments).configuration.stateDirectory + "/admin.token"
    }
    let bytes: [UInt8]
    do throws(FileFailure) { bytes = try FileAccess.read(path, limit: 4096) } catch {
      throw CommandFailure(.failed, "\(error.message); name the running Pinfold's token with --token-file FILE")
    }
    let text = trimmed(String(decoding: bytes, as: UTF8.self))
    // Anything else could end the field and begin another.
    guard !text.isEmpty, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else {
      throw CommandFailure(.failed, "\(quoted(path)) holds no token")
    }
    return text
  }

  // MARK: Where to ask

  private static func address(_ arguments: Arguments) throws(CommandFailure) -> String {
    if let named = arguments[admin] { return named }
    // A file that is named has to be right: what another instance answers would pass for this one's.
    if arguments[.config] != nil { return try ConfigurationFile(arguments).configuration.admin.text }
    return Environment["PINFOLD_ADMIN"] ?? configured(in: ConfigurationFile.defaultPaths) ?? "127.0.0.1:9128"
  }

  /// The admin address of the first of these files, so that a health check follows a changed one; `nil` when there is
  /// no file or it cannot be used.
  static func configured(in paths: [String]) -> String? {
    guard let path = paths.first(where: { unsafe access($0, F_OK) == 0 }) else { return nil }
    return (try? Configuration.load(path: path))?.admin.text
  }

  private static func trimmed(_ body: String) -> String {
    var text = body[...]
    while let last = text.last, last.isWhitespace { text.removeLast() }
    return String(text)
  }
}
