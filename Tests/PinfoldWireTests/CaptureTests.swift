import PinfoldModel
import PinfoldWire
import Testing

/// Every capture gives the facts another parser found in it.
@Suite struct CaptureTests {
  private func hex(_ value: UInt16) -> String { "0x" + Hex.encode([UInt8(value >> 8), UInt8(value & 255)]) }

  @Test func `there are 118 captures`() {
    #expect(Capture.all.count == 118)
  }

  @Test(arguments: Capture.withHello)
  func `the ClientHello says what the facts say`(_ capture: Capture) throws {
    let facts = try #require(capture.facts.clientHello)
    let hello = try capture.hello()
    #expect(hex(hello.legacyVersion) == facts.legacyVersion)
    #expect(Hex.encode(hello.random) == facts.random)
    #expect(hello.sessionID.count == facts.sessionIdLength)
    #expect(hello.cipherSuites.map(hex) == facts.cipherSuites)
    #expect(hello.compressionMethods == facts.compressionMethods)
    #expect(hello.extensions.map(\.type) == facts.extensions)
    #expect(hello.serverName == (try facts.sni.map { .host(try #require(HostName($0))) } ?? .missing))
    #expect(hello.alpn.map { String(decoding: $0, as: UTF8.self) } == facts.alpn)
    #expect(hello.supportedVersions.map(hex) == facts.supportedVersions)
    #expect(hello.supportedGroups.map(hex) == facts.supportedGroups)
    #expect(hello.keyShares.map { Facts.Share(group: hex($0.group), length: $0.key.count) } == facts.keyShares)
    #expect(hello.signatureAlgorithms.map(hex) == facts.signatureAlgorithms)
    #expect(hello.cipherSuites.contains(where: ClientHello.isGrease) == facts.grease)
    #expect(hello.hasEncryptedClientHello == (facts.ech == "outer"))
    #expect(hello.sessionTicketRange?.count == facts.sessionTicketLength)
    #expect(hello.pskIdentities.map(\.count) == facts.pskIdentities)
    #expect(hello.pskBinders.count == facts.pskIdentities.count)
    #expect(hello.offersEarlyData == facts.earlyData)
    #expect(hello.requestsStatus == facts.statusRequest)
    let names: [UInt16: String] = [1: "zlib", 2: "brotli", 3: "zstd"]
    #expect(hello.certificateCompression.map { names[$0] } == facts.compressCertificate)
    #expect(hello.start == facts.start)
    #expect(hello.end == facts.end)
    #expect(hello.recordCount == facts.records)
    #expect(hex(hello.recordVersion) == facts.recordVersion)
    #expect(hello.message.count == facts.messageLength)
    #expect(hello.records == Array(capture.client[..<facts.end]))
  }

