import PinfoldConfig
import PinfoldModel
import PinfoldTLS

/// `pinfold pin`: the pins of a server or of a certificate file.
enum PinCommand: Subcommand {
  static let certificate = OptionSyntax(
    long: "--cert", value: "FILE", help: "read certificates from a file (PEM, or one in DER) instead of a server")
  static let authorities = OptionSyntax(
    long: "--ca-file", value: "FILE", help: "PEM file of the roots to trust instead of the system's")
  static let connect = OptionSyntax(
    long: "--connect", value: "ADDR:PORT", help: "connect there, whatever the host resolves to")

  static let syntax = CommandSyntax(
    name: "pin", summary: "Print the pins of a server or of a certificate file",
    usage: ["HOST[:PORT] [--ca-file FILE] [--connect ADDR:PORT]", "--cert FILE"],
    options: [certificate, authorities, connect],
    operands: [OperandSyntax(name: "HOST[:PORT]", isRequired: false, help: "the server (default port: 443)")],
    details: """
      Each line is a pin and the common name of its certificate, leaf first. Only the leaf's key was
      proven by the handshake; of the others the server merely sent the certificates.

      The exit status is 1 when the chain or the host name does not verify; the pins are printed all the
      same. What this machine sees may be what an attacker shows it: compare a pin with another source
      before you sign it into a policy.
      """)

  static func run(_ arguments: Arguments, console: Console) throws(CommandFailure) -> ExitCode {
    if let path = arguments[certificate] {
      guard arguments.operands.isEmpty, arguments[authorities] == nil, arguments[connect] == nil else {
        throw .usage("pin: --cert stands alone", help: "pinfold pin --help")
      }
      return try pins(ofFile: path, console)
    }
    guard let text = arguments.operands.first else {
      throw .usage("pin: HOST[:PORT] or --cert FILE is missing", help: "pinfold pin --help")
    }
    guard let authority = DomainNames.authority(text, defaultPort: 443) else {
      throw .usage(
        "pin: \(quoted(text)) is no host; right would be api.example.com, 192.0.2.1:8443 or [2001:db8::1]:443",
        help: "pinfold pin --help")
    }
    var target = authority
    if let text = arguments[connect] {
      guard let address = SocketAddress(text) else {
        throw .usage(
          "pin: --connect \(quoted(text)) is no address; right would be 127.0.0.1:8443", help: "pinfold pin --help")
      }
      target = Authority(host: .address(address.address), port: address.port)
    }
    return try pins(of: authority, at: target, trusting: arguments[authorities], console)
  }

  private static func pins(ofFile path: String, _ console: Console) throws(CommandFailure) -> ExitCode {
    do throws(TLSError) {
      for certificate in try CertificateFile.read(path) { console.line(certificate.pinLine) }
      return .good
    } catch {
      throw CommandFailure(.failed, error.description)
    }
  }

  private static func pins(
    of authority: Authority, at target: Authority, trusting caFile: String?, _ console: Console
  ) throws(CommandFailure) -> ExitCode {
    let judgement: ChainJudgement
    do throws(TLSError) {
      let store = if let caFile { try TrustStore(caFile: caFile) } else { try TrustStore() }
      let result = try ServerHandshake.run(with: authority, at: target)
      for der in result.certificates { console.line(try Certificate(der: der).pinLine) }
      judgement = try ChainVerifier(trusting: store).judge(
        certificates: result.certificates, host: authority.host, now: WallClock.now)
    } catch {
      throw CommandFailure(.failed, "no pins of \(authority.text): \(error.description)")
    }
    guard judgement.chainVerified else {
      let why = judgement.chainError.map { ": \($0)" } ?? ""
      throw CommandFailure(.failed, "the chain of \(authority.text) does not verify\(why)")
    }
    guard judgement.nameMatches else {
      throw CommandFailure(.failed, "the certificate is not for \(authority.host.text)")
    }
    return .good
  }
}
