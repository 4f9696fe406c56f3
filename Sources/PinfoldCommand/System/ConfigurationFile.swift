import Glibc
import PinfoldConfig

/// The configuration a command works with, and where it came from.
struct ConfigurationFile {
  /// Looked at in this order when no file is named.
  static let defaultPaths = ["pinfold.json5", "/etc/pinfold/pinfold.json5"]

  let path: String
  let configuration: Configuration

  /// Loads the file of `-c`, or the first default one that exists. Every mistake in it is a line of the failure,
  /// whose status is `config`.
  init(_ arguments: Arguments) throws(CommandFailure) {
    path = try Self.path(arguments)
    do throws(FileErrors) {
      configuration = try Configuration.load(path: path, environment: Self.environment)
    } catch {
      throw CommandFailure(.config, error.text)
    }
  }

  /// The file of `-c`, or the first default one that exists.
  static func path(_ arguments: Arguments) throws(CommandFailure) -> String {
    if let named = arguments[.config] { return named }
    if let found = defaultPaths.first(where: { unsafe access($0, F_OK) == 0 }) { return found }
    throw CommandFailure(
      .config, "no configuration: neither \(defaultPaths.joined(separator: " nor ")) exists; name one with -c FILE")
  }

  /// The environment variables that override keys of the file.
  static var environment: [String: String] {
    var result: [String: String] = [:]
    for name in Configuration.environmentVariables { result[name] = Environment[name] }
    return result
  }
}
