import PinfoldModel
import PinfoldTLS
import PinfoldWire
import Testing

/// Probes of real servers on loopback.
struct ProbeTests {
  private let client = ProbeClient()
  private let host = HostName.name("api.example.com")

  private func probe(_ offer: ProbeOffer, _ port: UInt16) throws -> ProbeStep {
    try ProbeDriver.run(client.session(offer), port: port)
  }

  private func result(_ offer: ProbeOffer, _ port: UInt16) throws -> ProbeResult {
    guard case .finished(let result, let farewell) = try probe(offer, port) else { throw Unexpected() }
    // The last flight and a close_notify, encrypted: some record in any case.
    #expect(farewell.count > 20)
    return result
  }

  @Test(arguments: [UInt16(0x0303), 0x0304])
  func `A probe sees the version, and a chain that verifies`(_ version: UInt16) throws {
    let now = Timestamp(seconds: 1_800_000_000)
    let root = try DemoAuthority(commonName: "Root", now: now)
    let middle = try DemoAuthority(commonName: "Middle", now: now, signedBy: root)
    let identity = try middle.issue(.init(commonName: "leaf", hosts: [host], now: now))
    let upstream = try DemoUpstream(identity, versions: 0x0303...version, text: "hello")
    defer { upstream.stop() }
    let result = try result(ProbeOffer(serverName: host), upstream.port)
    #expect(result.version == version)
    #expect(result.certificates == (try identity.chain.map { try $0.der() }))
    let verifier = ChainVerifier(trusting: try TrustStore([root.certificate]))
    let judgement = try verifier.judge(certificates: result.certificates, host: host, now: now)
    #expect(judgement.chainVerified && judgement.nameMatches)
  }

  struct Row: CustomTestStringConvertible, Sendable {
    let testDescription: String
    var key = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    let server: [String]
    let profile: ProbeOffer.Profile
    let version: UInt16
    var suite: UInt16?
  }

  @Test(arguments: [
    Row(
      testDescription: "TLS 1.0 alone", server: ["-tls1", "-cipher", "ALL:@SECLEVEL=0"],
      profile: .init(lowest: 0x0301, highest: 0x0301), version: 0x0301),
    Row(
      testDescription: "TLS 1.1 of a hello up to 1.2", server: ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"],
      profile: .init(lowest: 0x0301, highest: 0x0303), version: 0x0302),
    Row(
      testDescription: "static RSA", key: ["rsa:2048"], server: ["-tls1_2", "-cipher", "AES128-GCM-SHA256"],
      profile: .init(cipherSuites: [0x1301, 0x009c]), version: 0x0303, suite: 0x009c),
    Row(
      testDescription: "the second suite of two", server: ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384"],
      profile: .init(cipherSuites: [0x0a0a, 0xc02b, 0xc02c]), version: 0x0303, suite: 0xc02c),
    Row(
      testDescription: "TLS 1.3 with one suite", server: ["-tls1_3"],
      profile: .init(cipherSuites: [0x1303, 0xc02b]), version: 0x0304, suite: 0x1303),
    Row(
      testDescription: "a hello retry", server: ["-tls1_3", "-groups", "P-384"],
      profile: .init(groups: [0x6a6a, 0x11ec, 0x001d, 0x0018]), version: 0x0304),
    Row(
      testDescription: "RSA-PSS signatures with SHA-512", key: ["rsa:2048"], server: ["-tls1_3"],
      profile: .init(signatureSchemes: [0x0806, 0x0b0b]), version: 0x0304),
    Row(
      testDescription: "Ed25519", key: ["ed25519"], server: ["-tls1_3"],
      profile: .init(signatureSchemes: [0x0807]), version: 0x0304),
    Row(
      testDescription: "a request for a client certificate", server: ["-tls1_3", "-verify", "1"],
      profile: .init(), version: 0x0304),
    Row(
      testDescription: "a wish for a stapled status", server: ["-tls1_3"],
      profile: .init(requestsStatus: true), version: 0x0304),
  ])
  func `A probe finishes with`(_ row: Row) throws {
    let server = try TestServer(key: row.key, row.server)
    let result = try result(ProbeOffer(serverName: host, profile: row.profile), server.port)
    #expect(result.version == row.version)
    if let suite = row.suite { #expect(result.cipherSuite == suite) }
    #expect(result.certificates == [try server.certificate.der()])
  }

  @Test func `ALPN is the server's choice among the names offered`() throws {
    let server = try TestServer(["-tls1_3", "-alpn", "http/1.1"])
    let names: [UInt8] = [2] + Array("h2".utf8) + [8] + Array("http/1.1".utf8)
    let chosen = try result(ProbeOffer(serverName: host, alpn: names), server.port)
    #expect(chosen.alpn == Array("http/1.1".utf8))
    let none = try result(ProbeOffer(serverName: host), server.port)
    #expect(none.alpn == nil)
  }

  @Test func `Nothing in common is a failure with a reason`() throws {
    let server = try TestServer(["-tls1_2"])
    let step = try probe(
      ProbeOffer(serverName: host, profile: .init(lowest: 0x0304, highest: 0x0304)), server.port)
    guard case .failed(let detail, _) = step else { throw Unexpected() }
    #expect(detail.contains("alert protocol version"))
  }

  @Test func `An anonymous server never finishes a probe`() throws {
    let server = try TestServer(["-tls1_2", "-nocert", "-cipher", "aNULL:@SECLEVEL=0"])
    let profile = ProbeOffer.Profile(lowest: 0x0301, highest: 0x0303, cipherSuites: [0x00a6, 0xc018, 0x006c, 0xc02b])
    guard case .failed = try probe(ProbeOffer(serverName: host, profile: profile), server.port) else {
      throw Unexpected()
    }
  }

  @Test func `Endless, foreign and cut input fails, and a failed probe stays failed`() throws {
    let junk = try client.session(ProbeOffer(serverName: host))
    _ = junk.start()
    guard case .failed = junk.receive(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)) else { throw Unexpected() }
    #expect(junk.receive([1]) == .failed(detail: "probe is not running", farewell: []))

    let cut = try client.session(ProbeOffer(serverName: host))
    _ = cut.start()
    #expect(cut.receive([0x16, 3, 3]) == .needMore)
    #expect(cut.receiveEnd() == .failed(detail: "connection closed in the handshake", farewell: []))

    let endless = try client.session(ProbeOffer(serverName: host))
    _ = endless.start()
    let much = [UInt8](repeating: 0, count: ProbeSession.inputLimit + 1)
    #expect(endless.receive(much) == .failed(detail: "server sent more than 262144 bytes", farewell: []))

    let idle = try client.session(ProbeOffer(serverName: host))
    #expect(idle.receive([1]) == .failed(detail: "probe is not running", farewell: []))
  }

  @Test func `An offer OpenSSL knows nothing of is an error`() {
    #expect(throws: TLSError.self) {
      try client.session(ProbeOffer(serverName: host, profile: .init(cipherSuites: [0x0a0a, 0xfefe])))
    }
  }
}
