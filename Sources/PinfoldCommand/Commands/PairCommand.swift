import Glibc
import PinfoldConfig
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply
import PinfoldTLS

/// `pinfold pair`: trusts the certificate of a device on the local network.
enum PairCommand: Subcommand {
  static let offline = OptionSyntax(
    long: "--offline", help: "believe the payload without connecting to the device")

  static let syntax = CommandSyntax(
    name: "pair", summary: "Trust the certificate of a device on the local network",
    usage: ["[-c FILE] [--offline] FILE"], options: [.config, offline],
    operands: [OperandSyntax(name: "FILE", help: "the pairing payload, as the device shows it; - is standard input")],
    details: """
      The payload is JSON: {"version":"1","host","port","code","expiresAt","certificateFingerprint"}. The
      host has to be of the local network: a private, link-local or loopback address, a name below .local
      or .home.arpa, or a single label. The device is connected to, and has to show the certificate whose
      SHA-256 the payload holds and prove that it owns its key. The code, a secret between the device and
      its owner, is neither shown nor kept.

      From then on the host is pinned to that certificate on that port, where no rule of the policy speaks
      for it; a rule with trust_on_first_use takes it too. A running proxy knows within some seconds.
      """)

  static func run(_ arguments: Arguments, console: Console) throws(CommandFailure) -> ExitCode {
    let file = try ConfigurationFile(arguments)
    let payload = try payload(arguments.operands[0])
    if !arguments.has(offline) { try compare(payload, file.configuration) }
    try StateOwner.assume(file.configuration.stateDirectory)
    let store = try TrustStoreAccess(file.configuration, creates: true, console: console)
    let before = try? store.key(of: payload.authority)
    let key = TrustedKey(.certificate(payload.fingerprint), since: WallClock.now, origin: .paired)
    try store.keep(key, for: payload.authority)
    console.line("paired: \(payload.authority.text) \(key.pin.text)")
    if let before, before.pin != key.pin { console.complain("warning: it was trusted with \(before.pin.text) before") }
    return .good
  }

  private static func payload(_ path: String) throws(CommandFailure) -> PairingPayload {
    let bytes = try CommandFailure.reading(path == "-" ? "/dev/stdin" : path, limit: PairingPayload.byteLimit)
    do throws(PairingError) {
      let payload = try PairingPayload(bytes)
      try payload.requireValid(at: WallClock.now)
      return payload
    } catch {
      throw CommandFailure(.failed, "\(path == "-" ? "standard input" : quoted(path)): \(error.description)")
    }
  }

  /// Throws unless the device answers with the certificate of the payload.
  private static func compare(_ payload: PairingPayload, _ configuration: Configuration) throws(CommandFailure) {
    let authority = payload.authority
    let fixed = configuration.destinations.resolve[authority]
    let target = fixed.map { Authority(host: .address($0.address), port: $0.port) } ?? authority
    let shown: Digest256
    do throws(TLSError) {
      // A name of the local network that leads elsewhere is none.
      let result = try ServerHandshake.run(with: authority, at: target) { LocalNetwork.contains($0) }
      guard let leaf = result.certificates.first else {
        throw TLSError.failed(call: "TLS handshake", detail: "the device shows no certificate")
      }
      shown = try Certificate(der: leaf).digest
    } catch {
      throw CommandFailure(.failed, "\(authority.text) cannot be asked: \(error.description); --offline asks nobody")
    }
    guard shown == payload.fingerprint else {
      throw CommandFailure(
        .failed,
        "\(authority.text) shows \(Pin.certificate(shown).text), and the payload says "
          + "\(Pin.certificate(payload.fingerprint).text): not paired; somebody may be in the way")
    }
  }
}
