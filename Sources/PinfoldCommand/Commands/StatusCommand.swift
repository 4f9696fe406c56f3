import Glibc
import PinfoldConfig
import PinfoldModel

/// `pinfold status`: what a running Pinfold says of itself. It is the health check of the container image.
enum StatusCommand: Subcommand {
  static let admin = OptionSyntax(
    long: "--admin", value: "ADDR",
    help: "admin address (default: $PINFOLD_ADMIN, the configuration's, 127.0.0.1:9128)")

  static let syntax = CommandSyntax(
    name: "status", summary: "Ask a running Pinfold how it is", usage: ["[--admin ADDR]"], options: [admin],
    details: """
      Prints the status as JSON. The exit status is 0 when Pinfold serves and is ready, and 1 when it is
      not ready or does not answer, so that this command can be a health check.
      """)

  static func run(_ arguments: Arguments, console: Console) throws(CommandFailure) -> ExitCode {
    let address =
      arguments[admin] ?? Environment["PINFOLD_ADMIN"] ?? configured(in: ConfigurationFile.defaultPaths)
      ?? "127.0.0.1:9128"
    guard let client = AdminClient(address) else {
      throw .usage(
        "status: \(quoted(address)) is no address; right would be 127.0.0.1:9128 or unix:/run/pinfold/admin.sock",
        help: "pinfold status --help")
    }
    do throws(NetworkFailure) {
      let health = try client.get("/healthz")
      guard health.code == 200 else { throw NetworkFailure(message: "/healthz answers \(health.code)") }
      let ready = try client.get("/readyz")
      let status = try client.get("/status")
      guard status.code == 200 else { throw NetworkFailure(message: "/status answers \(status.code)") }
      console.line(trimmed(status.body))
      guard ready.code == 200 else {
        console.complain("not ready: \(escaped(trimmed(ready.body)))")
        return .failed
      }
      return .good
    } catch {
      throw CommandFailure(.failed, "no status from \(address): \(error.message)")
    }
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
