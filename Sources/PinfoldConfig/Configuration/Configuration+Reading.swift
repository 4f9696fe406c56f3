import FoundationEssentials
import PinfoldModel
import PinfoldPolicy

extension Configuration {
  /// Bytes of a configuration file. The shown one has 5 KiB.
  package static let maximumFileBytes = 4 << 20

  /// Reads the file at `path` and applies the overrides of `environment`.
  ///
  /// Throws everything that is wrong with the file at once, each with its place and with what would be right.
  package static func load(path: String, environment: [String: String] = [:]) throws(FileErrors) -> Configuration {
    func failure(_ message: String) -> FileErrors {
      FileErrors(file: path, [Complaint(at: nil, path: "", message)])
    }
    let manager = FileManager.default
    var isDirectory = false
    guard manager.fileExists(atPath: path, isDirectory: &isDirectory) else {
      throw failure("no such file; write one after conf/pinfold.json5, or name it with -c FILE")
    }
    guard !isDirectory else { throw failure("a directory; name the file in it with -c FILE") }
    let contents: Data
    do { contents = try Data(contentsOf: URL(filePath: path)) } catch {
      let isDenied = (error as? CocoaError)?.code == .fileReadNoPermission
      throw failure(isDenied ? "this user may not read the file" : "the file cannot be read")
    }
    guard contents.count <= maximumFileBytes else { throw failure("the file has more than \(maximumFileBytes) bytes") }
    let absolute = path.hasPrefix("/") ? path : manager.currentDirectoryPath + "/" + path
    let directory = absolute.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
    return try parse(Array(contents), file: path, directory: directory, environment: environment)
  }

  /// Reads the text of a configuration file. `file` names it in errors, relative paths start at `directory`.
  package static func parse(
    _ bytes: [UInt8], file: String, directory: String, environment: [String: String] = [:]
  ) throws(FileErrors) -> Configuration {
    let context = FileContext(file: file, bytes: bytes[...])
    var configuration = Configuration()
    do throws(JSONError) {
      let node = try JSONNode(parsing: bytes[...])
      let reader = ConfigurationReader(context: context, directory: directory)
      configuration = reader.configuration(Field(node: node, path: .root, context: context))
    } catch {
      context.complain(error)
    }
    configuration.override(by: environment, context)
    // Behind the overrides, which may bring it about or put it right.
    let admin = configuration.admin
    if admin.port != 0, configuration.listen.contains(.socket(admin)) {
      context.complain(at: nil, "admin", "\(admin.text) is an address of \"listen\" too; right would be another port")
    }
    guard context.isEmpty else { throw context.errors }
    return configuration
  }

  /// The paths of all keys that a configuration file may have; elements of `pin_services` as `pin_services[0]`.
  package static var knownKeys: Set<String> {
    let text = Array("{pin_services: [{}]}".utf8)
    let context = FileContext(file: "", bytes: text[...])
    context.askedKeys = []
    if let node = try? JSONNode(parsing: text[...]) {
      let reader = ConfigurationReader(context: context, directory: "/")
      _ = reader.configuration(Field(node: node, path: .root, context: context))
    }
    return context.askedKeys ?? []
  }

  /// The environment variables that override keys of the file.
  package static let environmentVariables = [
    "PINFOLD_LISTEN", "PINFOLD_ADMIN", "PINFOLD_STATE_DIR", "PINFOLD_LOG_LEVEL",
  ]

  private mutating func override(by environment: [String: String], _ context: FileContext) {
    func complain(_ name: String, _ value: String, _ wanted: String) {
      context.complain(at: nil, "environment variable \(name)", "\"\(value)\" is not \(wanted)")
    }
    if let value = environment["PINFOLD_LISTEN"] {
      let addresses = value.split(separator: ",").map { ListenAddress($0) }
      if addresses.isEmpty || addresses.contains(nil) {
        complain("PINFOLD_LISTEN", value, ConfigurationReader.listenText + ", or several with commas between")
      } else {
        listen = addresses.compactMap { $0 }
      }
    }
    if let value = environment["PINFOLD_ADMIN"] {
      if let address = SocketAddress(value) {
        admin = address
      } else {
        complain("PINFOLD_ADMIN", value, ConfigurationReader.addressText)
      }
    }
    if let value = environment["PINFOLD_STATE_DIR"] {
      // Relative to what? The key of the same name starts at the file, a shell's paths where it stands.
      if value.hasPrefix("/") {
        stateDirectory = value
      } else {
        complain("PINFOLD_STATE_DIR", value, "an absolute path")
      }
    }
    if let value = environment["PINFOLD_LOG_LEVEL"] {
      if let level = LogSection.Level(rawValue: value) {
        log.level = level
      } else {
        let words = LogSection.Level.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", ")
        complain("PINFOLD_LOG_LEVEL", value, "one of \(words)")
      }
    }
  }
}
