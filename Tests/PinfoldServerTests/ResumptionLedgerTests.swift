import PinfoldModel
import PinfoldPolicy
import PinfoldWire
import Synchronization
import Testing

@testable import PinfoldServer

/// Would catch a session that counts for another host, for too long, for another key, or that was never learnt.
@Suite struct ResumptionLedgerTests {
  private static let now: Timestamp = Timestamp(seconds: 1_000_000)
  static let ticket: [UInt8] = [1, 2, 3, 4]
  static let sessionID: [UInt8] = [UInt8](repeating: 9, count: 32)

  private static func digest(_ number: UInt8) throws -> Digest256 {
    try #require(Digest256([UInt8](repeating: number, count: 32)))
  }

  private static func evidence(_ key: UInt8 = 1, validUntil: Int64? = nil) throws -> Evidence {
    let element = Evidence.Element(publicKey: try digest(key), certificate: try digest(key &+ 100))
    return Evidence(
      publicKey: element.publicKey, certificate: element.certificate, chain: .built([element]), nameMatches: true,
      keyProven: true, validUntil: validUntil.map { Timestamp(seconds: $0) })
  }

  private static func origin(_ key: UInt8 = 1, validUntil: Int64? = nil) throws -> SessionOrigin {
    SessionOrigin(try evidence(key, validUntil: validUntil), judged: now, under: .tested)
  }

