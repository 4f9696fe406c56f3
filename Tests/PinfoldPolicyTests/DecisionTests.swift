import PinfoldModel
import PinfoldPolicy
import Testing

@Suite struct DecisionTests {
  private let pin = Pin.publicKey(Samples.digest(1))
  private let builtinPin = Pin.publicKey(Samples.digest(2))

  /// One situation and what has to come of it.
  struct Row: CustomTestStringConvertible {
    var testDescription: String
    var action: Decision.Action
    var state: EnforcementState
    var source: PinSource
    var document: @Sendable (inout PolicyDocument) -> Void = { _ in }
    var rule: @Sendable (inout RuleSettings) -> Void = { _ in }
    var local: @Sendable (inout LocalPolicy) -> Void = { _ in }
    var now = Samples.now
    var host = "api.example.com:443"

    init(
      _ name: String, _ action: Decision.Action, _ state: EnforcementState, _ source: PinSource,
      document: @escaping @Sendable (inout PolicyDocument) -> Void = { _ in },
      rule: @escaping @Sendable (inout RuleSettings) -> Void = { _ in },
      local: @escaping @Sendable (inout LocalPolicy) -> Void = { _ in }, now: Timestamp = Samples.now,
      host: String = "api.example.com:443"
    ) {
      testDescription = name
      (self.action, self.state, self.source, self.document) = (action, state, source, document)
      (self.rule, self.local, self.now, self.host) = (rule, local, now, host)
    }
  }

  private func snapshot(_ row: Row) throws -> PolicySnapshot {
    var local = LocalPolicy()
    row.local(&local)
    let table = try Samples.table(
      [("api.example.com", [pin]), ("*.example.org", [pin]), ("dev.example.com:8443", [pin])], row.rule)
    return PolicySnapshot(.document(Samples.document(table, row.document)), local: local)
  }

  @Test("A host is treated as policy and configuration say", arguments: rows + switchedOff)
  func decides(_ row: Row) throws {
    let snapshot = try snapshot(row)
    let decision = snapshot.decide(try Samples.authority(row.host), at: row.now)
    #expect(decision.action == row.action)
    #expect(decision.state == row.state)
    #expect(decision.source == row.source)
    let (explained, steps) = snapshot.explain(try Samples.authority(row.host), at: row.now)
    #expect(explained.action == row.action)
    #expect(steps.count >= 2, "an explanation has steps")
  }

  static let rows: [Row] = [
    Row("a rule in force is enforced", .inspect, .enforce, .policy),
    Row("a rule in report mode reports", .inspect, .report, .policy, rule: { $0.mode = .report }),
    Row("an unknown host is blocked", .block(.unpinnedBlocked), .blocked, .none, host: "other.example:443"),
    Row(
      "an unknown host is verified where configured", .verifyOnly, .disabled, .none, local: { $0.unpinned = .verify },
      host: "other.example:443"),
    Row(
      "an unknown host is relayed where configured", .tunnel, .disabled, .none, local: { $0.unpinned = .tunnel },
      host: "other.example:443"),
    Row(
      "how unpinned hosts are treated does not touch pinned ones", .inspect, .enforce, .policy,
      local: { $0.unpinned = .tunnel }),
    Row("one second before its expiry the policy holds", .inspect, .enforce, .policy, now: Timestamp(seconds: 1999)),
    Row(
      "an expired policy blocks its hosts", .block(.pinsExpired), .blocked, .policy, local: { $0.unpinned = .tunnel },
      now: Samples.expiry),
    Row(
      "an expired policy blocks even what it had switched off", .block(.pinsExpired), .blocked, .policy,
      document: { $0.enabled = false }, now: Samples.expiry),
    Row(
      "an expired policy leaves unknown hosts to the configuration", .verifyOnly, .disabled, .none,
      local: { $0.unpinned = .verify }, now: Samples.expiry, host: "other.example:443"),
    Row(
      "an expired rule blocks its host", .block(.pinsExpired), .blocked, .policy, rule: { $0.expiresAt = Samples.now },
      local: { $0.unpinned = .tunnel }),
    Row(
      "a rule that expires later holds", .inspect, .enforce, .policy,
      rule: { $0.expiresAt = Timestamp(seconds: Samples.now.seconds + 1) }),
  ]

