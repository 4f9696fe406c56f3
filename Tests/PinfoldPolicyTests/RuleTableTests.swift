import PinfoldModel
import PinfoldPolicy
import Testing

@Suite struct RuleTableTests {
  /// A host and the rules that could speak for it, the winner first, then in falling precedence.
  struct Contest: CustomTestStringConvertible {
    var testDescription: String
    var host: String
    var order: [String]

    init(_ name: String, _ host: String, _ order: [String]) {
      testDescription = name
      self.host = host
      self.order = order
    }
  }

  @Test(
    "The most specific rule wins, whatever the order in the document",
    arguments: [
      Contest(
        "exact, one label, any depth", "api.example.com:443",
        ["api.example.com", "*.example.com", "**.api.example.com", "**.example.com", "**.com"]),
      Contest(
        "a port beats none for the same pattern only", "api.example.com:8443",
        [
          "api.example.com:8443", "api.example.com", "*.example.com:8443", "*.example.com", "**.example.com:8443",
          "**.example.com",
        ]),
      Contest(
        "the longer of two any-depth rules", "a.b.c.example.com:443",
        ["**.a.b.c.example.com", "**.b.c.example.com", "**.c.example.com:443", "**.c.example.com", "**.example.com"]),
      Contest("the apex", "example.com:443", ["example.com", "*.com", "**.example.com", "**.com"]),
      Contest("a single label", "localhost:443", ["localhost:443", "localhost", "**.localhost"]),
      Contest("an address", "10.0.0.1:8443", ["10.0.0.1:8443", "10.0.0.1"]),
    ])
  func precedence(_ contest: Contest) throws {
    let authority = try Samples.authority(contest.host)
    for count in 1...contest.order.count {
      let present = contest.order.suffix(count)
      for order in [Array(present), present.reversed()] {
        let table = try Samples.table(order.map { ($0, []) })
        #expect(table.rule(for: authority)?.pattern == present.first)
      }
    }
  }

  @Test(
    "Neighbours are not matched",
    arguments: [
      "xapi.example.com:443", "api.example.co:443", "api.example.com.evil.org:443", "pi.example.com:443",
      "example.com:443", "a.b.example.com:443",
    ])
  func neighbours(_ host: String) throws {
    let table = try Samples.table([("api.example.com", []), ("*.other.com", []), ("c.d.example.com", [])])
    #expect(table.rule(for: try Samples.authority(host)) == nil)
  }

  @Test func `an address is never taken for a name under a wildcard`() throws {
    let table = try Samples.table([("**.example.com", []), ("*.example.com", [])])
    #expect(table.rule(for: try Samples.authority("10.0.0.1:443")) == nil)
    #expect(table.rule(for: try Samples.authority("[2001:db8::1]:443")) == nil)
  }

  @Test func `a rule that is there already is refused and changes nothing`() throws {
    var builder = RuleTableBuilder()
    try builder.add(try HostPattern("a.example.com"), pins: [(.publicKey(Samples.digest(1)), .primary)])
    #expect(throws: RuleTableError.duplicate) {
      try builder.add(try HostPattern("A.Example.com."), pins: [(.publicKey(Samples.digest(2)), .primary)])
    }
    try builder.add(try HostPattern("b.example.com"), pins: [(.publicKey(Samples.digest(3)), .backup)])
    let table = builder.table()
    #expect(table.count == 2)
    let second = try #require(table.rule(for: try Samples.authority("b.example.com:443")))
    #expect(second.pins.entries.map(\.pin) == [.publicKey(Samples.digest(3))])
    #expect(second.pins.entries.map(\.role) == [.backup])
    #expect(second.pattern == "b.example.com")
  }

  @Test func `sixty-four pins fit a rule and sixty-five do not`() throws {
    var builder = RuleTableBuilder()
    let pins = (0..<65).map { (pin: Pin.publicKey(Samples.digest(UInt8($0))), role: PinRole.listed) }
    #expect(throws: RuleTableError.tooManyPins) { try builder.add(try HostPattern("a.example"), pins: pins) }
    try builder.add(try HostPattern("a.example"), pins: Array(pins.prefix(64)))
    #expect(builder.table().rule(for: try Samples.authority("a.example:443"))?.pins.count == 64)
  }

  @Test func `rules keep their own settings and pins`() throws {
    var builder = RuleTableBuilder()
    for number in 0..<100 {
      var settings = RuleSettings()
      settings.rolloutPercentage = Double(number % 7)
      try builder.add(
        try HostPattern("h\(number).example.com"), pins: [(.publicKey(Samples.digest(UInt8(number))), .listed)],
        settings: settings)
    }
    let table = builder.table()
    for number in 0..<100 {
      let rule = try #require(table.rule(for: try Samples.authority("h\(number).example.com:443")))
      #expect(rule.settings.rolloutPercentage == Double(number % 7))
      #expect(rule.pins.contains(publicKey: Samples.digest(UInt8(number)), certificate: nil))
      #expect(rule.number == number)
    }
  }

  @Test func `the index agrees with the plain definition on thousands of random hosts`() throws {
    var random = SplitMix(state: 20_261_121)
    let labels = ["a", "b", "c", "example", "com"]
    func name(_ random: inout SplitMix) -> String {
      (0..<Int.random(in: 1...5, using: &random)).map { _ in labels.randomElement(using: &random) ?? "a" }
        .joined(separator: ".")
    }
    func port(_ random: inout SplitMix) -> String { ["", "", ":443", ":8443"].randomElement(using: &random) ?? "" }
    var patterns: Set<HostPattern> = []
    while patterns.count < 400 {
      let prefix = ["", "*.", "**."].randomElement(using: &random) ?? ""
      patterns.insert(try HostPattern(prefix + name(&random) + port(&random)))
    }
    var builder = RuleTableBuilder()
    for pattern in patterns.sorted(by: { $0.text < $1.text }) { try builder.add(pattern, pins: []) }
    let table = builder.table()
    for _ in 0..<5000 {
      let authority = try Samples.authority(name(&random) + (Bool.random(using: &random) ? ":443" : ":8443"))
      let best = patterns.filter { $0.matches(authority) }.max {
        Self.rank($0).lexicographicallyPrecedes(Self.rank($1))
      }
      #expect(table.rule(for: authority)?.pattern == best?.text, "\(authority.text)")
    }
  }

  /// Precedence as the design states it: reach, then length, then port.
  private static func rank(_ pattern: HostPattern) -> [Int] {
    [Int(pattern.reach.rawValue), pattern.host.text.utf8.count, pattern.port == nil ? 0 : 1]
  }
}

/// SplitMix64 (Steele, Lea and Flood, 2014): the same numbers on every run.
struct SplitMix: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var value = state
    value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
    return value ^ (value >> 31)
  }
}