  @Test(arguments: Capture.withHello.filter { $0.facts.helloRetry != nil })
  func `the second ClientHello says what the facts say`(_ capture: Capture) throws {
    let facts = try #require(capture.facts.helloRetry)
    let first = try capture.hello()
    let second = try capture.secondHello(after: first)
    #expect(second.start == facts.clientHello2.start)
    #expect(second.end == facts.clientHello2.end)
    #expect(second.serverName == first.serverName)
    #expect(second.extensions.map(\.type) == facts.clientHello2.extensions)
    #expect(
      second.keyShares.map { Facts.Share(group: hex($0.group), length: $0.key.count) }
        == facts.clientHello2.keyShares)
    #expect(second.offersEarlyData == facts.clientHello2.earlyData)
    var reader = ServerFlightReader(answering: first)
    guard case .helloRetryRequest(let retry) = reader.receive(capture.server.span) else { throw Unexpected() }
    #expect(retry.end == facts.end)
    #expect(retry.cookieRange?.count == facts.cookieLength)
    let groups: [String: UInt16] = ["secp384r1": 24, "secp521r1": 25, "X25519MLKEM768": 0x11ec]
    #expect(retry.keyShareGroup == facts.group.flatMap { groups[$0] })
    #expect(capture.facts.serverFlight?.start == retry.end)
  }

  private func serverHello(_ event: ServerFlightReader.Event) -> ServerHello? {
    switch event {
    case .tls12Flight(let flight): flight.serverHello
    case .tls12Resumed(let resumed): resumed.serverHello
    case .tls13(let hello), .noCertificate(let hello): hello
    default: nil
    }
  }

  @Test(arguments: Capture.withServerHello.filter { !["DHE_DSS", "RSA_PSK"].contains($0.facts.keyExchange) })
  func `the ServerHello says what the facts say`(_ capture: Capture) throws {
    let facts = try #require(capture.facts.serverHello)
    let event = try capture.flight()
    let hello = try #require(serverHello(event), "\(event)")
    let names: [UInt16: String] = [0x301: "TLS1.0", 0x302: "TLS1.1", 0x303: "TLS1.2", 0x304: "TLS1.3"]
    #expect(names[hello.version] == capture.facts.version)
    #expect(hex(hello.cipherSuite.id) == capture.facts.cipherSuite?.id)
    #expect(hello.end == facts.end)
    #expect(Hex.encode(hello.random) == facts.random)
    #expect(hello.sessionID.count == facts.sessionIdLength)
    #expect(hello.extensions.map(\.type) == facts.extensions)
    #expect(hex(hello.recordVersion) == facts.recordVersion)
    #expect(hello.selectedPSK == capture.facts.pskSelected)
    if hello.version != TLSVersion.tls13 {
      #expect(hello.promisesTicket == capture.facts.ticketPromised)
      #expect(hello.hasDowngradeSentinel == capture.facts.downgradeSentinel)
      #expect(hello.alpn.map { String(decoding: $0, as: UTF8.self) } == capture.facts.alpn)
    }
  }

  static let tls12 = Capture.withServerHello.filter { $0.facts.version != "TLS1.3" }
  static let refused: Set<String?> = ["DHE_DSS", "RSA_PSK"]

  @Test(arguments: tls12.filter { $0.facts.outcome == "full" && !refused.contains($0.facts.keyExchange) })
  func `a full TLS 1.2 flight says what the facts say`(_ capture: Capture) throws {
    let facts = capture.facts
    guard case .tls12Flight(let flight) = try capture.flight() else { throw Unexpected() }
    #expect(flight.end == facts.serverFlight?.end)
    #expect(flight.certificates.count == facts.certificatesCount)
    #expect((flight.rawPublicKey != nil) == (facts.serverCertificateType == "RawPublicKey"))
    #expect(flight.certificateBytes.map { Array($0) } == capture.chain)
    #expect(flight.certificateMessageLength == facts.certificateMessageLength)
    #expect(flight.requestsClientCertificate == facts.certificateRequested)
    #expect((flight.certificateStatus != nil) == facts.ocspStapled)
    let clear = try #require(facts.serverMessagesClear)
    let names: [UInt8: String] = [
      2: "server_hello", 11: "certificate", 12: "server_key_exchange", 13: "certificate_request",
      14: "server_hello_done", 22: "certificate_status",
    ]
    #expect(flight.messageTypes.map { names[$0] } == clear.filter { $0 != "new_session_ticket" })
    switch flight.keyProof {
    case .keyTransport:
      #expect(facts.keyProof == "key_transport")
    case .signature(let exchange, let key):
      #expect(facts.keyProof == "server_key_exchange")
      #expect(exchange.scheme.map(hex) == facts.signatureScheme?.id)
      let groups: [UInt16: String] = [23: "secp256r1", 24: "secp384r1", 25: "secp521r1", 29: "x25519"]
      let group = exchange.group.flatMap { groups[$0] } ?? exchange.primeBits.map { "DH-\($0)" }
      #expect(group == facts.group)
      let agreement = exchange.group == nil ? "DHE" : "ECDHE"
      #expect("\(agreement)_\(key)".uppercased() == facts.keyExchange)
    }
  }

  @Test(arguments: tls12.filter { $0.facts.outcome == "resumed" })
  func `a resumed TLS 1.2 handshake says what the facts say`(_ capture: Capture) throws {
    guard case .tls12Resumed(let resumed) = try capture.flight() else { throw Unexpected() }
    #expect(resumed.end == capture.facts.serverFlight?.end)
    #expect((resumed.newTicket != nil) == capture.facts.serverMessagesClear?.contains("new_session_ticket"))
  }

  @Test(arguments: tls12.filter { $0.facts.outcome == "no_certificate" })
  func `a suite without certificate is told apart`(_ capture: Capture) throws {
    guard case .noCertificate = try capture.flight() else { throw Unexpected() }
  }

  @Test(arguments: tls12.filter { refused.contains($0.facts.keyExchange) })
  func `a suite that proves no key we take is refused`(_ capture: Capture) throws {
    guard case .refused(let refusal) = try capture.flight() else { throw Unexpected() }
    #expect(refusal.reason == .keyNotProven)
  }

  @Test(arguments: Capture.withServerHello.filter { $0.facts.version == "TLS1.3" })
  func `a TLS 1.3 handshake ends in the clear with its ServerHello`(_ capture: Capture) throws {
    guard case .tls13(let hello) = try capture.flight() else { throw Unexpected() }
    #expect(hello.end == capture.facts.serverHello?.end)
  }

  @Test(arguments: Capture.withHello.filter { $0.facts.outcome == "alert" })
  func `an alert instead of a ServerHello is passed on`(_ capture: Capture) throws {
    let alert = try #require(capture.facts.clearAlerts?.first)
    guard case .fatalAlert(let code, let end) = try capture.flight() else { throw Unexpected() }
    #expect(code == alert.description)
    #expect(end == 7)
  }

  @Test func `SSL 2, SSL 3 and HTTP are not TLS`() throws {
    for name in ["ssl2-hello-java-openssl", "ssl30-nss-nss"] {
      var reader = ClientHelloReader()
      guard case .refused(let refusal) = reader.receive(try Capture(name).client.span) else { throw Unexpected() }
      #expect(refusal.reason == .notTLS)
    }
    guard case .refused(let refusal) = try Capture("not-tls-http-answer").flight() else { throw Unexpected() }
    #expect(refusal == HandshakeRefusal(.notTLS, at: 0, "the server does not speak TLS"))
  }
}
