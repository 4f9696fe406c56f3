import PinfoldCrypto
import PinfoldSupply

/// `pinfold verify`: checks a signed bundle without any configuration.
enum VerifyCommand: Subcommand {
  static let key = OptionSyntax(
    long: "--public-key", short: "-p", value: "PUBKEY", repeats: true,
    help: "public key in base64, as keygen printed it; each one\ngiven must have signed")

  static let syntax = CommandSyntax(
    name: "verify", summary: "Check a signed policy", usage: ["-p PUBKEY [-p PUBKEY…] FILE"], options: [key],
    operands: [OperandSyntax(name: "FILE", help: "the signed policy")],
    details: """
      Prints "key: value" lines: keyid (one for each signer), version, issued, expires, hosts, and for a
      policy that rotates the keys next_keyid and next_required. The exit status is 1 when a signature is
      missing or wrong, enough of the next keys' included, or when the policy is invalid, has expired or
      is not yet issued.

      Example:
        pinfold verify -p "$(cat signing.pub)" policy.signed.json
      """)

  static func run(_ arguments: Arguments, console: Console) throws(CommandFailure) -> ExitCode {
    _ = try arguments.required(key, of: syntax)
    let trust = try trustedKeys(arguments.all(key))
    let path = arguments.operands[0]
    let bytes = try CommandFailure.reading(path, limit: SignCommand.byteLimit * 2)
    do throws(BundleRefusal) {
      let bundle = try PolicyBundle(envelope: bytes, trust: trust, file: path)
      for line in PolicySummary.lines(bundle) { console.line(line) }
      try bundle.requireAcceptable(at: WallClock.now, highest: 0)
      return .good
    } catch {
      throw CommandFailure(.failed, error.description)
    }
  }

  private static func trustedKeys(_ texts: [String]) throws(CommandFailure) -> TrustedKeys {
    var keys: [Ed25519PublicKey] = []
    for text in texts {
      do throws(CryptoError) {
        keys.append(try Ed25519PublicKey(text))
      } catch {
        throw .usage("verify: -p \(quoted(text)): \(error.description)", help: "pinfold verify --help")
      }
    }
    guard let trust = TrustedKeys(keys, required: Set(keys).count) else {
      throw .usage("verify: no key to verify with", help: "pinfold verify --help")
    }
    return trust
  }
}
