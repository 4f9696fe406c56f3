import PinfoldModel
import PinfoldPolicy
import PinfoldSupply
import Testing

/// Records are refreshed ahead of their end, spread out, and only where somebody needs them.
@Suite struct PinRefreshTests {
  /// The second at which a record of 1000 s is refreshed.
  private func dueAt(jitter: Double, uses: Bool = true) throws -> Int64? {
    let fixture = try KeeperFixture(ttl: 1000)
    var keeper = PinKeeper()
    try keeper.take(fixture.held(), "api.example.com", fixture.service, fixture.moment(), jitter: jitter)
    if uses { _ = try keeper.pin("api.example.com", fixture.service, fixture.moment()) }
    return try (0..<1000).first {
      keeper.due(fixture.service, at: fixture.moment($0)) == [try KeeperFixture.host()]
    }
  }

  @Test(
    "The time of a refresh lies between three quarters and nine tenths of the lifetime",
    arguments: [(-1.0, 750), (0, 750), (0.5, 825), (1, 900), (7, 900)])
  func jitter(jitter: Double, second: Int64) throws { #expect(try dueAt(jitter: jitter) == second) }

  @Test("What nobody used is left to its end") func unused() throws {
    #expect(try dueAt(jitter: 0, uses: false) == nil)
    // To be shown is no use.
    let fixture = try KeeperFixture(ttl: 1000)
    var keeper = PinKeeper()
    try keeper.take(fixture.held(), "api.example.com", fixture.service, fixture.moment())
    _ = try keeper.pin("api.example.com", fixture.service, fixture.moment(1), isUse: false)
    #expect(keeper.due(fixture.service, at: fixture.moment(950)).isEmpty)
  }

  @Test("A host is asked for once at a time, and again after a failure") func retries() throws {
    let fixture = try KeeperFixture(ttl: 1000)
    var keeper = PinKeeper()
    let host = try KeeperFixture.host()
    try keeper.take(fixture.held(), "api.example.com", fixture.service, fixture.moment())
    _ = try keeper.pin("api.example.com", fixture.service, fixture.moment())
    #expect(keeper.due(fixture.service, at: fixture.moment(760)) == [host])
    #expect(keeper.due(fixture.service, at: fixture.moment(990)).isEmpty, "it is in flight")
    var tries = 1
    for second in 760..<1000 as Range<Int64> {
      keeper.fail(host, PinFetchFailure(.busy, at: ""), at: fixture.moment(second))
      tries += keeper.due(fixture.service, at: fixture.moment(second)).count
    }
    #expect((10...40).contains(tries), "\(tries)")
    keeper.fail(host, PinFetchFailure(.busy, at: ""), at: fixture.moment(1000))
    #expect(
      keeper.due(fixture.service, at: fixture.moment(1000)).isEmpty, "what is over is fetched when it is asked for")
  }

  /// Would catch pins that came while the clock was ahead and are used, and never refreshed, until that time has come.
  @Test("What came while the clock was ahead counts from when it was put right", arguments: [true, false])
  func clockAhead(isUsedSince: Bool) throws {
    var fixture = try KeeperFixture(maxTTL: 100)
    fixture.maker.ttl = "90000"
    fixture.maker.expires = 90_000
    let (host, name) = (try KeeperFixture.host(), "api.example.com")
    var keeper = PinKeeper()
    try keeper.take(fixture.held(received: 80_000), name, fixture.service, fixture.moment(80_000))
    #expect(try keeper.pin(name, fixture.service, fixture.moment(80_000)) != nil)
    if isUsedSince { #expect(try keeper.pin(name, fixture.service, fixture.moment(10)) != nil) }
    #expect(keeper.due(fixture.service, at: fixture.moment(10)).isEmpty)
    #expect(keeper.due(fixture.service, at: fixture.moment(100)) == [host])
    #expect(try keeper.pin(name, fixture.service, fixture.moment(109)) != nil)
    #expect(try keeper.pin(name, fixture.service, fixture.moment(110)) == nil)
  }

  @Test("What does not hold at the clock that was put right is given up, and how new it was is not") func clockBack()
    throws
  {
    let (fixture, name) = (try KeeperFixture(), "api.example.com")
    var keeper = PinKeeper()
    try keeper.take(fixture.held(at: 5000), name, fixture.service, fixture.moment(5000))
    _ = try keeper.pin(name, fixture.service, fixture.moment(5000))
    #expect(keeper.due(fixture.service, at: fixture.moment(0)).isEmpty && keeper.count == 0)
    #expect(try keeper.pin(name, fixture.service, fixture.moment(0)) == nil)
    let older = try fixture.held()
    #expect(keeper.objection(to: older.record, for: try KeeperFixture.host(), fixture.service) != nil)
  }

  @Test("A success begins a new lifetime") func success() throws {
    let fixture = try KeeperFixture(ttl: 1000)
    var keeper = PinKeeper()
    try keeper.take(fixture.held(), "api.example.com", fixture.service, fixture.moment())
    _ = try keeper.pin("api.example.com", fixture.service, fixture.moment())
    #expect(keeper.due(fixture.service, at: fixture.moment(760)).count == 1)
    _ = keeper.store(
      try fixture.held(pin: 2, at: 760), for: try KeeperFixture.host(), fixture.service, at: fixture.moment(760),
      jitter: 0)
    _ = try keeper.pin("api.example.com", fixture.service, fixture.moment(761))
    #expect(keeper.due(fixture.service, at: fixture.moment(1509)).isEmpty)
    #expect(keeper.due(fixture.service, at: fixture.moment(1510)).count == 1)
  }

  @Test("What the service of the host would not use is left to its end") func foreign() throws {
    let fixture = try KeeperFixture(ttl: 1000)
    let other = try KeeperFixture()
    var keeper = PinKeeper()
    try keeper.take(fixture.held(), "api.example.com", fixture.service, fixture.moment())
    _ = try keeper.pin("api.example.com", fixture.service, fixture.moment())
    #expect(keeper.due(other.service, at: fixture.moment(950)).isEmpty)
    #expect(keeper.due(at: fixture.moment(950), atMost: 9) { _ in nil }.isEmpty)
    #expect(keeper.due(fixture.service, at: fixture.moment(950)).count == 1)
  }

  @Test("No more hosts are due than may be fetched") func room() throws {
    let fixture = try KeeperFixture(ttl: 1000)
    var keeper = PinKeeper()
    for number in 0..<20 {
      let host = "h\(number).example.com"
      try keeper.take(fixture.held(host, for: host), host, fixture.service, fixture.moment())
      _ = try keeper.pin(host, fixture.service, fixture.moment())
    }
    let first = Set(keeper.due(fixture.service, at: fixture.moment(900), atMost: 12))
    let second = Set(keeper.due(fixture.service, at: fixture.moment(900), atMost: 12))
    #expect(first.count == 12 && second.count == 8 && first.isDisjoint(with: second))
    #expect(keeper.due(fixture.service, at: fixture.moment(900), atMost: 12).isEmpty)
  }

  @Test("A record of one second is not refreshed at once") func shortest() throws {
    let fixture = try KeeperFixture(ttl: 1)
    var keeper = PinKeeper()
    try keeper.take(fixture.held(), "api.example.com", fixture.service, fixture.moment())
    _ = try keeper.pin("api.example.com", fixture.service, fixture.moment())
    #expect(keeper.due(fixture.service, at: fixture.moment()).isEmpty)
  }
}