  static let switchedOff: [Row] = [
    Row("the kill switch leaves chain and name", .verifyOnly, .disabled, .none, document: { $0.enabled = false }),
    Row(
      "a rule that is not enabled leaves chain and name", .verifyOnly, .disabled, .none, rule: { $0.enabled = false }),
    Row(
      "an older app leaves chain and name", .verifyOnly, .disabled, .none,
      document: { $0.minAppVersion = AppVersion("1.5.0") }, local: { $0.identity.appVersion = AppVersion("1.4.9") }),
    Row(
      "an app of the least version is pinned", .inspect, .enforce, .policy,
      document: { $0.minAppVersion = AppVersion("1.5.0") }, local: { $0.identity.appVersion = AppVersion("1.5") }),
    Row(
      "an app of unknown version is pinned", .inspect, .enforce, .policy,
      document: { $0.minAppVersion = AppVersion("1.5.0") }),
    Row(
      "outside the rollout chain and name are left", .verifyOnly, .disabled, .none,
      document: { $0.rolloutPercentage = 0 }, local: { $0.identity.deviceID = "device" }),
    Row(
      "outside the rule's rollout chain and name are left", .verifyOnly, .disabled, .none,
      rule: { $0.rolloutPercentage = 0 }, local: { $0.identity.deviceID = "device" }),
    Row("an instance without identity is pinned", .inspect, .enforce, .policy, document: { $0.rolloutPercentage = 0 }),
    Row(
      "off the whitelist chain and name are left", .verifyOnly, .disabled, .none,
      document: {
        $0.rollout.method = .whitelist
        $0.rollout.ids = ["other"]
      }, local: { $0.identity.deviceID = "device" }),
    Row(
      "on the whitelist the rule holds", .inspect, .enforce, .policy,
      document: {
        $0.rollout.method = .whitelist
        $0.rollout.ids = ["device"]
      }, local: { $0.identity.deviceID = "device" }),
    Row(
      "in another region chain and name are left", .verifyOnly, .disabled, .none,
      document: {
        $0.rollout.method = .geography
        $0.rollout.regions = ["EU"]
      }, local: { $0.identity.region = "US" }),
    Row(
      "being switched off is not a way to look away", .verifyOnly, .disabled, .none, rule: { $0.enabled = false },
      local: { $0.unpinned = .tunnel }),
    Row(
      "nor a way to be blocked", .verifyOnly, .disabled, .none, rule: { $0.enabled = false },
      local: { $0.unpinned = .block }),
  ]

  // MARK: Builtin pins

  private func builtin(_ change: (inout PolicyDocument) -> Void, host: String = "api.example.com:443") throws
    -> Decision
  {
    var local = LocalPolicy()
    local.builtin = try Samples.table([("api.example.com", [builtinPin]), ("other.example", [builtinPin])])
    let table = try Samples.table([("api.example.com", [pin])])
    let snapshot = PolicySnapshot(.document(Samples.document(table, change)), local: local)
    return snapshot.decide(try Samples.authority(host), at: Samples.now)
  }

  @Test func `builtin pins stand in for a rule that is switched off`() throws {
    let decision = try builtin { $0.enabled = false }
    #expect(decision.action == .inspect)
    #expect(decision.source == .builtin)
    #expect(decision.state == .enforce)
    #expect(decision.pins.entries.map(\.pin) == [builtinPin])
  }

  @Test func `the policy's pins come before builtin ones`() throws {
    let decision = try builtin { _ in }
    #expect(decision.source == .policy)
    #expect(decision.pins.entries.map(\.pin) == [pin])
  }

