import PinfoldConfig
import PinfoldModel
import PinfoldPolicy

/// `pinfold trust`: the devices whose keys are trusted apart from any policy.
enum TrustCommand: Subcommand {
  static let syntax = CommandSyntax(
    name: "trust", summary: "List or forget the trusted keys of devices",
    usage: ["list [-c FILE]", "forget [-c FILE] HOST[:PORT]"], options: [.config],
    operands: [
      OperandSyntax(name: "list|forget", help: "what to do"),
      OperandSyntax(
        name: "HOST[:PORT]", isRequired: false, help: "the device to forget; without a port, on every port"),
    ],
    details: """
      "list" prints a line for each device: host and port, pin, since when, and whether the key was the
      first one seen (first_use) or paired. "forget" prints what it forgot; the exit status is 1 when
      there was nothing. A running proxy takes the change within some seconds: a paired device is
      unpinned then, and a rule with trust_on_first_use learns anew.
      """)

  static func run(_ arguments: Arguments, console: Console) throws(CommandFailure) -> ExitCode {
    switch arguments.operands[0] {
    case "list":
      guard arguments.operands.count == 1 else {
        throw .usage("trust: unexpected argument \(quoted(arguments.operands[1]))", help: "pinfold trust --help")
      }
      return try list(try ConfigurationFile(arguments), console)
    case "forget":
      guard arguments.operands.count == 2 else {
        throw .usage("trust: HOST[:PORT] is missing", help: "pinfold trust --help")
      }
      return try forget(arguments.operands[1], arguments, console)
    case let word:
      throw .usage(
        "trust: unknown word \(quoted(word)); right would be list or forget", help: "pinfold trust --help")
    }
  }

  private static func list(_ file: ConfigurationFile, _ console: Console) throws(CommandFailure) -> ExitCode {
    let (devices, problems) = try TrustStoreAccess(file.configuration, console: console).devices()
    for device in devices { console.line(line(device)) }
    for problem in problems { console.complain(problem) }
    return problems.isEmpty ? .good : .failed
  }

  private static func line(_ device: TrustStoreAccess.Device) -> String {
    "\(device.authority.text)  \(device.key.pin.text)  \(device.key.since.text)  \(device.key.origin.rawValue)"
  }

  private static func forget(
    _ text: String, _ arguments: Arguments, _ console: Console
  ) throws(CommandFailure) -> ExitCode {
    let one = Authority(text)
    let host = one?.host ?? HostName(text, bracketed: text.hasPrefix("["))
    guard let host else {
      throw .usage(
        "trust: \(quoted(text)) is no host; right would be printer.local, 192.168.1.42:8443 or [fd00::1]:443",
        help: "pinfold trust --help")
    }
    let file = try ConfigurationFile(arguments)
    try StateOwner.assume(file.configuration.stateDirectory)
    let store = try TrustStoreAccess(file.configuration, console: console)
    let (devices, problems) = store.devices()
    let found = devices.filter { $0.authority.host == host && (one == nil || $0.authority == one) }
    for device in found {
      try store.forget(device.authority)
      console.line("forgotten: \(line(device))")
    }
    // A record that cannot be read is not among them, and stands in the way of a new one.
    if found.isEmpty, let one, isBroken(one, store) {
      try store.forget(one)
      console.line("forgotten: \(one.text)")
      return .good
    }
    guard !found.isEmpty else {
      for problem in problems { console.complain(problem) }
      throw CommandFailure(.failed, "no key of \(one?.text ?? host.text) is trusted")
    }
    return .good
  }

  private static func isBroken(_ authority: Authority, _ store: TrustStoreAccess) -> Bool {
    do {
      _ = try store.key(of: authority)
      return false
    } catch {
      return true
    }
  }
}
