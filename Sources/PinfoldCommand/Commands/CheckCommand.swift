import PinfoldConfig
import PinfoldModel
import PinfoldPolicy
import PinfoldServer
import PinfoldSupply

/// `pinfold check`: everything that `run` would load, and what weakens it.
enum CheckCommand: Subcommand {
  static let syntax = CommandSyntax(
    name: "check", summary: "Load the configuration with all it names, and say what would be in force",
    usage: ["[-c FILE]"], options: [.config],
    details: """
      Prints "key: value" lines of what "run" would put in force, and a line "warning: …" for everything
      that weakens it. Policies with a URL are fetched; nothing is changed. The exit status is 78 when the
      configuration cannot be used, and 1 when a policy is refused.
      """)

  static func run(_ arguments: Arguments, console: Console) throws(CommandFailure) -> ExitCode {
    let file = try ConfigurationFile(arguments)
    let loaded = try LoadedPolicy(file, fetches: true)
    let users: CredentialList?
    do throws(FileErrors) {
      users = try CredentialList.load(file.configuration, file: file.path)
    } catch {
      throw CommandFailure(.config, error.text)
    }
    for line in lines(file, loaded, users) { console.line(line) }
    var warnings =
      file.configuration.warnings + (users?.warnings ?? []) + (loaded.bundle?.document.warnings ?? [])
      + (loaded.bundle?.document.warnings(under: file.configuration) ?? []) + loaded.warnings
      + (loaded.bundle?.document.warnings(at: loaded.now) ?? []) + KeyLogPlace.warnings(file.configuration)
      + AuditPlace.warnings(file.configuration) + CacheWarnings.list(file.configuration)
    if case .failure(let error) = loaded.install { warnings.append(error.description) }
    for warning in warnings { console.line("warning: \(warning)") }
    if let trust = loaded.trust, !trust.links.isEmpty {
      console.line(
        "warning: policy.trusted_keys: other keys count since version \(trust.version); put them there, since a new "
          + "installation begins with the configured ones")
    }
    for refusal in loaded.refusals { console.complain("refused: \(refusal)") }
    if loaded.bundle == nil, !file.configuration.policy.bundles.isEmpty {
      console.complain("no policy would be in force: every tunnel would be refused")
    }
    return loaded.refusals.isEmpty ? .good : .failed
  }

  private static func lines(
    _ file: ConfigurationFile, _ loaded: LoadedPolicy, _ users: CredentialList?
  ) -> [String] {
    let configuration = file.configuration
    var lines = ["configuration: \(file.path)"]
    lines += configuration.listen.map { "listen: \($0.text)" }
    if let users, let path = configuration.access.credentialsFile {
      lines.append("credentials: \(path) (\(users.count))")
    }
    lines += [
      "admin: \(configuration.admin.text)",
      "state_dir: \(configuration.stateDirectory)",
      "authorities: \(configuration.tls.caFile?.text ?? "system")",
      "unpinned: \(configuration.policy.unpinned.rawValue)",
      "tls13: \(configuration.tls.tls13.rawValue)",
      "device_id: " + (loaded.device.map { "\($0.text) (\($0.source.rawValue))" } ?? "not known"),
      "install_id: \(Self.text(loaded.install))",
      "policy: \(loaded.bundle?.file ?? "none")",
    ]
    for service in loaded.services.all {
      let domains = service.section.domains.map(\.text).joined(separator: " ")
      lines.append("pin_service: \(service.urls.map(\.origin).joined(separator: " ")) for \(domains)")
      lines += service.keys.ids.map { "pin_service_keyid: \($0)" }
    }
    if let bundle = loaded.bundle { lines += PolicySummary.lines(bundle) }
    if let trust = loaded.trust, !trust.links.isEmpty { lines += PolicySummary.rotated(trust) }
    return lines
  }

  private static func text(_ install: Result<InstallID?, InstallIDError>) -> String {
    switch install {
    case .success(let id?): id.text
    case .success(nil): "none yet; made at the first start"
    case .failure: "not known"
    }
  }
}
