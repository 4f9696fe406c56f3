import PinfoldConfig
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply

/// The options of `pinfold pin-server`.
struct PinServerOptions {
  static let key = OptionSyntax(
    long: "--key", short: "-k", value: "FILE", help: "secret key: PEM (Ed25519, P-256), or as keygen made it")
  static let format = OptionSyntax(
    long: "--format", value: "FORMAT",
    help: "ed25519, jws or fingerprint (default: ed25519; jws with a\nP-256 key)")
  static let domain = OptionSyntax(
    long: "--domain", value: "PATTERN", repeats: true, help: "a domain to answer for: api.example.com, *.example.com")
  static let pins = OptionSyntax(
    long: "--pins", value: "FILE", help: "pins by host (JSON5); without it, hosts are dialled")
  static let listen = OptionSyntax(
    long: "--listen", value: "ADDR:PORT", help: "where to listen (default: 127.0.0.1:8080; port 0: any)")
  static let ttl = OptionSyntax(
    long: "--ttl", value: "SECONDS", help: "how long a record is good for (default: 3600)")
  static let cache = OptionSyntax(
    long: "--cache", value: "SECONDS", help: "how long the pins of a dialled host are kept (default: 300)")
  static let authorities = OptionSyntax(
    long: "--ca-file", value: "FILE", help: "PEM file of the roots to trust instead of the system's")
  static let resolve = OptionSyntax(
    long: "--resolve", value: "HOST=ADDR[:PORT]", repeats: true, help: "dial the host there, whatever it resolves to")
  static let addresses = OptionSyntax(
    long: "--allow-ip-literals", help: "answer for IP addresses that --domain names")

  static let all = [key, format, domain, pins, listen, ttl, cache, authorities, resolve, addresses]

  let keyPath: String
  let format: PinRecord.Format?
  let patterns: [HostPattern]
  let pinsPath: String?
  let listen: SocketAddress
  let ttlSeconds: Int64
  let cacheSeconds: Int64
  let caFile: String?
  let redirects: [Authority: SocketAddress]
  let allowsAddresses: Bool

  init(_ arguments: Arguments, of syntax: CommandSyntax) throws(CommandFailure) {
    keyPath = try arguments.required(Self.key, of: syntax)
    format = try arguments[Self.format].map { text throws(CommandFailure) in
      guard let format = PinRecord.Format(rawValue: text) else {
        throw Self.misuse(
          Self.format, text, "is none of \(PinRecord.Format.allCases.map(\.rawValue).joined(separator: ", "))")
      }
      return format
    }
    patterns = try arguments.all(Self.domain).map { text throws(CommandFailure) in try Self.pattern(text) }
    pinsPath = arguments[Self.pins]
    let listenText = arguments[Self.listen] ?? "127.0.0.1:8080"
    guard let listen = Self.listenAddress(listenText) else {
      throw Self.misuse(Self.listen, listenText, "is no address; right would be 127.0.0.1:8080")
    }
    self.listen = listen
    ttlSeconds = try Self.seconds(Self.ttl, arguments, or: 3600, from: 1)
    cacheSeconds = try Self.seconds(Self.cache, arguments, or: 300, from: 0)
    caFile = arguments[Self.authorities]
    redirects = try Self.redirects(arguments.all(Self.resolve))
    allowsAddresses = arguments.has(Self.addresses)
    guard pinsPath != nil || !patterns.isEmpty else {
      throw .usage("\(syntax.name): --domain or --pins is missing", help: "pinfold \(syntax.name) --help")
    }
    let dialling = [Self.cache, Self.authorities, Self.resolve].first(where: arguments.has)
    if pinsPath != nil, let dialling {
      throw .usage(
        "\(syntax.name): \(dialling.long) is for dialling, and with --pins nothing is dialled",
        help: "pinfold \(syntax.name) --help")
    }
  }

  private static func misuse(_ option: OptionSyntax, _ text: String, _ problem: String) -> CommandFailure {
    .usage("pin-server: \(option.long) \(quoted(text)) \(problem)", help: "pinfold pin-server --help")
  }

  private static func pattern(_ text: String) throws(CommandFailure) -> HostPattern {
    let pattern: HostPattern
    do throws(DomainNameError) { pattern = try DomainNames.pattern(text) } catch {
      throw misuse(domain, text, "is no host pattern: \(error.message)")
    }
    guard pattern.port == nil else {
      throw misuse(domain, text, "has a port; a record speaks for a host on every port")
    }
    return pattern
  }

  /// As `SocketAddress` reads it, and port 0, for which the system chooses one.
  private static func listenAddress(_ text: String) -> SocketAddress? {
    guard text.hasSuffix(":0") else { return SocketAddress(text) }
    return SocketAddress(text.dropLast() + "1").map { SocketAddress($0.address, port: 0) }
  }

  private static func seconds(
    _ option: OptionSyntax, _ arguments: Arguments, or standard: Int64, from lowest: Int64
  ) throws(CommandFailure) -> Int64 {
    guard let text = arguments[option] else { return standard }
    let limit: Int64 = 31_536_000
    guard let value = Int64(text), value >= lowest, value <= limit else {
      throw misuse(option, text, "is no whole number of seconds from \(lowest) to \(limit)")
    }
    return value
  }

  private static func redirects(_ texts: [String]) throws(CommandFailure) -> [Authority: SocketAddress] {
    var result: [Authority: SocketAddress] = [:]
    for text in texts {
      let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2, let authority = Authority(parts[0], defaultPort: UpstreamPins.port),
        authority.port == UpstreamPins.port,
        let target = Authority(parts[1], defaultPort: UpstreamPins.port) ?? Self.bareAddress(parts[1]),
        case .address(let address) = target.host
      else { throw misuse(resolve, text, "is not like api.example.com=127.0.0.1:8443") }
      guard result.updateValue(SocketAddress(address, port: target.port), forKey: authority) == nil else {
        throw misuse(resolve, text, "names a host that is there already")
      }
    }
    return result
  }

  /// IPv6 without brackets and port.
  private static func bareAddress(_ text: Substring) -> Authority? {
    IPAddress(text).map { Authority(host: .address($0), port: UpstreamPins.port) }
  }
}
