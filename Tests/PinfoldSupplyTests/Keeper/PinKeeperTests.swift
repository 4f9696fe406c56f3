import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply
import Testing

/// The states of a host, without clock, sockets or disk.
@Suite struct PinKeeperTests {
  private let failure = PinFetchFailure(.fetch(.status(503)), at: "http://127.0.0.1")

  @Test("A host is unknown, fetched once, and fresh until its record's time is over") func life() throws {
    let fixture = try KeeperFixture(ttl: 100)
    var keeper = PinKeeper()
    let host = try KeeperFixture.host()
    guard case .unknown = keeper.look(host, fixture.service, at: fixture.moment()) else { return #expect(Bool(false)) }
    #expect(keeper.demand(host, fixture.service, at: fixture.moment()) == .fetch)
    #expect(keeper.demand(host, fixture.service, at: fixture.moment()) == .join)
    let kept = keeper.store(try fixture.held(), for: host, fixture.service, at: fixture.moment(), jitter: 0)
    #expect(kept?.writes.map(\.cached.bytes) == [fixture.bytes()] && kept?.isNews == true)
    #expect(try keeper.pin("api.example.com", fixture.service, fixture.moment()) == 0xab)
    #expect(try keeper.pin("api.example.com", fixture.service, fixture.moment(99)) == 0xab)
    let end = Timestamp(seconds: fixture.start.seconds + 100)
    guard case .stale(end) = keeper.look(host, fixture.service, at: fixture.moment(100)) else {
      return #expect(Bool(false), "a record has an end")
    }
    #expect(keeper.demand(host, fixture.service, at: fixture.moment(100)) == .fetch)
  }

  @Test("A failure is remembered for five seconds, with its reason, and forgotten by a success") func failures() throws
  {
    let fixture = try KeeperFixture()
    var keeper = PinKeeper()
    let host = try KeeperFixture.host()
    #expect(keeper.demand(host, fixture.service, at: fixture.moment()) == .fetch)
    keeper.fail(host, failure, at: fixture.moment())
    #expect(keeper.demand(host, fixture.service, at: fixture.moment(4)) == .failed(failure))
    #expect(keeper.failure(of: host) == failure)
    #expect(keeper.demand(host, fixture.service, at: fixture.moment(5)) == .fetch)
    keeper.fail(host, failure, at: fixture.moment(5))
    try keeper.take(fixture.held(), "api.example.com", fixture.service, fixture.moment(6))
    #expect(keeper.failure(of: host) == nil)
    // Another host is not concerned.
    #expect(keeper.demand(try KeeperFixture.host("b.example.com"), fixture.service, at: fixture.moment(6)) == .fetch)
  }

  @Test("A failed refresh leaves the pins at hand until their end") func outage() throws {
    let fixture = try KeeperFixture(ttl: 1000)
    var keeper = PinKeeper()
    let host = try KeeperFixture.host()
    try keeper.take(fixture.held(), "api.example.com", fixture.service, fixture.moment())
    for second: Int64 in [800, 850, 900, 999] {
      _ = try keeper.pin("api.example.com", fixture.service, fixture.moment(second))
      #expect(keeper.due(fixture.service, at: fixture.moment(second)) == [host], "\(second)")
      keeper.fail(host, failure, at: fixture.moment(second))
      #expect(try keeper.pin("api.example.com", fixture.service, fixture.moment(second)) == 0xab)
    }
    #expect(try keeper.pin("api.example.com", fixture.service, fixture.moment(1000)) == nil)
    #expect(keeper.demand(host, fixture.service, at: fixture.moment(1000)) == .failed(failure))
  }

  @Test("The narrowest record that is fresh speaks for a host") func precedence() throws {
    let fixture = try KeeperFixture()
    var keeper = PinKeeper()
    let host = "a.b.example.com"
    for (domain, pin) in [("**.example.com", 1), ("**.b.example.com", 2), ("*.b.example.com", 3), (host, 4)] {
      #expect(try keeper.pin(host, fixture.service, fixture.moment()) ?? 0 == UInt8(pin) - 1)
      try keeper.take(
        fixture.held(domain, for: host, pin: UInt8(pin)), host, fixture.service, fixture.moment())
    }
    #expect(try keeper.pin(host, fixture.service, fixture.moment()) == 4)
    #expect(try keeper.pin("c.b.example.com", fixture.service, fixture.moment()) == 3)
    #expect(try keeper.pin("b.example.com", fixture.service, fixture.moment()) == 2)
    #expect(try keeper.pin("x.y.b.example.com", fixture.service, fixture.moment()) == 2)
    #expect(try keeper.pin("c.example.com", fixture.service, fixture.moment()) == 1)
    #expect(try keeper.pin("example.org", fixture.service, fixture.moment()) == nil)
  }

  @Test(
    "The domains that can speak for a host are tried from the narrowest on",
    arguments: [
      ("a.b.c", "a.b.c *.b.c **.a.b.c **.b.c **.c"), ("localhost", "localhost **.localhost"),
      ("192.0.2.1", "192.0.2.1"), ("2001:db8::1", "2001:db8::1"),
    ])
  func patterns(host: String, expected: String) throws {
    let patterns = PinKeeper.patterns(for: try KeeperFixture.host(host))
    #expect(patterns.map(\.text).joined(separator: " ") == expected)
    let authority = Authority(host: try KeeperFixture.host(host), port: 443)
    #expect(patterns.allSatisfy { $0.matches(authority) })
  }

  @Test("An older record than was accepted never comes back, the same one does") func rollback() throws {
    let fixture = try KeeperFixture()
    var keeper = PinKeeper()
    try keeper.take(fixture.held(at: 50), "api.example.com", fixture.service, fixture.moment(50))
    let host = try KeeperFixture.host()
    let older = try fixture.held(pin: 1, at: 49, received: 60)
    #expect(
      keeper.objection(to: older.record, for: host, fixture.service)
        == .rollback(created: older.record.created, highest: fixture.moment(50).wall))
    #expect(try keeper.take(older, "api.example.com", fixture.service, fixture.moment(60)) == nil)
    #expect(try keeper.pin("api.example.com", fixture.service, fixture.moment(60)) == 0xab)
    for (pin, second) in [(2, 50), (3, 51)] as [(UInt8, Int64)] {
      let record = try fixture.held(pin: pin, at: second, received: 60)
      #expect(keeper.objection(to: record.record, for: host, fixture.service) == nil)
      try keeper.take(record, "api.example.com", fixture.service, fixture.moment(60))
      #expect(try keeper.pin("api.example.com", fixture.service, fixture.moment(60)) == pin)
    }
    // Not even once the newer one is over.
    #expect(keeper.objection(to: older.record, for: host, fixture.service) != nil)
    // Nor by way of a wider domain, for this host; for another one it is the first of its kind.
    let wide = try fixture.held("*.example.com", pin: 1, at: 49, received: 60).record
    #expect(keeper.objection(to: wide, for: host, fixture.service) != nil)
    #expect(keeper.objection(to: wide, for: try KeeperFixture.host("b.example.com"), fixture.service) == nil)
  }

