import PinfoldModel
import PinfoldPolicy
import PinfoldSupply
import Testing

/// What was replaced stays replaced, whatever domain the newer record is for, and for each signing key by itself.
@Suite struct PinRollbackTests {
  private func host(_ name: String) throws -> HostName { try KeeperFixture.host("\(name).example.com") }

  /// A keeper that took a host's record, then a newer one for all of its neighbours.
  private func goneWide(_ fixture: KeeperFixture) throws -> (keeper: PinKeeper, stored: PinKeeper.Stored) {
    var keeper = PinKeeper()
    try keeper.take(fixture.held(pin: 1), "api.example.com", fixture.service, fixture.moment())
    let wide = try fixture.held("*.example.com", pin: 2, at: 10)
    let stored = keeper.store(wide, for: try host("api"), fixture.service, at: fixture.moment(10), jitter: 0)
    return (keeper, try #require(stored))
  }

  /// Would catch a host's old record, played again once a wildcard's replaced it: the narrower domain is looked up
  /// first.
  @Test("An older record of a host is refused beside a newer one of a wildcard") func replacedByWider() throws {
    let fixture = try KeeperFixture()
    var (keeper, _) = try goneWide(fixture)
    let rollback = PinFetchFault.rollback(created: fixture.start, highest: fixture.moment(10).wall)
    for (name, domain) in [("api", "api.example.com"), ("never-seen", "never-seen.example.com")] {
      let older = try fixture.held(domain, for: domain, pin: 1, received: 20)
      #expect(keeper.objection(to: older.record, for: try host(name), fixture.service) == rollback, "\(name)")
      #expect(try keeper.take(older, domain, fixture.service, fixture.moment(20)) == nil)
      #expect(try keeper.pin(domain, fixture.service, fixture.moment(20)) == 2, "\(name)")
    }
    // As new as the wildcard's is new enough.
    let own = try fixture.held(pin: 3, at: 10)
    #expect(keeper.objection(to: own.record, for: try host("api"), fixture.service) == nil)
    try keeper.take(own, "api.example.com", fixture.service, fixture.moment(20))
    #expect(try keeper.pin("api.example.com", fixture.service, fixture.moment(20)) == 3)
  }

  @Test("A service that has records of hosts and of a wildcard, each made when asked for, is believed in both")
  func inTurns() throws {
    let fixture = try KeeperFixture()
    var keeper = PinKeeper()
    for round: Int64 in [0, 100, 200] {
      let own = try fixture.held(pin: 1, at: round)
      #expect(keeper.objection(to: own.record, for: try host("api"), fixture.service) == nil, "\(round)")
      try keeper.take(own, "api.example.com", fixture.service, fixture.moment(round))
      let wide = try fixture.held("*.example.com", for: "b.example.com", pin: 2, at: round + 50)
      #expect(keeper.objection(to: wide.record, for: try host("b"), fixture.service) == nil, "\(round)")
      try keeper.take(wide, "b.example.com", fixture.service, fixture.moment(round + 50))
      #expect(try keeper.pin("api.example.com", fixture.service, fixture.moment(round + 60)) == 1)
      #expect(try keeper.pin("b.example.com", fixture.service, fixture.moment(round + 60)) == 2)
    }
  }

  /// Would catch an old wildcard's record, played for a neighbour that was never asked for, that waits there until the
  /// host's own is over.
  @Test("A wildcard's record that is older than the host's own never speaks for it") func olderWildcardOfNeighbour()
    throws
  {
    let fixture = try KeeperFixture(ttl: 100)
    var longer = fixture
    longer.maker.ttl = "9000"
    longer.maker.expires = 9000
    var keeper = PinKeeper()
    try keeper.take(fixture.held(pin: 1, at: 10), "api.example.com", fixture.service, fixture.moment(10))
    try keeper.take(
      longer.held("*.example.com", for: "b.example.com", pin: 2, received: 20), "b.example.com", fixture.service,
      fixture.moment(20))
    #expect(try keeper.pin("b.example.com", fixture.service, fixture.moment(200)) == 2)
    #expect(try keeper.pin("api.example.com", fixture.service, fixture.moment(20)) == 1)
    #expect(try keeper.pin("api.example.com", fixture.service, fixture.moment(200)) == nil)
  }

  /// Would catch one service's record for a wildcard in the place of another's.
  @Test("What one service says pushes out neither pins nor memory of another") func neighbours() throws {
    let fixture = try KeeperFixture()
    var other = try KeeperFixture()
    other.maker.now = fixture.maker.now
    var keeper = PinKeeper()
    try keeper.take(
      fixture.held("*.example.com", pin: 1, at: 10), "api.example.com", fixture.service, fixture.moment(10))
    // Of the hosts that its record names only this one is the other service's.
    try keeper.take(
      other.held("*.example.com", for: "a.example.com", pin: 2, at: 5, received: 20), "a.example.com", other.service,
      fixture.moment(20))
    #expect(try keeper.pin("a.example.com", other.service, fixture.moment(20)) == 2)
    #expect(try keeper.pin("api.example.com", fixture.service, fixture.moment(20)) == 1)
    let older = try fixture.held("*.example.com", pin: 3, at: 9, received: 20)
    #expect(keeper.objection(to: older.record, for: try host("api"), fixture.service) != nil)
    // Nor is the other one held back by what it never signed.
    let early = try other.held("*.example.com", for: "a.example.com", pin: 4, at: 6, received: 20)
    #expect(keeper.objection(to: early.record, for: try host("a"), other.service) == nil)
  }

  /// Would catch a single memory for all keys of a service: what the last one signed would be all that is known.
  @Test("A key that is taken away takes no other key's memory along") func keyTakenAway() throws {
    let fixture = try KeeperFixture()
    var other = try KeeperFixture()
    other.maker.now = fixture.maker.now
    let both = try KeeperFixture.service([fixture.maker, other.maker])
    var keeper = PinKeeper()
    try keeper.take(fixture.held(at: 10), "api.example.com", both, fixture.moment(10))
    try keeper.take(other.held(pin: 2, at: 20), "api.example.com", both, fixture.moment(20))
    #expect(try keeper.pin("api.example.com", both, fixture.moment(20)) == 2)
    let older = try fixture.held(pin: 3, at: 9, received: 30).record
    #expect(keeper.objection(to: older, for: try host("api"), fixture.service) != nil)
    // What the new key's record replaced is not at hand any more for either.
    #expect(try keeper.pin("api.example.com", fixture.service, fixture.moment(30)) == nil)
  }

  /// Would catch a restart: memory has the wildcard's record as soon as a neighbour asked, and the host's own not yet.
  @Test("Nothing is said of a host before everything that the cache has of it was loaded") func unmet() throws {
    let fixture = try KeeperFixture()
    var before = PinKeeper()
    let own = try #require(
      try before.take(fixture.held(pin: 1, at: 10), "api.example.com", fixture.service, fixture.moment(10)))
    let held = try fixture.held("*.example.com", for: "b.example.com", pin: 2, received: 20)
    var keeper = PinKeeper()
    try keeper.take(held, "b.example.com", fixture.service, fixture.moment(20))
    guard case .fresh = keeper.look(try host("b"), fixture.service, at: fixture.moment(20)),
      case .unknown = keeper.look(try host("api"), fixture.service, at: fixture.moment(20))
    else { return #expect(Bool(false), "the cache may know a newer one of the host") }
    let place = PinPlace(try fixture.held().record)
    #expect(
      keeper.load(own, place, for: try host("api"), fixture.service, at: fixture.moment(20), jitter: 0) == nil)
    #expect(try keeper.pin("api.example.com", fixture.service, fixture.moment(20)) == 1)
  }

