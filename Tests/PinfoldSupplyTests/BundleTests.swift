import FoundationEssentials
import PinfoldConfig
import PinfoldCrypto
import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import Testing

@testable import PinfoldSupply

@Suite struct BundleTests {
  private func refusal(_ fixture: SupplyFixture, _ bytes: [UInt8], highest: UInt64 = 0) throws -> String? {
    do throws(BundleRefusal) {
      let bundle = try PolicyBundle(envelope: bytes, trust: fixture.trustOrFail(), file: "b")
      try bundle.requireAcceptable(at: fixture.now, highest: highest)
      return nil
    } catch { return error.word }
  }

  @Test func `a signed policy is read with its signers`() throws {
    let fixture = try SupplyFixture(keyCount: 2)
    let bundle = try PolicyBundle(envelope: fixture.bundle(version: 7), trust: fixture.trust, file: "b")
    #expect(bundle.document.version == 7)
    #expect(bundle.signers == fixture.keys.map(\.publicKey.keyID))
    #expect(bundle.payloadDigest == SHA256.digest(fixture.policy(version: 7)))
    try bundle.requireAcceptable(at: fixture.now, highest: 7)
  }

  @Test(
    arguments: [
      (-86_400, 86_400, nil), (-86_400, 1, nil), (-86_400, 0, "expired"), (-86_400, -1, "expired"), (300, 86_400, nil),
      (301, 86_400, "not_yet_issued"), (86_400, 172_800, "not_yet_issued"),
    ] as [(Int64, Int64, String?)])
  func `a policy holds from five minutes before its issue to its expiry`(
    issued: Int64, expires: Int64, word: String?
  ) throws {
    let fixture = try SupplyFixture()
    #expect(try refusal(fixture, fixture.bundle(version: 1, issuedIn: issued, expiresIn: expires)) == word)
  }

  @Test(arguments: [(6, "rollback"), (7, nil), (8, nil)] as [(Int, String?)])
  func `an older version than the highest ever accepted is a rollback`(version: Int, word: String?) throws {
    let fixture = try SupplyFixture()
    #expect(try refusal(fixture, fixture.bundle(version: version), highest: 7) == word)
  }

  @Test func `a stranger's bundle, an altered one and an unsigned policy are refused`() throws {
    let (fixture, stranger) = (try SupplyFixture(), try SupplyFixture())
    #expect(try refusal(fixture, stranger.bundle(version: 1)) == "signatures")
    #expect(try refusal(fixture, fixture.policy(version: 1)) == "envelope")
    let other = Envelope.sign(fixture.policy(version: 1), type: "application/json", keys: fixture.keys)
    #expect(try refusal(fixture, other) == "envelope")
  }

  @Test func `the right signature on another payload is refused`() throws {
    let fixture = try SupplyFixture()
    let signed = String(decoding: fixture.bundle(version: 1), as: UTF8.self)
    let altered = signed.replacing(
      Base64.encode(fixture.policy(version: 1)), with: Base64.encode(fixture.policy(version: 2)))
    #expect(altered != signed)
    #expect(try refusal(fixture, Array(altered.utf8)) == "signatures")
  }

  @Test func `a signed policy with a mistake is refused whole, with its place`() throws {
    let fixture = try SupplyFixture()
    let bytes = PolicyBundle.sign(fixture.policy(version: 1, host: "*.com"), keys: fixture.keys)
    do throws(BundleRefusal) {
      _ = try PolicyBundle(envelope: bytes, trust: fixture.trustOrFail(), file: "b")
      Issue.record("accepted")
    } catch {
      #expect(error.word == "invalid")
      #expect(error.description.hasPrefix("b:3:"))
    }
  }

  @Test func `every refusal is a line that names its file`() throws {
    let fixture = try SupplyFixture()
    let time = fixture.now
    let causes: [BundleRefusal.Cause] = [
      .file(.tooLarge(path: "b", limit: 5)), .envelope(.payloadType(found: "x", expected: "y")), .expired(time),
      .notYetIssued(time), .rollback(version: 1, highest: 2), .versionReused(3),
      .stateUnreadable(.corrupt(path: "s")), .notFetched, .keys("k"),
      .rotation(.payloadType(found: "x", expected: "y")), .rotationLost("r"), .fetch(.timedOut(.reply)),
    ]
    for cause in causes {
      let refusal = BundleRefusal(file: "b", cause: cause)
      #expect(refusal.description.hasPrefix("b: "))
      #expect(!refusal.description.contains("\n"))
    }
    #expect(Set(causes.map { BundleRefusal(file: "b", cause: $0).word }).count == causes.count)
  }