  private static func host(_ text: String = "a.test:443") throws -> Authority { try #require(Authority(text)) }

  private struct Wrong: Error {}

  /// A small TLS 1.2 hello that offers a session.
  private static func hello(id: [UInt8] = [], ticket: [UInt8] = []) throws -> ClientHello {
    let length = [UInt8(ticket.count >> 8), UInt8(ticket.count & 255)]
    let extensions: [UInt8] = [0, 35] + length + ticket
    let body =
      [3, 3] + [UInt8](repeating: 7, count: 32) + [UInt8(id.count)] + id
      + [0, 2, 0xc0, 0x2b, 1, 0, 0, UInt8(extensions.count)] + extensions
    let record: [UInt8] = [22, 3, 1, 0, UInt8(body.count + 4), 1, 0, 0, UInt8(body.count)] + body
    var reader = ClientHelloReader()
    guard case .hello(let hello) = reader.receive(record.span) else { throw Wrong() }
    return hello
  }

  private static func later(_ seconds: Int64) -> Timestamp { Timestamp(seconds: now.seconds + seconds) }

  private static func learnt(
    id: [UInt8] = sessionID, ticket: [UInt8] = ticket, _ origin: SessionOrigin, in ledger: ResumptionLedger = .init()
  ) throws -> ResumptionLedger {
    ledger.note(.init(sessionID: id, ticket: ticket), at: try host(), from: origin)
    return ledger
  }

  // MARK: TLS 1.0–1.2

  @Test("A session that was learnt is known by its ticket, and by its id") func known() throws {
    let ledger = try Self.learnt(try Self.origin())
    for hello in [try Self.hello(ticket: Self.ticket), try Self.hello(id: Self.sessionID)] {
      let found = try #require(ledger.known(hello, at: try Self.host(), now: Self.now))
      #expect(found.evidence.publicKey == (try Self.digest(1)))
    }
  }

  @Test("What other authorities vouched for is known to nobody, and is known again when they come back")
  func otherAuthorities() throws {
    let ledger = try Self.learnt(try Self.origin())
    ledger.noteFull(try Self.origin(), by: .keyLog, at: try Self.host(), client: nil)
    let hello = try Self.hello(ticket: Self.ticket)
    for (trust, isKnown) in [(TrustMark.tested, true), (.other, false), (.tested, true)] {
      let found = ledger.known(hello, at: try Self.host(), now: Self.now, under: trust)
      #expect((found != nil) == isKnown)
      let peers = ledger.peers(at: try Self.host(), client: nil, before: ledger.moment, now: Self.now, under: trust)
      #expect(peers.isEmpty != isKnown)
    }
  }

  struct Unknown: CustomTestStringConvertible, Sendable {
    let testDescription: String
    var id: [UInt8] = []
    var ticket: [UInt8] = []
    var host = "a.test:443"
    var seconds: Int64 = 0

    init(
      _ name: String, id: [UInt8] = [], ticket: [UInt8] = [], host: String = "a.test:443", seconds: Int64 = 0
    ) {
      testDescription = name
      self.id = id
      self.ticket = ticket
      self.host = host
      self.seconds = seconds
    }
  }

  static let unknownRows: [Unknown] = [
    Unknown("a hello that offers none"),
    Unknown("another ticket", ticket: [1, 2, 3, 5]),
    Unknown("the beginning of the ticket", ticket: [1, 2, 3]),
    Unknown("another id", id: [UInt8](repeating: 8, count: 32)),
    Unknown("the ticket's bytes as an id", id: ticket),
    Unknown("the id's bytes as a ticket", ticket: sessionID),
    Unknown("a forged ticket beside an id that is known", id: sessionID, ticket: [6, 6, 6]),
    Unknown("the ticket at another host", ticket: ticket, host: "b.test:443"),
    Unknown("the ticket at another port", ticket: ticket, host: "a.test:444"),
    Unknown("the ticket a day later", ticket: ticket, seconds: 86_400),
    Unknown("the id a day later", id: sessionID, seconds: 86_400),
    Unknown("the ticket with the clock set back", ticket: ticket, seconds: -1),
  ]

  @Test("What was not learnt is not known", arguments: unknownRows) func unknown(_ row: Unknown) throws {
    let ledger = try Self.learnt(try Self.origin())
    let hello = try Self.hello(id: row.id, ticket: row.ticket)
    #expect(ledger.known(hello, at: try Self.host(row.host), now: Self.later(row.seconds)) == nil)
  }

  @Test("An id beside the ticket may be anything") func anyID() throws {
    let ledger = try Self.learnt(try Self.origin())
    let hello = try Self.hello(id: [4, 4], ticket: Self.ticket)
    #expect(ledger.known(hello, at: try Self.host(), now: Self.now) != nil)
  }

  @Test("An origin counts for a day, and never longer than its chain") func expiry() throws {
    let hello = try Self.hello(ticket: Self.ticket)
    for (end, last) in [(nil, 86_399), (Self.now.seconds + 100, Int64(99)), (Self.now.seconds + 900_000, 86_399)] {
      let ledger = try Self.learnt(try Self.origin(validUntil: end))
      #expect(ledger.known(hello, at: try Self.host(), now: Self.later(last)) != nil)
      #expect(ledger.known(hello, at: try Self.host(), now: Self.later(last + 1)) == nil)
    }
    let stale = try Self.learnt(try Self.origin(validUntil: Self.now.seconds))
    #expect(stale.known(hello, at: try Self.host(), now: Self.now) == nil)
  }

  @Test("A ticket two peers gave out proves nothing, whoever gave it last") func ambiguous() throws {
    let hello = try Self.hello(ticket: Self.ticket)
    for keys: [UInt8] in [[1, 2], [2, 1], [1, 2, 1], [1, 2, 2, 2]] {
      let ledger = ResumptionLedger()
      for key in keys { _ = try Self.learnt(try Self.origin(key), in: ledger) }
      let found = ledger.origin(ofSessionIn: hello, at: try Self.host(), now: Self.now, under: .tested)
      if case .ambiguous = found { continue }
      Issue.record("the ticket of keys \(keys) is not ambiguous")
    }
    let same = ResumptionLedger()
    for _ in 0..<3 { _ = try Self.learnt(try Self.origin(), in: same) }
    #expect(same.known(hello, at: try Self.host(), now: Self.now) != nil)
  }

  @Test("The session used the longest time ago goes first") func bounded() throws {
    let ledger = ResumptionLedger(sessionLimit: 3)
    let origin = try Self.origin()
    func knows(_ number: UInt8) throws -> Bool {
      ledger.known(try Self.hello(ticket: [number]), at: try Self.host(), now: Self.now) != nil
    }
    for number: UInt8 in 1...3 { _ = try Self.learnt(id: [], ticket: [number], origin, in: ledger) }
    #expect(try knows(1))
    _ = try Self.learnt(id: [], ticket: [4], origin, in: ledger)
    #expect(try [knows(1), knows(2), knows(3), knows(4)] == [true, false, true, true])
  }

  @Test("Nothing vouches for a session once all were ended") func ended() throws {
    let ledger = try Self.learnt(try Self.origin())
    ledger.noteFull(try Self.origin(), by: .probe, at: try Self.host(), client: nil)
    ledger.endAll()
    #expect(ledger.known(try Self.hello(ticket: Self.ticket), at: try Self.host(), now: Self.now) == nil)
    #expect(
      ledger.peers(at: try Self.host(), client: nil, before: ledger.moment, now: Self.now, under: .tested).isEmpty)
  }