  @Test func `builtin pins are for hosts that no rule names, too`() throws {
    #expect(try builtin({ _ in }, host: "other.example:443").source == .builtin)
  }

  @Test func `the policy decides whether and where builtin pins are used`() throws {
    let off = try builtin {
      $0.enabled = false
      $0.fallback.useBuiltinPins = false
    }
    #expect(off.action == .verifyOnly)
    let elsewhere = try builtin {
      $0.enabled = false
      $0.fallback.hosts = [.name("other.example")]
    }
    #expect(elsewhere.action == .verifyOnly)
    let here = try builtin {
      $0.enabled = false
      $0.fallback.hosts = [.name("api.example.com")]
    }
    #expect(here.source == .builtin)
  }

  /// Would catch a policy that unpins a host it does not even name.
  @Test func `where no rule names the host the policy's fallback does not take builtin pins away`() throws {
    #expect(try builtin({ $0.fallback.useBuiltinPins = false }, host: "other.example:443").source == .builtin)
    let elsewhere = try builtin({ $0.fallback.hosts = [.name("api.example.com")] }, host: "other.example:443")
    #expect(elsewhere.source == .builtin)
  }

  // MARK: Standing without a document

  @Test func `without an acceptable bundle everything is blocked`() throws {
    var local = LocalPolicy()
    local.unpinned = .tunnel
    local.builtin = try Samples.table([("api.example.com", [builtinPin])])
    let snapshot = PolicySnapshot(.unavailable, local: local)
    for host in ["api.example.com:443", "other.example:443", "10.0.0.1:443"] {
      let decision = snapshot.decide(try Samples.authority(host), at: Samples.now)
      #expect(decision.action == .block(.pinsUnavailable))
      #expect(decision.state == .blocked)
    }
    #expect(snapshot.version == 0)
  }

  @Test func `without a configured bundle the configuration decides alone`() throws {
    var local = LocalPolicy()
    local.unpinned = .verify
    local.builtin = try Samples.table([("api.example.com", [builtinPin])])
    let snapshot = PolicySnapshot(.notConfigured, local: local)
    #expect(snapshot.decide(try Samples.authority("api.example.com:443"), at: Samples.now).source == .builtin)
    #expect(snapshot.decide(try Samples.authority("other.example:443"), at: Samples.now).action == .verifyOnly)
  }

  // MARK: What else a decision says

  @Test func `ports are those of the configuration and those a rule opens for its host`() throws {
    let snapshot = try snapshot(Row("", .inspect, .enforce, .policy, local: { $0.ports = [443, 444] }))
    func isAllowed(_ host: String) throws -> Bool {
      snapshot.decide(try Samples.authority(host), at: Samples.now).portAllowed
    }
    #expect(try isAllowed("api.example.com:443"))
    #expect(try isAllowed("api.example.com:444"))
    #expect(try !isAllowed("api.example.com:8443"))
    #expect(try isAllowed("dev.example.com:8443"))
    #expect(try !isAllowed("other.example:8443"))
  }

  @Test func `a decision names its rule, its version and its expiry`() throws {
    let row = Row("", .inspect, .enforce, .policy, rule: { $0.expiresAt = Timestamp(seconds: 1600) })
    let exact = try snapshot(row).decide(try Samples.authority("api.example.com:443"), at: Samples.now)
    #expect(exact.rulePattern == "api.example.com")
    #expect(exact.policyVersion == 7)
    #expect(exact.expiresAt == Timestamp(seconds: 1600))
    let below = try snapshot(row).decide(try Samples.authority("a.example.org:443"), at: Samples.now)
    #expect(below.rulePattern == "*.example.org")
    let unknown = try snapshot(row).decide(try Samples.authority("other.example:443"), at: Samples.now)
    #expect(unknown.rulePattern == nil)
    #expect(unknown.expiresAt == nil)
    #expect(!unknown.isPinned)
  }

