import PinfoldModel
import Testing

@testable import PinfoldPolicy

@Suite struct TrustedKeyTests {
  private static let first = Samples.digest(1)
  private static let second = Samples.digest(2)
  private static let now = Timestamp(seconds: 1_000_000)

  private static func key(_ pin: Pin, _ origin: TrustedKey.Origin = .firstUse) -> TrustedKey {
    TrustedKey(pin, since: now, origin: origin)
  }

  private static func evidence(
    _ digest: Digest256, proven: Bool = true, chain: Evidence.Chain = .invalid("self-signed")
  )
    -> Evidence
  {
    Evidence(publicKey: digest, certificate: digest, chain: chain, nameMatches: false, keyProven: proven)
  }

  /// A decision by a rule that learns, or by no rule at all.
  private static func decision(
    learning: Bool, pins: [Pin] = [], verifyChain: Bool = false, mode: EnforcementMode = .enforce,
    unpinned: UnpinnedMode = .block, authority: String = "192.168.1.42:8443"
  ) throws -> Decision {
    var builder = RuleTableBuilder()
    if learning {
      var settings = RuleSettings()
      settings.trustOnFirstUse = true
      settings.verifyChain = verifyChain
      settings.mode = mode
      try builder.add(try HostPattern(authority), pins: pins.map { ($0, .listed) }, settings: settings)
    }
    let document = PolicyDocument(
      version: 1, issuedAt: Timestamp(seconds: 0), expiresAt: Timestamp(seconds: 2_000_000), table: builder.table())
    var local = LocalPolicy()
    local.unpinned = unpinned
    let authority = try #require(Authority(authority))
    return PolicySnapshot(.document(document), local: local).decide(authority, at: now)
  }

  // MARK: A key that cannot be read

  /// Would catch a damaged record that turns a paired device into an unpinned host.
  @Test(
    "A device whose key cannot be read is blocked, whatever unpinned hosts may do", arguments: UnpinnedMode.allCases)
  func unreadable(unpinned: UnpinnedMode) throws {
    let decision = try Self.decision(learning: false, unpinned: unpinned).withUnreadableKey()
    #expect(decision.action == .block(.pinsUnavailable) && decision.state == .blocked && decision.source == .device)
    #expect(!decision.judge(Self.evidence(Self.first), method: .inBand).allows && !decision.judgeUnseen().allows)
    #expect(try Self.decision(learning: true).withUnreadableKey().learnsKey)
  }

  // MARK: First use

  @Test("A rule that learns and knows no key believes no key by itself") func nothingByItself() throws {
    let decision = try Self.decision(learning: true).trusting(nil)
    #expect(decision.learnsKey && decision.action == .inspect && decision.isPinned)
    #expect(decision.judge(Self.evidence(Self.first), method: .inBand).reason == .pinsUnavailable)
  }

  @Test("The first key in order may be learnt") func learns() throws {
    let decision = try Self.decision(learning: true).trusting(nil)
    for method in [VerificationMethod.inBand, .keyLog, .probe] {
      #expect(decision.judgeFirstUse(Self.evidence(Self.first), method: method).reason == .pinMatch)
    }
  }

  /// Would catch trust that begins with somebody who merely copied a certificate.
  @Test("A key that is not proven, a chain that is asked for and bad, and a resumed session teach nothing")
  func refusals() throws {
    let decision = try Self.decision(learning: true).trusting(nil)
    #expect(decision.judgeFirstUse(Self.evidence(Self.first, proven: false), method: .inBand).reason == .keyNotProven)
    #expect(decision.judgeFirstUse(Self.evidence(Self.first), method: .resumption).reason == .resumptionUnverified)
    let strict = try Self.decision(learning: true, verifyChain: true).trusting(nil)
    #expect(strict.judgeFirstUse(Self.evidence(Self.first), method: .inBand).reason == .chainInvalid)
  }

  @Test("Afterwards only that key passes, whatever the mode", arguments: EnforcementMode.allCases)
  func afterwards(mode: EnforcementMode) throws {
    let decision = try Self.decision(learning: true, mode: mode).trusting(Self.key(.publicKey(Self.first)))
    #expect(!decision.learnsKey && decision.source == .device)
    #expect(decision.judge(Self.evidence(Self.first), method: .inBand).reason == .pinMatch)
    #expect(decision.judge(Self.evidence(Self.second), method: .inBand).reason == .pinMismatch)
    #expect(decision.judgeFirstUse(Self.evidence(Self.second), method: .inBand).reason == .pinMismatch)
  }