  @Test("What a key signed that is not trusted any more holds nothing back") func rollbackOfLostKey() throws {
    let fixture = try KeeperFixture()
    var other = try KeeperFixture()
    other.maker.now = fixture.maker.now
    var keeper = PinKeeper()
    try keeper.take(fixture.held(at: 200, received: 0), "api.example.com", fixture.service, fixture.moment())
    let host = try KeeperFixture.host()
    let honest = try other.held(at: 0)
    let both = try KeeperFixture.service([fixture.maker, other.maker])
    #expect(keeper.objection(to: honest.record, for: host, both) != nil)
    #expect(keeper.objection(to: honest.record, for: host, other.service) == nil)
  }

  @Test("A service that goes over to a wildcard takes its record of the host back") func superseded() throws {
    let fixture = try KeeperFixture()
    var keeper = PinKeeper()
    let host = try KeeperFixture.host()
    try keeper.take(fixture.held(pin: 1), "api.example.com", fixture.service, fixture.moment())
    try keeper.take(
      fixture.held("b.example.com", for: "b.example.com", pin: 2), "b.example.com", fixture.service, fixture.moment())
    let stored = try #require(
      keeper.store(
        try fixture.held("*.example.com", pin: 3, at: 10), for: host, fixture.service, at: fixture.moment(10), jitter: 0
      ))
    #expect(try keeper.pin("api.example.com", fixture.service, fixture.moment(10)) == 3)
    // Nobody asked for the other host: what is known of it stays.
    #expect(try keeper.pin("b.example.com", fixture.service, fixture.moment(10)) == 2)
    #expect(stored.writes.map(\.place.domain.text) == ["*.example.com", "api.example.com"])
    #expect(stored.writes[1].cached.bytes.isEmpty)
    // After a restart too, and the mark of the host is still there.
    var again = PinKeeper()
    for (place, cached) in stored.writes {
      _ = again.load(cached, place, for: host, fixture.service, at: fixture.moment(20), jitter: 0)
    }
    #expect(try again.pin("api.example.com", fixture.service, fixture.moment(20)) == 3)
    // And back: a host's own record is the narrower one.
    try again.take(fixture.held(pin: 4, at: 30), "api.example.com", fixture.service, fixture.moment(30))
    #expect(try again.pin("api.example.com", fixture.service, fixture.moment(30)) == 4)
  }

  @Test("It is news when pins came or changed, and none when a record only lives longer") func news() throws {
    let fixture = try KeeperFixture()
    var keeper = PinKeeper()
    let host = try KeeperFixture.host()
    for (pin, second, isNews) in [(1, 0, true), (1, 10, false), (2, 20, true)] as [(UInt8, Int64, Bool)] {
      let stored = keeper.store(
        try fixture.held(pin: pin, at: second), for: host, fixture.service, at: fixture.moment(second), jitter: 0)
      #expect(stored?.isNews == isNews)
    }
  }

  @Test("A mismatch refreshes a host once in ten seconds, counted from the last such refresh") func mismatch() throws {
    let fixture = try KeeperFixture()
    var keeper = PinKeeper()
    let host = try KeeperFixture.host()
    try keeper.take(fixture.held(), "api.example.com", fixture.service, fixture.moment())
    var fetches: [Int64] = []
    for second in 0..<35 as Range<Int64> {
      guard keeper.demand(afterMismatchOf: host, at: fixture.moment(second)) == .fetch else { continue }
      fetches.append(second)
      #expect(keeper.demand(afterMismatchOf: host, at: fixture.moment(second)) == .join)
      try keeper.take(fixture.held(at: second), "api.example.com", fixture.service, fixture.moment(second))
      #expect(keeper.demand(afterMismatchOf: host, at: fixture.moment(second)) == nil)
    }
    #expect(fetches == [0, 10, 20, 30])
    #expect(keeper.demand(afterMismatchOf: try KeeperFixture.host("b.example.com"), at: fixture.moment(34)) == .fetch)
    // Neither a failure nor another fetch counts as such a refresh.
    keeper.fail(host, failure, at: fixture.moment(35))
    #expect(keeper.demand(afterMismatchOf: host, at: fixture.moment(40)) == .fetch)
  }

  @Test("No table grows without bound") func bounds() throws {
    let fixture = try KeeperFixture()
    var limits = PinKeeper.Limits()
    (limits.records, limits.failures, limits.flights) = (16, 8, 4)
    var keeper = PinKeeper(limits: limits)
    for number in 0..<100 {
      let host = "h\(number).example.com"
      try keeper.take(fixture.held(host, for: host), host, fixture.service, fixture.moment())
      // One that is used again and again stays.
      #expect(try keeper.pin("h0.example.com", fixture.service, fixture.moment()) == 0xab)
      #expect(keeper.count <= 16)
    }
    #expect(try keeper.pin("h99.example.com", fixture.service, fixture.moment()) == 0xab)
    #expect(try keeper.pin("h50.example.com", fixture.service, fixture.moment()) == nil)
    for number in 0..<100 {
      let host = try KeeperFixture.host("f\(number).example.com")
      _ = keeper.demand(host, fixture.service, at: fixture.moment())
      keeper.fail(host, failure, at: fixture.moment())
    }
    let remembered = try (0..<100).count { keeper.failure(of: try KeeperFixture.host("f\($0).example.com")) != nil }
    #expect(remembered <= 8)
    var demands: [PinKeeper.Demand] = []
    for number in 0..<6 {
      demands.append(
        keeper.demand(try KeeperFixture.host("g\(number).example.com"), fixture.service, at: fixture.moment()))
    }
    #expect(demands.count { $0 == .fetch } == 4)
    #expect(demands.last == .failed(PinFetchFailure(.busy, at: fixture.service.label)))
    #expect(keeper.demand(afterMismatchOf: try KeeperFixture.host("h99.example.com"), at: fixture.moment()) == nil)
  }

  /// Would catch one client that has hosts looked up until nobody else's can be.
  @Test("One client has no more hosts in flight than it leaves room for, and may always join") func fairness() throws {
    let fixture = try KeeperFixture()
    var limits = PinKeeper.Limits()
    limits.flights = 8
    var keeper = PinKeeper(limits: limits)
    func demand(_ name: String, _ client: ClientIdentity?) throws -> PinKeeper.Demand {
      keeper.demand(try KeeperFixture.host("\(name).example.com"), fixture.service, for: client, at: fixture.moment())
    }
    let (one, other) = (ClientIdentity.address(.v4(0x7f00_0001)), ClientIdentity.address(.v4(0x7f00_0002)))
    let crowded = PinKeeper.Demand.failed(PinFetchFailure(.crowded, at: fixture.service.label))
    #expect(try (0..<6).map { try demand("a\($0)", one) } == [.fetch, .fetch, .fetch, .fetch, crowded, crowded])
    #expect(try demand("a0", one) == .join && demand("a0", other) == .join)
    #expect(try (0..<3).map { try demand("b\($0)", other) } == [.fetch, .fetch, crowded])
    // What Pinfold does of its own accord needs no more than room.
    #expect(keeper.demand(afterMismatchOf: try KeeperFixture.host("c.example.com"), at: fixture.moment()) == .fetch)
    // Each way out of flight gives the place back.
    keeper.fail(try KeeperFixture.host("a0.example.com"), failure, at: fixture.moment())
    keeper.drop(try KeeperFixture.host("a1.example.com"))
    try keeper.take(
      fixture.held("a2.example.com", for: "a2.example.com"), "a2.example.com", fixture.service, fixture.moment())
    #expect(try demand("a4", one) == .fetch)
    #expect(crowded != .failed(PinFetchFailure(.busy, at: fixture.service.label)))
    #expect(PinFetchFault.crowded.step == "busy" && PinFetchFault.crowded.text.contains("by this client"))
  }

  @Test("Large records are bounded by their bytes") func byteBound() throws {
    let fixture = try KeeperFixture()
    var limits = PinKeeper.Limits()
    limits.bytes = fixture.bytes().count * 4
    var keeper = PinKeeper(limits: limits)
    for number in 0..<20 {
      let host = "h\(number).example.com"
      try keeper.take(fixture.held(host, for: host), host, fixture.service, fixture.moment())
      #expect(keeper.count <= 4)
    }
    #expect(try keeper.pin("h19.example.com", fixture.service, fixture.moment()) == 0xab)
  }

  @Test("Pins of one configuration are verified again before another believes them") func trust() throws {
    let fixture = try KeeperFixture(ttl: 1000)
    let stranger = try RecordMaker()
    var keeper = PinKeeper()
    try keeper.take(fixture.held(), "api.example.com", fixture.service, fixture.moment())
    let more = try KeeperFixture.service([stranger, fixture.maker])
    #expect(try keeper.pin("api.example.com", more, fixture.moment(10)) == 0xab)
    let shorter = try KeeperFixture.service([fixture.maker], maxTTL: 100)
    #expect(try keeper.pin("api.example.com", shorter, fixture.moment(99)) == 0xab)
    #expect(try keeper.pin("api.example.com", shorter, fixture.moment(100)) == nil)
    let other = try KeeperFixture.service([stranger])
    #expect(try keeper.pin("api.example.com", other, fixture.moment(10)) == nil)
    #expect(try keeper.pin("api.example.com", fixture.service, fixture.moment(999)) == 0xab)
  }
}
