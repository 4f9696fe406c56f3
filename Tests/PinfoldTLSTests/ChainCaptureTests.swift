import PinfoldModel
import PinfoldTLS
import Testing

/// Every chain that was captured is judged as its facts say.
struct ChainCaptureTests {
  private static let verifier = Result { try ChainVerifier(trusting: TrustStore(caFile: Capture.trustedPath)) }

  private func judge(_ capture: Capture) throws -> ChainJudgement {
    try Self.verifier.get().judge(
      certificates: capture.chain, host: try #require(Capture.host), now: Capture.now)
  }

  @Test func `There are captures with chains, failing ones among them`() {
    #expect(Capture.withChain.count >= 80)
    #expect(Capture.withChain.contains { $0.facts.chainVerifies == false })
    #expect(Capture.withChain.contains { $0.facts.nameMatches == false })
  }

  @Test(arguments: Capture.withChain)
  func `Hashes of key and certificate are the facts'`(_ capture: Capture) throws {
    let judgement = try judge(capture)
    #expect(judgement.leafKeyDigest.base64 == capture.facts.leafSpkiSha256)
    #expect(judgement.leafCertificateDigest?.hex == capture.facts.leafSha256)
    let sent = try capture.chain.map { try Certificate(der: $0) }
    let facts = try #require(capture.facts.certificates)
    #expect(sent.map(\.keyDigest.base64) == facts.map(\.spkiSha256))
    #expect(sent.map(\.digest.hex) == facts.map(\.sha256))
  }

  @Test(arguments: Capture.withChain)
  func `Chain and name are judged as the facts say`(_ capture: Capture) throws {
    let judgement = try judge(capture)
    #expect(judgement.chainVerified == capture.facts.chainVerifies, "\(judgement.chainError ?? "")")
    #expect((judgement.chainError == nil) == judgement.chainVerified)
    #expect((judgement.chainVerified && judgement.nameMatches) == (capture.facts.nameMatches ?? false))
    #expect(judgement.builtChain.isEmpty == !judgement.chainVerified)
  }

  @Test(arguments: Capture.withChain)
  func `A verified path begins with the leaf and never has the same certificate twice`(_ capture: Capture) throws {
    let judgement = try judge(capture)
    guard judgement.chainVerified else { return }
    #expect(judgement.builtChain.first?.key == judgement.leafKeyDigest)
    #expect(judgement.builtChain.count >= 2)
    #expect(Set(judgement.builtChain.map(\.certificate)).count == judgement.builtChain.count)
    #expect(judgement.validUntil > Capture.now)
  }

  @Test func `A stranger among the certificates sent is not in the path`() throws {
    let capture = try Capture("tls12-openssl-messy-chain")
    let judgement = try judge(capture)
    let sent = try capture.chain.map { try Certificate(der: $0).digest }
    let built = judgement.builtChain.map(\.certificate)
    #expect(judgement.chainVerified)
    #expect(sent.count == 5 && !Set(sent).subtracting(built).isEmpty)
  }

  @Test(arguments: [("before it", Int64(0)), ("after it", 4_102_444_800)])
  func `Outside its validity a chain does not verify`(_ row: (String, Int64)) throws {
    let judgement = try Self.verifier.get().judge(
      certificates: Capture("tls12-curl-nginx-ecdsa").chain, host: try #require(Capture.host),
      now: Timestamp(seconds: row.1))
    #expect(!judgement.chainVerified)
    #expect(judgement.builtChain.isEmpty)
  }

  @Test func `A raw public key has a hash and nothing else`() throws {
    let capture = try Capture("tls12-openssl35-raw-public-key")
    let (_, flight) = try capture.flight()
    let judgement = try Self.verifier.get().judge(
      flight, host: try #require(Capture.host), now: Capture.now)
    #expect(judgement.leafKeyDigest.base64 == capture.facts.rawPublicKeySpkiSha256)
    #expect(judgement.leafCertificateDigest == nil)
    #expect(!judgement.chainVerified && !judgement.nameMatches && judgement.builtChain.isEmpty)
  }
}
