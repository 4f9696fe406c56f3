import PinfoldConfig
import PinfoldCrypto
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply

/// `pinfold sign`: makes a signed bundle of a policy.
enum SignCommand: Subcommand {
  static let key = OptionSyntax(
    long: "--key", short: "-k", value: "FILE", repeats: true, help: "secret key, as keygen made it; give all that sign")
  static let output = OptionSyntax(
    long: "--output", short: "-o", value: "OUT", help: "where the signed policy goes; replaced in one step")

  static let syntax = CommandSyntax(
    name: "sign", summary: "Check a policy and sign it", usage: ["-k FILE [-k FILE…] POLICY -o OUT"],
    options: [key, output], operands: [OperandSyntax(name: "POLICY", help: "the policy document (JSON5)")],
    details: """
      The policy is read by the parser that "run" uses; nothing is signed that "run" would refuse for its
      form. Raise its version with every change: an older one never replaces the one in force. A policy
      that rotates the keys (trusted_keys) needs the keys that count now and enough of the next ones.

      Example:
        pinfold sign -k signing.key policy.json5 -o policy.signed.json
      """)

  /// Bytes of a policy document: far above the default of `policy.max_bundle_bytes`.
  static let byteLimit = 256 << 20

  static func run(_ arguments: Arguments, console: Console) throws(CommandFailure) -> ExitCode {
    let target = try arguments.required(output, of: syntax)
    _ = try arguments.required(key, of: syntax)
    let path = arguments.operands[0]
    for input in [path] + arguments.all(key) where FileAccess.areSame(target, input) {
      throw CommandFailure(
        .failed, "-o \(quoted(target)) would replace \(quoted(input)), which is read here; name another file")
    }
    let bytes = try CommandFailure.reading(path, limit: byteLimit)
    let document: PolicyDocument
    do throws(FileErrors) {
      document = try PolicyDocument(reading: bytes[...], file: path)
    } catch {
      throw CommandFailure(.failed, error.text)
    }
    let keys = try secretKeys(arguments.all(key), console)
    let bundle = PolicyBundle.sign(bytes, keys: keys)
    let signed = try reading(bundle, keys.map(\.publicKey), path)
    do throws(FileFailure) {
      try FileAccess.replace(target, bundle, mode: 0o644)
    } catch {
      throw CommandFailure(.failed, error.message)
    }
    warn(of: document, size: bundle.count, console)
    for line in PolicySummary.lines(signed) { console.line(line) }
    return .good
  }

  /// The bundle as proxies will read it. One that rotates the keys has to be signed by enough of the next ones: they
  /// all sign here, so what is missing would be missing for good.
  private static func reading(
    _ bundle: [UInt8], _ keys: [Ed25519PublicKey], _ path: String
  ) throws(CommandFailure) -> PolicyBundle {
    guard let trust = TrustedKeys(keys, required: keys.count) else { throw CommandFailure(.failed, "no key signs") }
    do throws(BundleRefusal) {
      return try PolicyBundle(envelope: bundle, trust: trust, file: path)
    } catch {
      throw CommandFailure(.failed, error.description)
    }
  }

  private static func secretKeys(_ paths: [String], _ console: Console) throws(CommandFailure) -> [Ed25519SecretKey] {
    var keys: [Ed25519SecretKey] = []
    var warnings: [String] = []
    for path in paths {
      do throws(CryptoError) {
        let key = try Ed25519SecretKey(path: path, warnings: &warnings)
        guard !keys.contains(where: { $0.publicKey == key.publicKey }) else {
          throw CryptoError.keyFile(path: path, problem: "the same key is given twice; a key signs once")
        }
        keys.append(key)
      } catch {
        throw CommandFailure(.failed, error.description)
      }
    }
    for warning in warnings { console.complain("warning: \(warning)") }
    return keys
  }

  private static func warn(of document: PolicyDocument, size: Int, _ console: Console) {
    for warning in document.warnings + document.warnings(at: WallClock.now) { console.complain("warning: \(warning)") }
    if document.validity(at: WallClock.now) == .expired {
      console.complain("warning: this policy expired at \(document.expiresAt.text); every proxy will refuse it")
    }
    let usual = Configuration().policy.maxBundleBytes
    if size > usual {
      console.complain("warning: \(size) bytes are more than the default of policy.max_bundle_bytes, \(usual)")
    }
  }
}

extension CommandFailure {
  /// A whole file, or the failure with its path and the system's words.
  static func reading(_ path: String, limit: Int) throws(CommandFailure) -> [UInt8] {
    do throws(FileFailure) {
      return try FileAccess.read(path, limit: limit)
    } catch {
      throw CommandFailure(.failed, error.message)
    }
  }
}
