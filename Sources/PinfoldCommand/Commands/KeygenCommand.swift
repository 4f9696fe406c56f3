import PinfoldCrypto

/// `pinfold keygen`: makes the key that signs policies.
enum KeygenCommand: Subcommand {
  static let output = OptionSyntax(
    long: "--output", short: "-o", value: "FILE", help: "where the secret key goes (mode 0600; never overwritten)")

  static let syntax = CommandSyntax(
    name: "keygen", summary: "Make a key that signs policies", usage: ["-o FILE"], options: [output],
    details: """
      Standard output is one line: the public key in base64, for policy.trusted_keys of the configuration
      and for "pinfold verify -p". Keep the secret key away from the machines that run the proxy.

      Example:
        pinfold keygen -o signing.key > signing.pub
      """)

  static func run(_ arguments: Arguments, console: Console) throws(CommandFailure) -> ExitCode {
    let path = try arguments.required(output, of: syntax)
    do throws(CryptoError) {
      let key = try Ed25519SecretKey()
      try key.write(to: path)
      console.line(key.publicKey.text)
      return .good
    } catch {
      if case .file(let file) = error, file.isOccupied {
        throw CommandFailure(.failed, "cannot create \(quoted(path)): a file of that name exists, and keys are kept")
      }
      throw CommandFailure(.failed, "cannot make a key: \(error.description)")
    }
  }
}
