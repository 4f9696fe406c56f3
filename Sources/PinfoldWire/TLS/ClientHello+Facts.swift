package import PinfoldModel

extension ClientHello {
  /// The 32 random bytes: the key under which a key log names this connection.
  package var random: [UInt8] { Array(message[randomRange]) }

  /// `legacy_session_id`.
  package var sessionID: ArraySlice<UInt8> { message[sessionIDRange] }

  /// The session ticket offered (RFC 5077); nil when none is, be it by a missing or by an empty extension.
  package var sessionTicket: ArraySlice<UInt8>? {
    guard let range = sessionTicketRange, !range.isEmpty else { return nil }
    return message[range]
  }

  /// The protocols of ALPN in order (RFC 7301), each as its bytes.
  package var alpn: [ArraySlice<UInt8>] {
    guard let range = alpnRange else { return [] }
    var names: [ArraySlice<UInt8>] = []
    var index = range.lowerBound
    while index < range.upperBound {
      let end = index + 1 + Int(message[index])
      names.append(message[(index + 1)..<end])
      index = end
    }
    return names
  }

  /// Whether this version is offered (RFC 8446 §4.2.1): by supported_versions where it is sent, else by being at most
  /// `legacy_version`.
  package func offers(version: UInt16) -> Bool {
    guard version >= TLSVersion.tls10 else { return false }
    if extensions.has(ExtensionType.supportedVersions) { return supportedVersions.contains(version) }
    return version <= min(legacyVersion, TLSVersion.tls12)
  }

  /// Whether TLS 1.3 is offered.
  package var offersTLS13: Bool { offers(version: TLSVersion.tls13) }

  /// The highest version Pinfold knows among those offered; nil when there is none.
  package var highestVersion: UInt16? {
    [TLSVersion.tls13, TLSVersion.tls12, TLSVersion.tls11, TLSVersion.tls10].first { offers(version: $0) }
  }

  /// Whether pre-shared keys are offered (TLS 1.3 resumption, or external ones).
  package var offersPSK: Bool { !pskIdentities.isEmpty }

  /// Whether 0-RTT data is announced.
  package var offersEarlyData: Bool { extensions.has(ExtensionType.earlyData) }

  /// Whether a stapled certificate status is asked for.
  package var requestsStatus: Bool { extensions.has(ExtensionType.statusRequest) }

  /// Whether something is offered that a TLS 1.2 server could resume: a session id or a ticket.
  package var offersSession: Bool { !sessionIDRange.isEmpty || sessionTicket != nil }

  /// Whether the name in the hello stands for the host of the CONNECT line; nil when it does.
  ///
  /// - Parameter mayMissName: whether the rule lets the name be missing; for an IP literal it always may be.
  package func refusal(for host: HostName, mayMissName: Bool = false) -> HandshakeRefusal? {
    switch serverName {
    case .host(host): nil
    case .missing where host.isAddress || mayMissName: nil
    case .missing: HandshakeRefusal(.sniMissing, at: start, "the hello names no host")
    case .host, .unreadable: HandshakeRefusal(.sniMismatch, at: start, "the hello names another host")
    }
  }

  /// Whether the extension, or for renegotiation_info the signalling suite that stands for it (RFC 5746 §3.3), is sent.
  package func offers(extension type: UInt16) -> Bool {
    extensions.has(type) || (type == ExtensionType.renegotiationInfo && cipherSuites.contains(0x00ff))
  }

  /// Record version for an alert sent to this client before it has read a ServerHello: the highest version offered, at
  /// most TLS 1.2's number (RFC 8446 §5.1).
  package var alertRecordVersion: UInt16 { min(highestVersion ?? TLSVersion.tls12, TLSVersion.tls12) }

  /// Whether the value is one of the reserved GREASE ones (RFC 8701 §2).
  package static func isGrease(_ value: UInt16) -> Bool {
    value & 0x0f0f == 0x0a0a && value >> 8 == value & 0xff
  }
}
