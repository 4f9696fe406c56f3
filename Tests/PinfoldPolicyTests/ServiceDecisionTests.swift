import PinfoldModel
import PinfoldPolicy
import Testing

/// Hosts that a pin service speaks for, as far as the policy decides about them.
@Suite struct ServiceDecisionTests {
  private let pin = Pin.publicKey(Samples.digest(1))
  private let supplied = Pin.publicKey(Samples.digest(3))

  private func snapshot(
    _ standing: PolicySnapshot.Standing? = nil, rule: (inout RuleSettings) -> Void = { _ in },
    local change: (inout LocalPolicy) -> Void = { _ in }
  ) throws -> PolicySnapshot {
    var local = LocalPolicy()
    local.serviceDomains = try Samples.table([("**.example.org", []), ("api.example.com", []), ("*.example.com", [])])
    change(&local)
    let table = try Samples.table([("api.example.com", [pin])], rule)
    return PolicySnapshot(standing ?? .document(Samples.document(table)), local: local)
  }

  private func decide(_ host: String, _ snapshot: PolicySnapshot, now: Timestamp = Samples.now) throws -> Decision {
    snapshot.decide(try Samples.authority(host), at: now)
  }

  @Test("A host without rule is left to its service, blocked until pins are supplied", arguments: [true, false])
  func unsupplied(hasPolicy: Bool) throws {
    let snapshot = try snapshot(hasPolicy ? nil : .notConfigured, local: { $0.unpinned = .tunnel })
    let decision = try decide("www.example.com:443", snapshot)
    #expect(decision.action == .block(.pinsUnavailable))
    #expect(decision.source == .service && decision.state == .blocked)
    #expect(decision.serviceDomain?.pattern == "*.example.com")
    #expect(decision.serviceDomain?.number == 2)
    #expect(decision.isPinned)
    let (_, steps) = snapshot.explain(try Samples.authority("www.example.com:443"), at: Samples.now)
    #expect(steps.contains("a pin service speaks for *.example.com"))
  }

  @Test("Supplied pins are enforced by the defaults of a rule, until they expire") func defaults() throws {
    let expiry = Timestamp(seconds: 1700)
    let snapshot = try snapshot(local: { $0.tls13 = .keyLog })
    let decision = try decide("www.example.com:443", snapshot).supplied(
      with: PinSet([supplied]), from: .service, expiresAt: expiry)
    #expect(decision.action == .inspect && decision.state == .enforce && decision.source == .service)
    #expect(decision.match == .leaf && decision.mode == .enforce && decision.verifyChain && !decision.sniOptional)
    #expect(decision.tls13 == .keyLog && decision.expiresAt == expiry && decision.portAllowed)
    #expect(!decision.neverDisable && !decision.trustOnFirstUse)
    #expect(decision.pins.entries.map(\.pin) == [supplied])
    let nothing = try decide("www.example.com:443", snapshot).supplied(with: .empty, from: .service, expiresAt: nil)
    #expect(nothing.action == .block(.pinsUnavailable))
  }

  @Test("A rule wins over a service, also one that is switched off or expired") func ruleWins() throws {
    #expect(try decide("api.example.com:443", snapshot()).source == .policy)
    let off = try decide("api.example.com:443", snapshot(rule: { $0.enabled = false }))
    #expect(off.action == .verifyOnly && off.source == .none && off.serviceDomain == nil)
    let late = try decide("api.example.com:443", snapshot(), now: Samples.expiry)
    #expect(late.action == .block(.pinsExpired) && late.source == .policy)
    // An expired policy says nothing of a host that it never named.
    #expect(try decide("www.example.com:443", snapshot(), now: Samples.expiry).source == .service)
  }

  @Test("Builtin pins win over a service") func builtinWins() throws {
    let builtin = try Samples.table([("www.example.com", [pin])])
    let snapshot = try snapshot(local: { $0.builtin = builtin })
    #expect(try decide("www.example.com:443", snapshot).source == .builtin)
  }

  @Test("Without an acceptable bundle nothing is left to a service") func unavailable() throws {
    let decision = try decide("www.example.com:443", snapshot(.unavailable))
    #expect(decision.action == .block(.pinsUnavailable) && decision.source == .none)
    #expect(decision.serviceDomain == nil)
  }

  @Test("A service opens no port and speaks for nobody else") func elsewhere() throws {
    #expect(try !decide("www.example.com:8443", snapshot()).portAllowed)
    #expect(try decide("example.com:443", snapshot()).source == .none)
    #expect(try decide("a.b.example.com:443", snapshot()).source == .none)
    #expect(try decide("a.b.example.org:443", snapshot()).source == .service)
    #expect(try decide("192.0.2.1:443", snapshot()).source == .none)
  }

  @Test("A decision that waits for pins allows nothing, whatever the evidence") func judged() throws {
    let decision = try decide("www.example.com:443", snapshot())
    let element = Evidence.Element(publicKey: Samples.digest(1), certificate: Samples.digest(9))
    let evidence = Evidence(
      publicKey: Samples.digest(1), certificate: Samples.digest(9), chain: .built([element]), nameMatches: true,
      keyProven: true)
    #expect(decision.judge(evidence, method: .inBand).reason == .pinsUnavailable)
    #expect(decision.judgeUnseen().reason == .pinsUnavailable)
    #expect(decision.suspended().judge(evidence, method: .inBand).reason == .pinsUnavailable)
  }
}
