import PinfoldModel
import PinfoldPolicy
import PinfoldSupply
import Testing

/// What the cache keeps of pins, and what a keeper believes of it.
@Suite struct CachedPinsTests {
  private func cached(_ fixture: KeeperFixture, at seconds: Int64 = 0) throws -> CachedPins {
    var keeper = PinKeeper()
    return try #require(
      try keeper.take(fixture.held(at: seconds), "api.example.com", fixture.service, fixture.moment(seconds)))
  }

  private func place(_ fixture: KeeperFixture, _ domain: String = "api.example.com") throws -> PinPlace {
    PinPlace(try fixture.held(domain).record)
  }

  @Test("Contents come back as they were, and no prefix of the head does") func roundTrip() throws {
    let cached = try cached(KeeperFixture())
    #expect(CachedPins(cached.contents) == cached)
    for count in 0..<17 { #expect(CachedPins(Array(cached.contents[..<count])) == nil) }
    #expect(CachedPins([1] + cached.contents.dropFirst()) == nil)
  }

  @Test("After a restart the pins are those of before, until the end they had then") func restart() throws {
    let fixture = try KeeperFixture(ttl: 1000)
    let cached = try cached(fixture)
    var keeper = PinKeeper()
    #expect(!keeper.knows(try place(fixture)))
    #expect(
      keeper.load(
        cached, try place(fixture), for: try KeeperFixture.host(), fixture.service, at: fixture.moment(400), jitter: 0)
        == nil)
    #expect(keeper.knows(try place(fixture)))
    #expect(try keeper.pin("api.example.com", fixture.service, fixture.moment(999)) == 0xab)
    #expect(try keeper.pin("api.example.com", fixture.service, fixture.moment(1000)) == nil)
  }

  @Test("max_ttl_seconds counts from when the record came, not from the restart") func received() throws {
    let fixture = try KeeperFixture(ttl: 1000, maxTTL: 500)
    var keeper = PinKeeper()
    _ = keeper.load(
      try cached(fixture), try place(fixture), for: try KeeperFixture.host(), fixture.service, at: fixture.moment(400),
      jitter: 0)
    #expect(try keeper.pin("api.example.com", fixture.service, fixture.moment(499)) == 0xab)
    #expect(try keeper.pin("api.example.com", fixture.service, fixture.moment(500)) == nil)
  }

  @Test("A record that is over serves nobody, and still holds older ones back") func expired() throws {
    let fixture = try KeeperFixture(ttl: 100)
    var keeper = PinKeeper()
    let refusal = keeper.load(
      try cached(fixture, at: 50), try place(fixture), for: try KeeperFixture.host(), fixture.service,
      at: fixture.moment(200), jitter: 0)
    #expect(refusal?.step == "expired")
    #expect(try keeper.pin("api.example.com", fixture.service, fixture.moment(200)) == nil)
    var longer = fixture
    longer.maker.ttl = "9000"
    longer.maker.expires = 9000
    #expect(keeper.objection(to: try longer.held(at: 49).record, for: try KeeperFixture.host(), fixture.service) != nil)
    #expect(keeper.objection(to: try longer.held(at: 50).record, for: try KeeperFixture.host(), fixture.service) == nil)
  }

  @Test("A record is verified again: a key that is not trusted any more serves nobody") func verified() throws {
    let fixture = try KeeperFixture()
    var keeper = PinKeeper()
    let other = try KeeperFixture.service([RecordMaker()])
    let refusal = keeper.load(
      try cached(fixture), try place(fixture), for: try KeeperFixture.host(), other, at: fixture.moment(), jitter: 0)
    #expect(refusal == .signature)
    #expect(try keeper.pin("api.example.com", other, fixture.moment()) == nil)
  }

  @Test("A record in another domain's place is refused") func exchanged() throws {
    let fixture = try KeeperFixture()
    var keeper = PinKeeper()
    let refusal = keeper.load(
      try cached(fixture), try place(fixture, "*.example.com"), for: try KeeperFixture.host(), fixture.service,
      at: fixture.moment(), jitter: 0)
    #expect(refusal?.step == "domain")
    #expect(try keeper.pin("api.example.com", fixture.service, fixture.moment()) == nil)
  }

  @Test("A record in another key's place is refused, though both keys are trusted") func otherSigner() throws {
    let fixture = try KeeperFixture()
    let other = try KeeperFixture()
    let both = try KeeperFixture.service([fixture.maker, other.maker])
    var keeper = PinKeeper()
    let refusal = keeper.load(
      try cached(fixture), try place(other), for: try KeeperFixture.host(), both, at: fixture.moment(), jitter: 0)
    #expect(refusal == .signature)
    #expect(try keeper.pin("api.example.com", both, fixture.moment()) == nil)
    #expect(try place(fixture).name != place(other).name)
  }

  @Test("What came later than the clock shows now is not kept longer for it") func clockSetBack() throws {
    let fixture = try KeeperFixture(ttl: 3600, maxTTL: 100)
    var keeper = PinKeeper()
    // Received at 250 (within the skew), loaded at 0: 100 s from now, not 350.
    _ = keeper.load(
      try cached(fixture, at: 250), try place(fixture), for: try KeeperFixture.host(), fixture.service,
      at: fixture.moment(),
      jitter: 0)
    #expect(try keeper.pin("api.example.com", fixture.service, fixture.moment(99)) == 0xab)
    #expect(try keeper.pin("api.example.com", fixture.service, fixture.moment(100)) == nil)
  }

  @Test("What memory knows is not replaced by the cache") func known() throws {
    let fixture = try KeeperFixture()
    var keeper = PinKeeper()
    let old = try cached(fixture)
    try keeper.take(fixture.held(pin: 2, at: 10), "api.example.com", fixture.service, fixture.moment(10))
    #expect(
      keeper.load(
        old, try place(fixture), for: try KeeperFixture.host(), fixture.service, at: fixture.moment(10), jitter: 0)
        == nil)
    #expect(try keeper.pin("api.example.com", fixture.service, fixture.moment(10)) == 2)
  }
}