  @Test func `a payload type from outside cannot break the line`() {
    let error = EnvelopeError.payloadType(found: "a\n\u{1b}[2J", expected: "t")
    #expect(!error.description.utf8.contains { $0 < 0x20 })
  }
}

extension SupplyFixture {
  /// The trusted keys, where only a typed error may be thrown.
  func trustOrFail() throws(BundleRefusal) -> TrustedKeys {
    guard let trust = TrustedKeys(keys.map(\.publicKey), required: 1) else {
      throw BundleRefusal(file: "", cause: .notFetched)
    }
    return trust
  }
}

@Suite struct BundleSourceTests {
  @Test func `the valid bundle with the highest version wins, whatever the order`() throws {
    let fixture = try SupplyFixture()
    try fixture.put("old", fixture.bundle(version: 3))
    try fixture.put("new", fixture.bundle(version: 5))
    try fixture.put("expired", fixture.bundle(version: 9, expiresIn: -1))
    try fixture.put("broken", [1, 2, 3])
    for order in [["old", "new", "expired", "broken"], ["broken", "expired", "new", "old"]] {
      let (bundle, refusals) = try fixture.source(order).look(at: fixture.now)
      #expect(bundle?.document.version == 5)
      #expect(Set(refusals.map(\.word)) == ["expired", "envelope"])
    }
  }

  @Test func `the first of two bundles of one version wins`() throws {
    let fixture = try SupplyFixture()
    try fixture.put("one", fixture.bundle(version: 3, host: "one.example.com"))
    try fixture.put("two", fixture.bundle(version: 3, host: "two.example.com"))
    let (bundle, _) = try fixture.source(["one", "two"]).look(at: fixture.now)
    #expect(bundle?.file == "\(fixture.path)/one")
  }

  @Test func `a bundle over the limit is not read, one at the limit is`() throws {
    let fixture = try SupplyFixture()
    let bytes = fixture.bundle(version: 1)
    try fixture.put("b", bytes)
    let (none, refusals) = try fixture.source(["b"], maxBytes: bytes.count - 1).look(at: fixture.now)
    #expect(none == nil)
    #expect(refusals.map(\.word) == ["too_large"])
    #expect(try fixture.source(["b"], maxBytes: bytes.count).look(at: fixture.now).bundle != nil)
  }

  @Test func `files that do not exist are mistakes of the configuration, each at its place`() throws {
    let fixture = try SupplyFixture()
    try fixture.put("there", [])
    do throws(FileErrors) {
      try fixture.sourceOrFail(["there", "gone", "none/gone", "https://pins.example.com/policy"]).requireFiles()
      Issue.record("nothing missing")
    } catch {
      #expect(error.complaints.map(\.path) == ["policy.bundles[1]", "policy.bundles[2]"])
      #expect(error.text.contains("pinfold.json5:1:1: policy.bundles[1]: no such file: \(fixture.path)/gone"))
    }
    let source = try fixture.source(["gone", "https://pins.example.com/policy"])
    #expect(source.look(at: fixture.now).refusals.map(\.word) == ["unreadable"])
    #expect(
      source.examine(source.readFiles(), at: fixture.now, highest: 0, chain: TrustChain(source.trust)).missing == [
        "https://pins.example.com/policy"
      ])
  }

  @Test func `keys that are none and thresholds out of reach are mistakes of the configuration`() throws {
    let fixture = try SupplyFixture(keyCount: 2)
    var section = fixture.section()
    section.requiredSignatures = 3
    #expect(throws: FileErrors.self) { try BundleSource(section, file: "pinfold.json5") }
    section.requiredSignatures = 2
    #expect(try BundleSource(section, file: "pinfold.json5").trust.keys.count == 2)
    section.trustedKeys[1] = fixture.located("AAAA", "policy.trusted_keys[1]", line: 7)
    do throws(FileErrors) {
      _ = try BundleSource(section, file: "pinfold.json5")
      Issue.record("taken")
    } catch {
      #expect(error.text.hasPrefix("pinfold.json5:7:1: policy.trusted_keys[1]: 3 bytes: an Ed25519 public key is"))
    }
    section.trustedKeys = []
    #expect(throws: FileErrors.self) { try BundleSource(section, file: "pinfold.json5") }
  }
}

extension BundleSource {
  /// All bundles, when nothing was accepted before.
  func look(at now: Timestamp) -> (bundle: PolicyBundle?, refusals: [BundleRefusal]) {
    let seen = examine(readFiles(), at: now, highest: 0, chain: TrustChain(trust))
    return (seen.newest, seen.refusals)
  }
}

extension SupplyFixture {
  /// The source, where only a typed error may be thrown.
  func sourceOrFail(_ bundles: [String]) throws(FileErrors) -> BundleSource {
    try BundleSource(section(bundles), file: "pinfold.json5")
  }
}