  @Test("What is known is judged by the pins of the day") func policyChange() throws {
    let ledger = try Self.learnt(try Self.origin())
    let hello = try Self.hello(ticket: Self.ticket)
    let found = try #require(ledger.known(hello, at: try Self.host(), now: Self.now))
    for (pinned, reason) in [(UInt8(1), Reason.pinMatch), (2, .pinMismatch)] {
      let verdict = try Self.decision(pinning: pinned).judge(found.evidence, method: .resumption)
      #expect(verdict.reason == reason)
      #expect(verdict.method == .resumption)
    }
  }

  private static func decision(pinning key: UInt8) throws -> Decision {
    var builder = RuleTableBuilder()
    let pin = try #require(Pin("sha256/" + digest(key).base64))
    try builder.add(try HostPattern("a.test"), pins: [(pin, .listed)], settings: RuleSettings())
    let document = PolicyDocument(
      version: 1, issuedAt: Timestamp(seconds: 0), expiresAt: later(1_000_000), table: builder.table())
    return PolicySnapshot(.document(document), local: LocalPolicy()).decide(try host(), at: now)
  }

  // MARK: TLS 1.3

  private static let client: IPAddress? = IPAddress("10.0.0.1")

  private static func keys(
    _ ledger: ResumptionLedger, host text: String = "a.test:443", client: IPAddress? = Self.client,
    before: UInt64? = nil,
    by method: VerificationMethod? = nil, seconds: Int64 = 0
  ) throws -> [Digest256] {
    ledger.peers(
      at: try host(text), client: client, before: before ?? ledger.moment, by: method, now: later(seconds),
      under: .tested
    ).map(\.publicKey)
  }

  @Test("A full TLS 1.3 handshake counts for its host and its client, for a day") func peer() throws {
    let ledger = ResumptionLedger()
    #expect(try Self.keys(ledger).isEmpty)
    ledger.noteFull(try Self.origin(), by: .probe, at: try Self.host(), client: Self.client)
    #expect(try Self.keys(ledger) == [try Self.digest(1)])
    #expect(try Self.keys(ledger, host: "b.test:443").isEmpty)
    #expect(try Self.keys(ledger, client: IPAddress("10.0.0.2")).isEmpty)
    #expect(try Self.keys(ledger, client: nil).isEmpty)
    #expect(try Self.keys(ledger, seconds: 86_399).count == 1)
    #expect(try Self.keys(ledger, seconds: 86_400).isEmpty)
  }

  @Test("What was judged after the tunnel began does not count") func before() throws {
    let ledger = ResumptionLedger()
    let start = ledger.moment
    ledger.noteFull(try Self.origin(), by: .probe, at: try Self.host(), client: Self.client)
    #expect(try Self.keys(ledger, before: start).isEmpty)
    let next = ledger.moment
    ledger.noteFull(try Self.origin(), by: .probe, at: try Self.host(), client: Self.client)
    #expect(try Self.keys(ledger, before: next).count == 1, "what was known stays known")
  }

  @Test("All keys a client may hold a session of are handed out, none if too many") func several()
    throws
  {
    let ledger = ResumptionLedger()
    for key in 1...UInt8(SessionPeers.limit) {
      ledger.noteFull(try Self.origin(key), by: .probe, at: try Self.host(), client: Self.client)
      #expect(try Self.keys(ledger).count == Int(key))
    }
    ledger.noteFull(try Self.origin(200), by: .probe, at: try Self.host(), client: Self.client)
    #expect(try Self.keys(ledger).isEmpty)
  }

  @Test("A rule that demands the key log is not served by a probe's evidence") func method() throws {
    let ledger = ResumptionLedger()
    ledger.noteFull(try Self.origin(), by: .keyLog, at: try Self.host(), client: Self.client)
    #expect(try Self.keys(ledger, by: .keyLog).count == 1)
    ledger.noteFull(try Self.origin(), by: .probe, at: try Self.host(), client: Self.client)
    #expect(try Self.keys(ledger, by: .keyLog).isEmpty)
    #expect(try Self.keys(ledger).count == 2)
  }

  /// A clock that the test sets, in seconds.
  private final class Clock: Sendable {
    private let passed = Mutex<Int64>(0)
    private let start = ContinuousClock.now

    var now: ContinuousClock.Instant { start + .seconds(passed.withLock { $0 }) }

    func set(_ seconds: Int64) { passed.withLock { $0 = seconds } }
  }

  private static func note(_ key: UInt8, in ledger: ResumptionLedger, validUntil: Int64? = nil) throws {
    ledger.noteFull(try origin(key, validUntil: validUntil), by: .keyLog, at: try host(), client: client)
  }