  /// Would catch a full memory: how new a host's record was makes room first, as nobody looks it up.
  @Test("What had to make room is looked for in the cache again") func madeRoom() throws {
    let fixture = try KeeperFixture()
    var limits = PinKeeper.Limits()
    limits.records = 8
    var keeper = PinKeeper(limits: limits)
    try keeper.take(fixture.held(pin: 1), "api.example.com", fixture.service, fixture.moment())
    try keeper.take(
      fixture.held("*.example.com", pin: 2, at: 10), "api.example.com", fixture.service, fixture.moment(10))
    for number in 0..<8 {
      #expect(keeper.knows(PinPlace(try fixture.held().record)) == (number < 7), "\(number)")
      guard number < 7 else { break }
      let other = "h\(number).example.org"
      try keeper.take(fixture.held(other, for: other), other, fixture.service, fixture.moment(10))
      // The wildcard's is in use all the time.
      _ = keeper.look(try host("b"), fixture.service, at: fixture.moment(10))
      keeper.meet(try host("b"), fixture.service)
    }
    guard case .unknown = keeper.look(try host("api"), fixture.service, at: fixture.moment(10)),
      case .fresh = keeper.look(try host("b"), fixture.service, at: fixture.moment(10))
    else { return #expect(Bool(false), "of one host something made room, of the other nothing") }
  }

  /// Would catch a clock that was ahead when a record came, which has no date of its own, and is right again: no other
  /// would be accepted until it is as late again.
  @Test("A fingerprint makes no record old and is none itself, whatever the clock was when it came") func fingerprint()
    throws
  {
    let fixture = try KeeperFixture(ttl: 30)
    let service = try KeeperFixture.service([fixture.maker], unbound: true)
    func held(_ seconds: Int64, pin: UInt8) throws -> HeldPins {
      let text = Hex.encode([UInt8](repeating: pin, count: 32))
      let bytes = Array(
        RecordMaker.object([
          ("domain", "\"api.example.com\""), ("fingerprint", "\"\(text)\""),
          ("signature", "\"\(fixture.maker.sign(text))\""), ("ttl", "30"),
        ]).utf8)
      let now = fixture.moment(seconds).wall
      let record = try service.record(bytes, for: host("api"), at: now)
      return HeldPins(record, bytes: bytes, received: now, trust: service.trust)
    }
    var ahead = PinKeeper()
    let kept = try #require(try ahead.take(held(3600, pin: 1), "api.example.com", service, fixture.moment(3600)))
    // The same process, and one that begins with the cache.
    var restarted = PinKeeper()
    let place = PinPlace(try held(0, pin: 1).record)
    #expect(restarted.load(kept, place, for: try host("api"), service, at: fixture.moment(), jitter: 0) == nil)
    #expect(try restarted.pin("api.example.com", service, fixture.moment(10)) == 1)
    for var keeper in [ahead, restarted] {
      let fresh = try held(60, pin: 2)
      #expect(keeper.objection(to: fresh.record, for: try host("api"), service) == nil)
      try keeper.take(fresh, "api.example.com", service, fixture.moment(60))
      #expect(try keeper.pin("api.example.com", service, fixture.moment(61)) == 2)
      // One with a date counts, and is not forgotten for one that has none.
      let dated = try fixture.held(pin: 3, at: 62)
      #expect(keeper.objection(to: dated.record, for: try host("api"), service) == nil)
      try keeper.take(dated, "api.example.com", service, fixture.moment(62))
      let last = try #require(try keeper.take(held(63, pin: 4), "api.example.com", service, fixture.moment(63)))
      #expect(last.newest == dated.record.created && CachedPins(last.contents) == last)
      #expect(try keeper.pin("api.example.com", service, fixture.moment(63)) == 4)
      #expect(keeper.objection(to: try fixture.held(pin: 5, at: 61).record, for: try host("api"), service) != nil)
    }
    #expect(kept.newest == nil && CachedPins(kept.contents) == kept)
  }
}