  @Test func `a rule that is switched off still counts as naming its host`() throws {
    let row = Row("", .inspect, .enforce, .policy, rule: { $0.enabled = false })
    let decision = try snapshot(row).decide(try Samples.authority("api.example.com:443"), at: Samples.now)
    #expect(decision.isPinned)
    #expect(decision.expiresAt == nil)
  }

  @Test func `a rule's own settings reach the decision, and the configuration's stand in`() throws {
    let own = Row(
      "", .inspect, .enforce, .policy,
      rule: {
        $0.tls13 = .deny
        $0.match = .chain
        $0.sni = .optional
        $0.neverDisable = true
      }, local: { $0.tls13 = .keyLog })
    let decision = try snapshot(own).decide(try Samples.authority("api.example.com:443"), at: Samples.now)
    #expect(decision.tls13 == .deny)
    #expect(decision.match == .chain)
    #expect(decision.sniOptional)
    #expect(decision.neverDisable)
    let plain = Row("", .inspect, .enforce, .policy, local: { $0.tls13 = .keyLog })
    let other = try snapshot(plain).decide(try Samples.authority("api.example.com:443"), at: Samples.now)
    #expect(other.tls13 == .keyLog)
    #expect(other.match == .leaf)
    #expect(!other.sniOptional)
    let address = try snapshot(plain).decide(try Samples.authority("10.0.0.1:443"), at: Samples.now)
    #expect(address.sniOptional, "an IP literal has no server name (RFC 6066 §3)")
  }

  @Test func `suspension touches only rules that are enforced and may be disabled`() throws {
    func suspended(_ rule: @escaping @Sendable (inout RuleSettings) -> Void) throws -> EnforcementState {
      let snapshot = try snapshot(Row("", .inspect, .enforce, .policy, rule: rule))
      return snapshot.decide(try Samples.authority("api.example.com:443"), at: Samples.now).suspended().state
    }
    #expect(try suspended { _ in } == .suspended)
    #expect(try suspended { $0.neverDisable = true } == .enforce)
    #expect(try suspended { $0.mode = .report } == .report)
    #expect(try suspended { $0.enabled = false } == .disabled)
  }

  @Test func `pins from elsewhere are enforced, and none of them block`() throws {
    let snapshot = PolicySnapshot(.notConfigured, local: LocalPolicy())
    let decision = snapshot.decide(try Samples.authority("api.example.com:443"), at: Samples.now)
    let supplied = decision.supplied(with: PinSet([pin]), from: .service, expiresAt: Samples.expiry)
    #expect(supplied.action == .inspect)
    #expect(supplied.state == .enforce)
    #expect(supplied.source == .service)
    #expect(supplied.expiresAt == Samples.expiry)
    let none = decision.supplied(with: .empty, from: .service, expiresAt: nil)
    #expect(none.action == .block(.pinsUnavailable))
    #expect(none.state == .blocked)
  }

  @Test func `an explanation tells the steps in order`() throws {
    let row = Row(
      "", .inspect, .enforce, .policy, rule: { $0.rolloutPercentage = 0 }, local: { $0.identity.deviceID = "d" })
    let steps = try snapshot(row).explain(try Samples.authority("api.example.com:8443"), at: Samples.now).steps
    #expect(
      steps == [
        "policy version 7, expires 1970-01-01T00:33:20Z", "rule api.example.com",
        "switched off: outside the rule's rollout of 0.0 percent, device_id falls on 14.8208",
        "chain and host name are verified, without pins",
      ])
  }

  @Test func `a document is valid from its issue, with tolerance, until its expiry`() {
    let document = Samples.document(.empty)
    #expect(document.validity(at: Timestamp(seconds: 699)) == .notYetIssued)
    #expect(document.validity(at: Timestamp(seconds: 700)) == .valid)
    #expect(document.validity(at: Timestamp(seconds: 1999)) == .valid)
    #expect(document.validity(at: Timestamp(seconds: 2000)) == .expired)
  }
}
