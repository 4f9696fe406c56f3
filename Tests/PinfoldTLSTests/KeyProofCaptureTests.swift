import PinfoldModel
import PinfoldTLS
import PinfoldWire
import Testing

/// Every captured ServerKeyExchange proves its key, and nothing next to it does.
struct KeyProofCaptureTests {
  private func key(_ flight: ServerFlight) throws -> LeafKey {
    let verifier = ChainVerifier(trusting: try TrustStore([]))
    return try verifier.judge(flight, host: try #require(Capture.host), now: Capture.now).leafKey
  }

  /// What a signed flight consists of.
  private struct Parts {
    var client: [UInt8]
    var server: [UInt8]
    var parameters: [UInt8]
    var signature: [UInt8]
    let scheme: UInt16?
    let version: UInt16
    let offered: [UInt16]?

    init(_ capture: Capture) throws {
      let (hello, flight) = try capture.flight()
      guard case .signature(let exchange, _) = flight.keyProof else { throw Unexpected() }
      client = hello.random
      server = flight.serverHello.random
      parameters = Array(flight.bytes(exchange.parameters))
      signature = Array(flight.bytes(exchange.signature))
      scheme = exchange.scheme
      version = flight.serverHello.version
      offered = hello.signatureAlgorithms.isEmpty ? nil : hello.signatureAlgorithms
    }

    func proof(by key: LeafKey) -> KeyProof {
      KeyProof.verify(
        signature: signature,
        over: KeyProof.serverKeyExchangeContent(
          clientRandom: client[...], serverRandom: server[...], parameters: parameters[...]),
        scheme: scheme, offered: offered, version: version, by: key)
    }
  }

  @Test func `There are captures of every kind of signature`() {
    #expect(Capture.signed.count >= 40)
    let schemes = Set(Capture.signed.compactMap { $0.facts.signatureScheme?.id })
    #expect(schemes.isSuperset(of: ["0x0401", "0x0403", "0x0503", "0x0603", "0x0804", "0x0807", "0x0809", "0x0203"]))
  }

  @Test(arguments: Capture.inBand)
  func `The key is proven as the facts say`(_ capture: Capture) throws {
    let (hello, flight) = try capture.flight()
    let proof = KeyProof.of(flight, answering: hello, by: try key(flight))
    #expect(proof == (capture.facts.keyProof == "key_transport" ? .keyTransport : .proven))
    #expect(proof.holds)
  }

  @Test(arguments: Capture.signed)
  func `No bit of randoms, parameters or signature may differ`(_ capture: Capture) throws {
    let (_, flight) = try capture.flight()
    let key = try key(flight)
    let parts = try Parts(capture)
    #expect(parts.proof(by: key) == .proven)
    for field in [\Parts.client, \.server, \.parameters, \.signature] {
      let count = parts[keyPath: field].count
      for index in Set([0, 1, count / 2, count - 2, count - 1]) {
        var changed = parts
        changed[keyPath: field][index] ^= 1 << UInt8(index % 8)
        #expect(changed.proof(by: key) == .notProven(.signatureWrong))
      }
      var shorter = parts
      shorter[keyPath: field].removeLast()
      #expect(shorter.proof(by: key) == .notProven(.signatureWrong))
    }
    #expect(parts.proof(by: key) == .proven)
  }

  @Test(arguments: Capture.signed)
  func `Another key of the same kind proves nothing`(_ capture: Capture) throws {
    let (_, flight) = try capture.flight()
    let own = try key(flight)
    let parts = try Parts(capture)
    var others = 0
    for other in Capture.signed {
      let (_, otherFlight) = try other.flight()
      let otherKey = try key(otherFlight)
      guard otherKey.digest != own.digest else { continue }
      others += 1
      #expect(!parts.proof(by: otherKey).holds)
    }
    #expect(others > 0)
  }

  @Test(arguments: Capture.signed.filter { $0.facts.version == "TLS1.2" })
  func `A scheme the client did not offer proves nothing`(_ capture: Capture) throws {
    let (_, flight) = try capture.flight()
    let key = try key(flight)
    let parts = try Parts(capture)
    let scheme = try #require(parts.scheme)
    let content = KeyProof.serverKeyExchangeContent(
      clientRandom: parts.client[...], serverRandom: parts.server[...], parameters: parts.parameters[...])
    let others = (parts.offered ?? []).filter { $0 != scheme }
    let proof = KeyProof.verify(
      signature: parts.signature, over: content, scheme: scheme, offered: others, version: 0x0303, by: key)
    #expect(proof == .notProven(.schemeNotOffered))
    for other in others {
      let proof = KeyProof.verify(
        signature: parts.signature, over: content, scheme: other, offered: others, version: 0x0303, by: key)
      #expect(!proof.holds, "scheme \(other)")
    }
  }

  @Test(arguments: Capture.signed)
  func `A signature of one version proves nothing in another`(_ capture: Capture) throws {
    let (_, flight) = try capture.flight()
    let key = try key(flight)
    let parts = try Parts(capture)
    let content = KeyProof.serverKeyExchangeContent(
      clientRandom: parts.client[...], serverRandom: parts.server[...], parameters: parts.parameters[...])
    let wrongVersions: [UInt16] = parts.scheme == nil ? [0x0300, 0x0303, 0x0304] : [0x0300, 0x0301, 0x0302]
    for version in wrongVersions {
      let proof = KeyProof.verify(
        signature: parts.signature, over: content, scheme: parts.scheme, offered: parts.offered, version: version,
        by: key)
      #expect(proof == .notProven(.schemeRefused))
    }
  }

  @Test func `A DSA key is never proven`() throws {
    let capture = try Capture("tls12-openssl-dsa")
    let verifier = ChainVerifier(trusting: try TrustStore([]))
    let leaf = try verifier.judge(certificates: capture.chain, host: try #require(Capture.host), now: Capture.now)
    #expect(leaf.leafKey.kind == .unusable)
    for scheme: UInt16 in [0x0202, 0x0402, 0x0403, 0x0401] {
      let proof = KeyProof.verify(
        signature: [1], over: [2], scheme: scheme, offered: [scheme], version: 0x0303, by: leaf.leafKey)
      #expect(proof == .notProven(.keyUnusable))
    }
  }
}