  @Test("Whose time is over vouches for nothing, and stays a witness") func witness() throws {
    let ledger = ResumptionLedger()
    try Self.note(2, in: ledger, validUntil: Self.now.seconds + 25)
    #expect(try Self.keys(ledger) == [try Self.digest(2)])
    #expect(try Self.keys(ledger, seconds: 30).isEmpty)
    try Self.note(1, in: ledger)
    #expect(try Self.keys(ledger, seconds: 30) == [try Self.digest(2), try Self.digest(1)])
  }

  @Test("A witness of before sessions were ended stays one") func endedWitness() throws {
    let ledger = ResumptionLedger()
    try Self.note(2, in: ledger)
    ledger.endAll()
    #expect(try Self.keys(ledger).isEmpty)
    try Self.note(1, in: ledger)
    #expect(try Self.keys(ledger) == [try Self.digest(2), try Self.digest(1)])
  }

  @Test("A witness met under other authorities leaves everything open") func strangeWitness() throws {
    let ledger = ResumptionLedger()
    let strange = SessionOrigin(try Self.evidence(2), judged: Self.now, under: .other)
    ledger.noteFull(strange, by: .keyLog, at: try Self.host(), client: Self.client)
    try Self.note(1, in: ledger)
    #expect(try Self.keys(ledger).isEmpty)
    try Self.note(2, in: ledger)
    #expect(try Self.keys(ledger).count == 2, "judged anew by the authorities of today")
  }

  @Test("One too many stays too many, although the others' time is over") func overflow() throws {
    let clock = Clock()
    let ledger = ResumptionLedger(clock: { clock.now })
    for key in 1...UInt8(SessionPeers.limit + 1) { try Self.note(key, in: ledger, validUntil: Self.now.seconds + 10) }
    clock.set(604_000)
    try Self.note(99, in: ledger)
    clock.set(604_801)
    #expect(try Self.keys(ledger).isEmpty)
    try Self.note(1, in: ledger)
    #expect(try Self.keys(ledger).isEmpty, "the tickets of the last one go on")
  }

  @Test("A witness goes when the last ticket it may have given out has ended", arguments: [false, true])
  func lastTicket(isRenewed: Bool) throws {
    let clock = Clock()
    let ledger = ResumptionLedger(clock: { clock.now })
    try Self.note(2, in: ledger)
    clock.set(604_799)
    try Self.note(1, in: ledger)
    #expect(try Self.keys(ledger) == [try Self.digest(2), try Self.digest(1)])
    if isRenewed { ledger.noteResumed(at: try Self.host(), client: Self.client) }
    clock.set(604_801)
    let left: [UInt8] = isRenewed ? [2, 1] : [1]
    let expected = try left.map(Self.digest)
    #expect(try Self.keys(ledger) == expected)
  }

  @Test("Clients without end do not fill the memory") func boundedPeers() throws {
    let ledger = ResumptionLedger(peerLimit: 2)
    let clients = [IPAddress("10.0.0.1"), IPAddress("10.0.0.2"), IPAddress("10.0.0.3")]
    for client in clients { ledger.noteFull(try Self.origin(), by: .probe, at: try Self.host(), client: client) }
    #expect(try clients.map { try Self.keys(ledger, client: $0).count } == [0, 1, 1])
  }
}

/// The bounded table beneath, against a list that does the same slowly.
@Suite struct RecentTableTests {
  @Test("It forgets exactly what a list in order of use would forget", arguments: [1, 2, 7, 50])
  func model(limit: Int) {
    var table = RecentTable<Int, Int>(limit: limit)
    var model: [(key: Int, value: Int)] = []
    var state: UInt64 = 42
    for step in 0..<5000 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      let key = Int(state >> 33) % (limit * 2 + 1)
      let place = model.firstIndex { $0.key == key }
      if state >> 62 == 0 {
        #expect(table.value(for: key) == place.map { model[$0].value })
        if let place { model.append(model.remove(at: place)) }
      } else {
        table.set(step, for: key)
        if let place { model.remove(at: place) } else if model.count == limit { model.removeFirst() }
        model.append((key, step))
      }
      #expect(table.count == model.count)
    }
    for (key, value) in model { #expect(table.value(for: key) == value) }
  }
}

extension ResumptionLedger {
  fileprivate func known(
    _ hello: ClientHello, at authority: Authority, now: Timestamp, under trust: TrustMark = .tested
  ) -> SessionOrigin? {
    let found = origin(ofSessionIn: hello, at: authority, now: now, under: trust)
    if case .known(let origin) = found { return origin }
    return nil
  }
}
