import PinfoldTLS
import PinfoldWire
import Testing

/// The hello of a probe against the application's it stands for, for every client that was captured.
struct ProbeHelloTests {
  private static let withHello = Capture.all.filter {
    !["SSL3.0"].contains($0.facts.version) && $0.name != "ssl2-hello-java-openssl"
  }
  private static let knownGroups: Set<UInt16> = [
    0x17, 0x18, 0x19, 0x1d, 0x1e, 0x100, 0x101, 0x102, 0x103, 0x104,
  ]
  private static let knownSchemes: Set<UInt16> = [
    0x0201, 0x0203, 0x0301, 0x0303, 0x0401, 0x0403, 0x0501, 0x0503, 0x0601, 0x0603, 0x0804, 0x0805, 0x0806, 0x0807,
    0x0808, 0x0809, 0x080a, 0x080b,
  ]

  /// Applications that offer no suite in which a probe could see a certificate.
  private static let withoutCertificate: Set<String> = [
    "tls12-openssl-anon-dh", "tls12-openssl-anon-ecdh", "tls12-openssl-dsa", "tls12-openssl-psk",
    "tls12-openssl-rsa-psk",
  ]

  private func hello(_ bytes: [UInt8]) throws -> ClientHello {
    var reader = ClientHelloReader()
    guard case .hello(let hello) = reader.receive(bytes.span) else { throw Unexpected() }
    return hello
  }

  @Test func `There are hellos of many clients`() {
    #expect(Self.withHello.count >= 110)
  }

  @Test(arguments: withHello)
  func `A probe asks as the application asks`(_ capture: Capture) throws {
    let app = try hello(capture.bytes("client.bin"))
    let offer = try #require(ProbeOffer(mirroring: app))
    if Self.withoutCertificate.contains(capture.name) {
      #expect(throws: TLSError.self) { try ProbeClient().session(offer) }
      return
    }
    guard case .send(let bytes) = try ProbeClient().session(offer).start() else { throw Unexpected() }
    let probe = try hello(bytes)
    #expect(probe.serverName == app.serverName)
    #expect(probe.alpn.map { Array($0) } == app.alpn.map { Array($0) })
    #expect(probe.highestVersion == app.highestVersion)
    for version: UInt16 in 0x0301...0x0304 { #expect(probe.offers(version: version) == app.offers(version: version)) }
    // OpenSSL names finite-field groups in TLS 1.3 alone.
    let groups = app.supportedGroups.filter { Self.knownGroups.contains($0) && ($0 < 0x100 || app.offersTLS13) }
    if !groups.isEmpty { #expect(probe.supportedGroups.filter { groups.contains($0) } == groups) }
    if !app.signatureAlgorithms.isEmpty {
      #expect(probe.signatureAlgorithms == app.signatureAlgorithms.filter(Self.knownSchemes.contains))
    }
    // Suites: none the application did not offer, those kept in its order, and of TLS 1.3 all but CCM of old.
    let kept = probe.cipherSuites.filter { $0 != 0x00ff }
    #expect(Set(kept).isSubset(of: app.cipherSuites))
    let modern = kept.filter { $0 >> 8 == 0x13 }
    #expect(modern == app.cipherSuites.filter { $0 >> 8 == 0x13 && (0x1301...0x1305).contains($0) })
    let classic = kept.filter { $0 >> 8 != 0x13 }
    #expect(classic == app.cipherSuites.filter(Set(classic).contains))
    #expect(probe.requestsStatus == app.requestsStatus)
    #expect(!probe.offersSession || probe.sessionTicket == nil)
    #expect(!probe.offersPSK)
  }
}
