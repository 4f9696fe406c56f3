import PinfoldModel
import PinfoldTLS
import PinfoldWire
import Testing

/// Invariant 3: what Pinfold's parser accepts, it reads the one way a TLS client reads it.
///
/// An OpenSSL client and an OpenSSL server shake hands in memory; the server's flight is changed on its way, and Pinfold
/// reads exactly the bytes that the client gets. What it would catch: any way of laying out a flight in which Pinfold
/// proves one key while the client takes another one's. Seeds make every failure repeatable but for the keys.
@Suite struct DifferentialTests {
  /// One kind of handshake.
  struct Row: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let key: [String]
    let suites: String
    var version: Int32 = 0x0303
    var asksForCertificate = false
  }

  static let rows = [
    Row(testDescription: "TLS 1.2, P-256", key: Identity.p256, suites: "ECDHE-ECDSA-AES128-GCM-SHA256"),
    Row(
      testDescription: "TLS 1.2, RSA, client certificate asked for", key: Identity.rsa,
      suites: "ECDHE-RSA-AES128-GCM-SHA256", asksForCertificate: true),
    Row(testDescription: "TLS 1.2, static RSA", key: Identity.rsa, suites: "AES128-GCM-SHA256"),
    Row(testDescription: "TLS 1.2, Ed25519", key: Identity.ed25519, suites: "ECDHE-ECDSA-AES128-GCM-SHA256"),
    Row(testDescription: "TLS 1.0, P-256", key: Identity.p256, suites: "ECDHE-ECDSA-AES128-SHA", version: 0x0301),
  ]
  /// Flights for each row; all but a handful reach the client otherwise than they were sent.
  static let count = 2_200

  /// How many flights met which fate.
  struct Tally {
    /// Flights that were changed on their way.
    var changed = 0
    /// Allowed, and taken by the client; and those of them that were changed.
    var both = 0
    var bothChanged = 0
    /// Allowed, and refused by the client: it wants renegotiation_info, and none but its own version.
    var pinfoldAlone: [String: Int] = [:]
    /// Refused, although the client would have taken it.
    var clientAlone = 0
    var neither = 0
  }

  @Test("The leaf Pinfold proves is the leaf OpenSSL's client takes", arguments: rows)
  func sameLeaf(_ row: Row) throws {
    let identity = try Identity("own", key: row.key)
    let foreign = try Identity("foreign", key: row.key)
    let server = try PeerContext(
      (identity, chain: foreign), version: row.version, suites: row.suites, asksForCertificate: row.asksForCertificate)
    let client = try PeerContext(nil, version: row.version, suites: row.suites)
    let verifier = ChainVerifier(trusting: try TrustStore([]))
    var tally = Tally()
    for seed in 0..<Self.count {
      var random = Random(seed: UInt64(seed))
      let app = try Peer(client)
      let hello = app.receive([])
      let honest = try Peer(server).receive(hello)
      let (bytes, mutations) = changed(honest, foreign.der, &random)
      if bytes != honest { tally.changed += 1 }
      let allowed = try leaf(hello, bytes, verifier)
      let answer = app.receive(bytes)
      // The client goes on with a handshake message; otherwise it is silent, or sends an alert.
      let accepts = answer.first == 22
      switch (allowed, accepts) {
      case (nil, false): tally.neither += 1
      case (nil, true): tally.clientAlone += 1
      case (.some(let leaf), _):
        let seen = app.leaf
        #expect(accepts == false || seen != nil, "seed \(seed), \(mutations): a client without a leaf")
        if let seen {
          let key = try Certificate(der: seen).keyDigest
          #expect(key == leaf.key, "seed \(seed), \(mutations): another key")
          #expect(seen == leaf.certificate, "seed \(seed), \(mutations): another certificate")
        }
        if accepts {
          tally.both += 1
          if bytes != honest { tally.bothChanged += 1 }
        } else {
          tally.pinfoldAlone["\(mutations)", default: 0] += 1
        }
      }
    }
    #expect(tally.changed >= 2_000, "\(tally)")
    #expect(tally.bothChanged >= Self.count / 20, "too little was allowed to mean much: \(tally)")
    #expect(tally.neither >= Self.count / 4, "too little was refused to mean much: \(tally)")
    #expect(tally.pinfoldAlone.values.reduce(0, +) <= Self.count / 50, "\(tally)")
  }

  private func changed(
    _ honest: [UInt8], _ foreign: [UInt8], _ random: inout Random
  ) -> (bytes: [UInt8], mutations: [Mutation]) {
    var flight = Flight(honest)
    let mutations = (0...random.next(below: 2)).map { _ in random.pick(Mutation.allCases) }
    for mutation in mutations { mutation.apply(to: &flight, foreign: foreign, &random) }
    var bytes = flight.bytes(random.pick(Flight.Framing.allCases), &random)
    for mutation in mutations { mutation.applyRaw(to: &bytes, &random) }
    return (bytes, mutations)
  }

  /// The leaf whose key Pinfold takes for proven; nil when it would not let the flight through.
  private func leaf(
    _ client: [UInt8], _ server: [UInt8], _ verifier: ChainVerifier
  ) throws -> (certificate: [UInt8], key: Digest256)? {
    var helloReader = ClientHelloReader()
    guard case .hello(let hello) = helloReader.receive(client.span) else { throw Unexpected("the client's hello") }
    var reader = ServerFlightReader(answering: hello)
    guard case .tls12Flight(let flight) = reader.receive(server.span), let host = HostName("api.pinfold.test"),
      let sent = flight.certificateBytes.first,
      let judgement = try? verifier.judge(flight, host: host, now: Timestamp(seconds: 1_795_219_200)),
      KeyProof.of(flight, answering: hello, by: judgement.leafKey).holds
    else { return nil }
    return (Array(sent), judgement.leafKeyDigest)
  }
}
