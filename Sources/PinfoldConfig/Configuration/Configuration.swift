package import PinfoldModel
package import PinfoldPolicy

/// The configuration file after reading: every key has a value, every path is absolute or relative to the working
/// directory, every list is typed. `conf/pinfold.json5` shows the same keys with their defaults.
package struct Configuration: Sendable {
  /// Where the proxy listens.
  package var listen: [ListenAddress] = [.socket(SocketAddress(.v4(0x7f00_0001), port: 3128))]
  /// Where metrics, health and status are served.
  package var admin = SocketAddress(.v4(0x7f00_0001), port: 9128)
  /// Number of worker threads; 0 is one per core.
  package var workers = 0
  /// Directory of what has to survive a restart.
  package var stateDirectory = "/var/lib/pinfold"
  /// File of the key that seals the cache; `nil`: `cache.key` in the state directory.
  package var cacheKeyFile: String?
  package var policy = PolicySection()
  package var pinServices: [PinServiceSection] = []
  /// The domains of all pin services, a rule without pins for each, in the order of the file.
  package var serviceDomains = RuleTable.empty
  /// For each of them the service it belongs to, as an index of `pinServices`.
  package var serviceOfDomain: [Int] = []
  package var tls = TLSSection()
  package var destinations = DestinationsSection()
  package var access = AccessSection()
  package var limits = LimitsSection()
  package var instance = InstanceSection()
  package var audit = AuditSection()
  package var log = LogSection()

  /// The defaults.
  package init() {}
}

/// An address to listen on.
package enum ListenAddress: Hashable, Sendable {
  case socket(SocketAddress)
  /// `unix:/path`: a Unix socket at an absolute path.
  case unix(String)

  /// `127.0.0.1:3128`, `[::1]:3128`, or `unix:/path` with an absolute path of at most 107 bytes (`sun_path`).
  package init?(_ text: some StringProtocol) {
    if text.hasPrefix("unix:") {
      let path = String(text.dropFirst(5))
      guard path.hasPrefix("/"), path.utf8.count <= 107, !path.utf8.contains(0) else { return nil }
      self = .unix(path)
    } else {
      guard let address = SocketAddress(text) else { return nil }
      self = .socket(address)
    }
  }

  /// The written form.
  package var text: String {
    switch self {
    case .socket(let address): address.text
    case .unix(let path): "unix:" + path
    }
  }
}

/// A text of the file with its place, for those who read it further and may have to complain.
package struct Located: Hashable, Sendable {
  /// The text, its place, and the path of its key such as `policy.trusted_keys[0]`.
  package var text: String
  package var place: SourcePlace
  /// Path of the key, `policy.trusted_keys[0]`.
  package var path: String

  /// A text that was found at a place.
  package init(_ text: String, place: SourcePlace, path: String) {
    self.text = text
    self.place = place
    self.path = path
  }
}

/// `policy`
package struct PolicySection: Sendable {
  /// Files, or `https://` URLs, of signed bundles.
  package var bundles: [Located] = []
  /// Ed25519 public keys as written: reading them is the crypto layer's.
  package var trustedKeys: [Located] = []
  /// How many of the trusted keys must have signed.
  package var requiredSignatures = 1
  /// Where `required_signatures` stands, for complaints that need the keys.
  package var requiredSignaturesPlace: SourcePlace?
  /// Bytes of a bundle, envelope included.
  package var maxBundleBytes = 8_388_608
  /// How often bundles with a URL are asked for, in seconds, give or take a tenth.
  package var refreshSeconds = 300
  package var unpinned = UnpinnedMode.block
  /// Exact hosts with pins of the configuration's own.
  package var builtinPins = RuleTable.empty

  /// The defaults.
  package init() {}
}

/// One element of `pin_services`
package struct PinServiceSection: Sendable {
  /// Tried in turn; `https://` or `http://`.
  package var urls: [Located] = []
  /// Hosts the service may speak for.
  package var domains: [HostPattern] = []
  /// Public keys as written. Then the bounds of a record's lifetime, and what is loosened.
  package var trustedKeys: [Located] = []
  package var minTTLSeconds = 60
  package var maxTTLSeconds = 86_400
  package var allowUnboundSignatures = false
  package var caFile: Located?

  /// The defaults.
  package init() {}
}

/// `tls`
package struct TLSSection: Sendable {
  /// For rules that do not say, and for unpinned hosts.
  package var tls13 = TLS13Mode.probe
  /// How long a probe's verdict may be used again, in seconds; 0: every tunnel has its own.
  package var probeReuseSeconds = 0
  package var resumption = EvidenceChoice.probe
  package var pskDeclined = EvidenceChoice.probe
  /// PEM file of trusted roots; `nil`: the system's.
  package var caFile: Located?
  /// Named pipe that apps write key-log lines to.
  package var keyLog: String?

  /// The defaults.
  package init() {}
}

/// What stands in where the handshake itself shows too little.
package enum EvidenceChoice: String, CaseIterable, Sendable {
  case probe
  case refuse
}

/// `destinations`
package struct DestinationsSection: Sendable {
  /// Authorities that are dialled elsewhere, without asking a resolver.
  package var resolve: [Authority: SocketAddress] = [:]
  package var ports: Set<UInt16> = [443]
  package var allow: [AddressBlock] = []
  package var deny: [AddressBlock] = []

  /// The defaults.
  package init() {}
}

/// `access`
package struct AccessSection: Sendable {
  /// Who may use the proxy.
  package var clients: [AddressBlock] = [
    AddressBlock("127.0.0.0/8"), AddressBlock("::1/128"),
  ].compactMap { $0 }
  /// File of `user:$argon2id$…` lines; `nil`: nobody is asked.
  package var credentialsFile: String?

  /// The defaults.
  package init() {}
}

/// `limits`
package struct LimitsSection: Sendable {
  /// Tunnels at a time over all workers; 0: as many as descriptors allow.
  package var tunnels = 0
  package var connectSeconds = 10
  package var handshakeSeconds = 10
  package var idleSeconds = 3600
  package var drainSeconds = 30

  /// The defaults.
  package init() {}
}

/// `instance`
package struct InstanceSection: Sendable {
  /// Takes the place of the machine's id; then what the policy's gates are compared with.
  package var id: String?
  package var appVersion: AppVersion?
  package var region: String?

  /// The defaults.
  package init() {}
}

/// `audit`
package struct AuditSection: Sendable {
  /// Stem of the daily files; `nil`: off. Then how many days of them are kept.
  package var file: Located?
  package var retentionDays = 90
  package var client = Client.hash

  /// The defaults.
  package init() {}

  /// How a record calls the client.
  package enum Client: String, CaseIterable, Sendable {
    /// By a pseudonym that only this installation can link to an address.
    case hash
    /// By its address.
    case address
  }
}

/// `log`
package struct LogSection: Sendable {
  /// What is written, and in which form.
  package var level = Level.info
  package var format = Format.auto

  /// The defaults.
  package init() {}

  /// From the most to the least talkative.
  package enum Level: String, CaseIterable, Sendable {
    case debug
    case info
    case warning
    case error
  }

  /// The form of log lines.
  package enum Format: String, CaseIterable, Sendable {
    /// Text on a terminal, JSON elsewhere.
    case auto
    case json
    case text
  }
}