  @Test("The rule's own pins go on counting beside it") func beside() throws {
    let rule = try Self.decision(learning: true, pins: [.publicKey(Self.second)])
    #expect(rule.trusting(nil).learnsKey)
    let decision = rule.trusting(Self.key(.certificate(Self.first), .paired))
    #expect(decision.source == .policy)
    for digest in [Self.first, Self.second] {
      #expect(decision.judge(Self.evidence(digest), method: .probe).reason == .pinMatch)
    }
    #expect(decision.judge(Self.evidence(Samples.digest(3)), method: .probe).reason == .pinMismatch)
  }

  // MARK: Paired devices

  @Test(
    "A paired device is pinned to its certificate, without a chain, on a port that is open",
    arguments: UnpinnedMode.allCases)
  func paired(unpinned: UnpinnedMode) throws {
    let bare = try Self.decision(learning: false, unpinned: unpinned)
    #expect(!bare.portAllowed && !bare.isPinned)
    let decision = bare.trusting(Self.key(.certificate(Self.first), .paired))
    #expect(decision.source == .device && decision.isPinned && decision.portAllowed && decision.state == .enforce)
    #expect(decision.judge(Self.evidence(Self.first), method: .inBand).reason == .pinMatch)
    #expect(decision.judge(Self.evidence(Self.second), method: .inBand).reason == .pinMismatch)
    #expect(decision.judge(Self.evidence(Self.first, proven: false), method: .inBand).reason == .keyNotProven)
  }

  @Test("A key that was only seen first counts for the rule that learnt it, and no longer") func withoutRule() throws {
    let decision = try Self.decision(learning: false).trusting(Self.key(.publicKey(Self.first)))
    #expect(decision.action == .block(.unpinnedBlocked) && !decision.isPinned)
  }

  /// Would catch a local pairing that takes the place of the signed policy.
  @Test("A pairing changes nothing where a rule speaks, is switched off, or everything is blocked") func rules() throws
  {
    let paired = Self.key(.certificate(Self.first), .paired)
    var builder = RuleTableBuilder()
    try builder.add(try HostPattern("a.local"), pins: [(.publicKey(Self.second), .listed)])
    var off = RuleSettings()
    off.enabled = false
    off.trustOnFirstUse = true
    try builder.add(try HostPattern("b.local"), pins: [], settings: off)
    let document = PolicyDocument(
      version: 1, issuedAt: Timestamp(seconds: 0), expiresAt: Timestamp(seconds: 2_000_000), table: builder.table())
    func action(_ host: String, _ standing: PolicySnapshot.Standing, _ now: Timestamp = Self.now) throws -> Decision {
      let authority = try #require(Authority("\(host):443"))
      return PolicySnapshot(standing, local: LocalPolicy()).decide(authority, at: now).trusting(paired)
    }
    #expect(
      try action("a.local", .document(document)).pins.contains(publicKey: Self.first, certificate: Self.first) == false)
    let switchedOff = try action("b.local", .document(document))
    #expect(switchedOff.action == .verifyOnly && !switchedOff.learnsKey)
    #expect(try action("c.local", .unavailable).action == .block(.pinsUnavailable))
    #expect(try action("a.local", .document(document), Timestamp(seconds: 3_000_000)).action == .block(.pinsExpired))
    #expect(try action("c.local", .notConfigured).action == .inspect)
  }

  @Test("A set with one pin more keeps the others and their roles") func adding() {
    let set = PinSet([.publicKey(Self.first)]).adding(.certificate(Self.second)).adding(.publicKey(Self.second))
    #expect(set.entries.map(\.pin) == [.publicKey(Self.first), .certificate(Self.second), .publicKey(Self.second)])
    #expect(PinSet.empty.adding(.publicKey(Self.first)).count == 1)
  }
}

@Suite struct LocalNetworkTests {
  @Test(
    arguments: [
      "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.42", "169.254.3.4", "::1", "fe80::1", "fd12::1",
      "::ffff:192.168.1.1", "printer.local", "Printer.Local.", "tv.home.arpa", "nas", "localhost", "a.b.local",
    ])
  func `is local`(host: String) throws {
    let name = try #require(HostName(host))
    #expect(LocalNetwork.contains(name))
  }

  @Test(
    arguments: [
      "8.8.8.8", "100.64.0.1", "169.254.169.254", "172.32.0.1", "0.0.0.0", "2001:4860::8888", "64:ff9b::c0a8:101", "::",
      "ff02::1", "example.com", "local.example.com", "printer.local.example.com", "xlocal.com", "notlocal.arpa",
      "home.arpa.com", "fd00:ec2::254",
    ])
  func `is not local`(host: String) throws {
    let name = try #require(HostName(host))
    #expect(!LocalNetwork.contains(name))
  }
}
