import PinfoldCrypto
import PinfoldModel
import PinfoldSupply
import PinfoldTLS

/// Everything the demonstration needs but the proxy: an authority, a server for each site, a signing key, a signed
/// policy and a configuration. All of it is made anew, lies in one private directory, and goes with it.
final class DemoSetup {
  private let directory: PrivateDirectory
  private let upstreams: [DemoUpstream]

  /// Starts the servers and writes the files. `port` and `adminPort` are what the configuration will say.
  init(port: UInt16, adminPort: UInt16) throws(CommandFailure) {
    let now = WallClock.now
    let authority = try CommandFailure.failing { () throws(TLSError) in
      try DemoAuthority(commonName: "Pinfold demonstration", now: now)
    }
    let served = try Self.serve(signedBy: authority, now: now)
    upstreams = served.upstreams
    do throws(FileFailure) {
      directory = try PrivateDirectory()
    } catch {
      throw CommandFailure(.failed, error.message)
    }
    let key = try CommandFailure.failing { [path = directory.file("signing.key")] () throws(CryptoError) in
      let key = try Ed25519SecretKey()
      try key.write(to: path)
      return key
    }
    let policy = Self.policy(served.pins, now: now)
    let bundle = PolicyBundle.sign(Array(policy.utf8), keys: [key])
    let configuration = Self.configuration(
      port: port, adminPort: adminPort, upstreams: upstreams.map(\.port), trustedKey: key.publicKey.text)
    let roots = try CommandFailure.failing { () throws(TLSError) in try authority.certificate.pem() }
    do throws(FileFailure) {
      try directory.write("ca.pem", roots)
      try directory.write("policy.json5", policy)
      try directory.write("policy.signed.json", String(decoding: bundle, as: UTF8.self))
      try directory.write("pinfold.json5", configuration)
    } catch {
      throw CommandFailure(.failed, error.message)
    }
  }

  deinit { for upstream in upstreams { upstream.stop() } }

  /// PEM file of the throw-away authority.
  var caFile: String { directory.file("ca.pem") }
  /// The configuration to serve.
  var configurationFile: String { directory.file("pinfold.json5") }

  /// A server and a pin for each site. Every certificate is genuine; where the site is not pinned rightly, the pin is
  /// of a key that nobody serves.
  private static func serve(
    signedBy authority: DemoAuthority, now: Timestamp
  ) throws(CommandFailure) -> (upstreams: [DemoUpstream], pins: [Pin]) {
    try CommandFailure.failing("cannot start the servers of the demonstration") { () throws(TLSError) in
      let stranger = try authority.issue(.init(commonName: "nobody", now: now))
      var upstreams: [DemoUpstream] = []
      var pins: [Pin] = []
      for site in DemoSite.all {
        let hosts = [HostName(site.name)].compactMap(\.self)
        let identity = try authority.issue(.init(commonName: site.name, hosts: hosts, now: now))
        upstreams.append(try DemoUpstream(identity, versions: site.version...site.version, text: site.greeting))
        pins += (site.isPinnedRightly ? identity : stranger).chain.prefix(1).map { .publicKey($0.keyDigest) }
      }
      return (upstreams, pins)
    }
  }

  private static func policy(_ pins: [Pin], now: Timestamp) -> String {
    let rules = zip(DemoSite.all, pins).map { site, pin in
      "      \"\(site.name)\": { pins: [\"\(pin.text)\"] },\n"
    }
    return """
      {
        version: 1,
        issued_at: "\(now.text)",
        expires_at: "\(Timestamp(seconds: now.seconds + 86_400).text)",
        ssl_pinning_config: {
          hosts: {
      \(rules.joined())    },
        },
      }

      """
  }

  private static func configuration(
    port: UInt16, adminPort: UInt16, upstreams: [UInt16], trustedKey: String
  ) -> String {
    let resolve = zip(DemoSite.all, upstreams).map { site, port in
      "      \"\(site.name):443\": \"127.0.0.1:\(port)\",\n"
    }
    return """
      {
        listen: ["127.0.0.1:\(port)"],
        admin: "127.0.0.1:\(adminPort)",
        state_dir: "state",
        policy: { bundles: ["policy.signed.json"], trusted_keys: ["\(trustedKey)"] },
        tls: { ca_file: "ca.pem" },
        // The names exist nowhere else: here they lead to the servers of the demonstration.
        destinations: {
          resolve: {
      \(resolve.joined())    },
        },
        limits: { drain_seconds: 1 },
        log: { format: "text" },
      }

      """
  }
}
