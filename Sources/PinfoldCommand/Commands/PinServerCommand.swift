import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply
import PinfoldTLS

/// `pinfold pin-server`: a pin service.
enum PinServerCommand: Subcommand {
  static let syntax = CommandSyntax(
    name: "pin-server", summary: "Serve signed pin records until SIGTERM or SIGINT",
    usage: ["-k FILE --domain PATTERN … [OPTIONS]", "-k FILE --pins FILE [OPTIONS]"], options: PinServerOptions.all,
    details: """
      GET /v1/pins?domain=HOST answers with a signed record; a jws server tells all pins only when asked
      with include-backup-pins=true. /health and /readiness are for supervisors. It speaks plain HTTP:
      records are signed, and whoever wants to hide which hosts are asked for puts a TLS server in front.

      A dialled host has pins only if its chain verifies for its name: the keys of that chain, leaf first,
      without the root. SIGHUP reads the file of --pins again; a mistake in it changes nothing. The key
      that clients have to trust is printed at start, for pin_services[].trusted_keys.

      Example:
        pinfold keygen -o pins.key
        pinfold pin-server -k pins.key --domain api.example.com
      """)

  static func run(_ arguments: Arguments, console: Console) throws(CommandFailure) -> ExitCode {
    let options = try PinServerOptions(arguments, of: syntax)
    let writer = try writer(options, console)
    let list = try options.pinsPath.map { path throws(CommandFailure) in try ListedPins(path: path) }
    let domains = DomainAllowList(
      patterns: options.patterns.isEmpty ? list?.patterns ?? [] : options.patterns,
      allowsAddresses: options.allowsAddresses)
    warn(options, domains, writer, console)
    let store = try trustStore(options)
    // Whoever asks has a descriptor, and each host that is dialled has one.
    Descriptors.raiseLimit()
    try Signal.holding { () throws(CommandFailure) in
      do throws(IOError) {
        let loop = try EventLoop()
        let source: any PinLookUp = list ?? dialled(options, loop, store)
        let complaints = MeasuredComplaints(loop: loop, to: console.complain)
        let site = PinServerSite(domains: domains, source: source, writer: writer, complain: complaints.say)
        let socket = try ListeningSocket(.tcp(options.listen), sharing: false)
        try PinServer.serve(site, loop: loop, at: socket, reloading: list, complain: console.complain) { endpoint in
          console.line("listen: \(endpoint.text)")
          console.line("format: \(writer.format.rawValue)")
          console.line("key_id: \(writer.key.id)")
          console.line("trusted_key: \(Base64.encode(writer.key.publicKey))")
        }
      } catch {
        throw CommandFailure(.failed, "cannot serve at \(options.listen.text): \(error.text)")
      }
    }
    return .good
  }

  private static func writer(_ options: PinServerOptions, _ console: Console) throws(CommandFailure) -> PinRecordWriter
  {
    var warnings: [String] = []
    let key: RecordSigningKey
    do throws(RecordSigningKeyError) { key = try RecordSigningKey(path: options.keyPath, warnings: &warnings) } catch {
      throw CommandFailure(.failed, error.description)
    }
    for warning in warnings { console.complain("warning: \(warning)") }
    let format = options.format ?? (key.isEd25519 ? .ed25519 : .jws)
    guard let writer = PinRecordWriter(format, key: key, ttlSeconds: options.ttlSeconds) else {
      throw CommandFailure(
        .failed, "\(options.keyPath): a P-256 key signs jws records only; \(format.rawValue) takes an Ed25519 key")
    }
    return writer
  }

  private static func warn(
    _ options: PinServerOptions, _ domains: DomainAllowList, _ writer: PinRecordWriter, _ console: Console
  ) {
    if writer.format == .fingerprint {
      console.complain(
        "warning: the signature of a fingerprint record covers neither host nor lifetime: it can be replayed for another"
      )
    }
    for pattern in domains.patterns where pattern.host.isAddress && !options.allowsAddresses {
      console.complain("warning: \(pattern.text) is an IP address, for which --allow-ip-literals is missing")
    }
  }

  private static func trustStore(_ options: PinServerOptions) throws(CommandFailure) -> TrustStore {
    do throws(TLSError) {
      return if let path = options.caFile { try TrustStore(caFile: path) } else { try TrustStore() }
    } catch {
      throw CommandFailure(.failed, error.description)
    }
  }

  private static func dialled(_ options: PinServerOptions, _ loop: EventLoop, _ store: TrustStore) -> any PinLookUp {
    let upstream = UpstreamPins(loop: loop, trusting: store, redirects: options.redirects)
    return DialledPins(loop: loop, lifetime: .seconds(options.cacheSeconds)) { await upstream.find($0) }
  }
}
