import PinfoldModel
import PinfoldTLS
import Testing

/// Chains made for the occasion: what is judged, and what a path consists of.
struct ChainVerifierTests {
  private let now = Timestamp(seconds: 1_800_000_000)
  private let host = HostName.name("api.example.com")

  private func judge(
    _ identity: DemoIdentity, also: [Certificate] = [], trusting roots: [Certificate], host: HostName? = nil
  ) throws -> ChainJudgement {
    let sent = try (identity.chain + also).map { try $0.der() }
    return try ChainVerifier(trusting: TrustStore(roots)).judge(
      certificates: sent, host: host ?? self.host, now: now)
  }

  private func wish(_ change: (inout DemoAuthority.Wish) -> Void = { _ in }) -> DemoAuthority.Wish {
    var wish = DemoAuthority.Wish(commonName: "leaf", hosts: [host], now: now)
    change(&wish)
    return wish
  }

  @Test func `A chain over an intermediate authority verifies, leaf to root`() throws {
    let root = try DemoAuthority(commonName: "Root", now: now)
    let middle = try DemoAuthority(commonName: "Middle", now: now, signedBy: root)
    let leaf = try middle.issue(wish())
    let judgement = try judge(leaf, trusting: [root.certificate])
    #expect(judgement.chainVerified && judgement.nameMatches && judgement.chainError == nil)
    let wanted = [leaf.chain[0], middle.certificate, root.certificate]
    #expect(judgement.builtChain.map(\.certificate) == wanted.map(\.digest))
    #expect(judgement.builtChain.map(\.key) == wanted.map(\.keyDigest))
  }

  @Test func `A pinned authority appended to a stranger's chain is not in the path`() throws {
    let pinned = try DemoAuthority(commonName: "Pinned", now: now)
    let stranger = try DemoAuthority(commonName: "Stranger", now: now)
    let leaf = try stranger.issue(wish())
    // Both roots are trusted, as public authorities are, so the chain itself verifies.
    let judgement = try judge(
      leaf, also: [stranger.certificate, pinned.certificate],
      trusting: [pinned.certificate, stranger.certificate])
    #expect(judgement.chainVerified)
    #expect(judgement.builtChain.map(\.certificate) == [leaf.chain[0].digest, stranger.certificate.digest])
    #expect(!judgement.builtChain.contains { $0.key == pinned.certificate.keyDigest })
  }

  @Test func `A chain that does not verify has no path, whatever was appended`() throws {
    let pinned = try DemoAuthority(commonName: "Pinned", now: now)
    let stranger = try DemoAuthority(commonName: "Stranger", now: now)
    let judgement = try judge(
      try stranger.issue(wish()), also: [stranger.certificate, pinned.certificate], trusting: [pinned.certificate])
    #expect(!judgement.chainVerified && judgement.builtChain.isEmpty)
    #expect(judgement.chainError == "self-signed certificate in certificate chain")
    #expect(judgement.nameMatches)
  }

  @Test func `A forged authority of the same name verifies nothing`() throws {
    let real = try DemoAuthority(commonName: "Root", now: now)
    let forged = try DemoAuthority(commonName: "Root", now: now)
    let judgement = try judge(forged.issue(wish()), also: [forged.certificate], trusting: [real.certificate])
    #expect(!judgement.chainVerified && judgement.builtChain.isEmpty)
  }

  @Test func `A leaf cannot sign another leaf`() throws {
    let root = try DemoAuthority(commonName: "Root", now: now)
    let judgement = try judge(root.issue(wish()), also: [], trusting: [root.issue(wish()).chain[0]])
    #expect(!judgement.chainVerified)
  }

  struct Row: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let error: String
    let change: @Sendable (inout DemoAuthority.Wish) -> Void
  }

  @Test(arguments: [
    Row(testDescription: "expired a second ago", error: "certificate has expired") {
      $0.notAfter.seconds = 1_799_999_999
    },
    Row(testDescription: "valid from the next second", error: "certificate is not yet valid") {
      $0.notBefore.seconds = 1_800_000_001
    },
    Row(testDescription: "made for clients", error: "unsuitable certificate purpose") { $0.usage = "clientAuth" },
    Row(testDescription: "made for code", error: "unsuitable certificate purpose") { $0.usage = "codeSigning" },
  ])
  func `A leaf that is not good for this is refused`(_ row: Row) throws {
    let root = try DemoAuthority(commonName: "Root", now: now)
    let judgement = try judge(root.issue(wish(row.change)), trusting: [root.certificate])
    #expect(!judgement.chainVerified)
    #expect(judgement.chainError == row.error)
  }

  @Test func `A certificate that signs itself is not trusted, unless it is among the trusted`() throws {
    let leaf = try DemoAuthority.selfSigned(wish())
    let stranger = try judge(leaf, trusting: [])
    #expect(!stranger.chainVerified && stranger.nameMatches)
    #expect(stranger.chainError == "self-signed certificate")
    #expect(try judge(leaf, trusting: leaf.chain).chainVerified)
  }

  struct Name: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let certificate: [HostName]
    let commonName: String
    let host: String
    let matches: Bool

    init(_ text: String, _ certificate: [HostName], cn: String = "leaf", host: String, _ matches: Bool) {
      testDescription = text
      self.certificate = certificate
      commonName = cn
      self.host = host
      self.matches = matches
    }
  }

  @Test(arguments: [
    Name("the name itself", [.name("a.example.com")], host: "a.example.com", true),
    Name("another case", [.name("a.example.com")], host: "A.Example.COM", true),
    Name("another label", [.name("a.example.com")], host: "b.example.com", false),
    Name("a label more", [.name("example.com")], host: "a.example.com", false),
    Name("no names, only a common name", [], cn: "a.example.com", host: "a.example.com", false),
    Name(
      "a common name beside other names", [.name("b.example.com")], cn: "a.example.com", host: "a.example.com", false),
    Name("a wildcard for one label", [.name("*.example.com")], host: "a.example.com", true),
    Name("a wildcard for two labels", [.name("*.example.com")], host: "b.a.example.com", false),
    Name("a wildcard for none", [.name("*.example.com")], host: "example.com", false),
    Name("a wildcard in a part of a label", [.name("a*.example.com")], host: "ab.example.com", false),
    Name("a wildcard over a top level", [.name("*.com")], host: "example.com", false),
    Name("an address", [.address(.v4(0x0a00_0001))], host: "10.0.0.1", true),
    Name("another address", [.address(.v4(0x0a00_0001))], host: "10.0.0.2", false),
    Name("an address as a name", [.name("10.0.0.1")], host: "10.0.0.1", false),
    Name("an IPv6 address", [.address(.v6(high: 0, low: 1))], host: "::1", true),
  ])
  func `Names match as present-day clients match them`(_ row: Name) throws {
    let root = try DemoAuthority(commonName: "Root", now: now)
    let leaf = try root.issue(
      wish {
        $0.hosts = row.certificate
        $0.commonName = row.commonName
      })
    let judgement = try judge(leaf, trusting: [root.certificate], host: HostName(row.host))
    #expect(judgement.chainVerified)
    #expect(judgement.nameMatches == row.matches)
  }
}
