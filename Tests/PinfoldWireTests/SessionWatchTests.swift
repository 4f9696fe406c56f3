import PinfoldWire
import Testing

/// A piece of a conversation behind the held flight.
struct Said: Sendable {
  enum Side: Sendable { case client, server }
  let side: Side
  let bytes: [UInt8]

  static func client(_ bytes: [UInt8]...) -> Said { Said(side: .client, bytes: bytes.flatMap { $0 }) }
  static func server(_ bytes: [UInt8]...) -> Said { Said(side: .server, bytes: bytes.flatMap { $0 }) }
}

extension SessionWatch {
  /// The state after all of it, each piece cut into parts of `size` bytes.
  mutating func hear(_ talk: [Said], size: Int = .max) -> State {
    for said in talk {
      for start in stride(from: 0, to: said.bytes.count, by: min(size, max(said.bytes.count, 1))) {
        let part = Array(said.bytes[start..<min(said.bytes.count, start + min(size, said.bytes.count))])
        switch said.side {
        case .client: _ = receive(client: part.span)
        case .server: _ = receive(server: part.span)
        }
      }
    }
    return state
  }
}

extension Capture {
  /// Captures of TLS 1.0–1.2 with everything that was said, behind a handshake that promises a session.
  static let sessions = all.filter { capture in
    guard capture.facts.version?.hasPrefix("TLS1.") == true, capture.facts.version != "TLS1.3" else { return false }
    let sent = capture.facts.flow?.reduce(0) { $0 + ($1.side == "c" ? $1.length : 0) }
    return sent == capture.client.count && (try? capture.watch()) != nil
  }

  /// The watch behind the capture's held flight.
  func watch() throws -> SessionWatch? {
    switch try flight() {
    case .tls12Flight(let flight): SessionWatch(behind: flight, answering: try hello())
    case .tls12Resumed(let resumed): SessionWatch(behind: resumed)
    default: nil
    }
  }

  /// What was said behind the hello and the held flight.
  func talk() throws -> [Said] {
    var skip: [String: Int] = ["c": try hello().end]
    switch try flight() {
    case .tls12Flight(let flight): skip["s"] = flight.end
    case .tls12Resumed(let resumed): skip["s"] = resumed.end
    default: throw Unexpected()
    }
    var place = ["c": 0, "s": 0]
    var talk: [Said] = []
    for step in facts.flow ?? [] {
      let start = place[step.side] ?? 0
      let end = start + step.length
      place[step.side] = end
      let from = max(start, skip[step.side] ?? 0)
      let all = step.side == "c" ? client : server
      guard from < min(end, all.count) else { continue }
      let bytes = Array(all[from..<min(end, all.count)])
      talk.append(Said(side: step.side == "c" ? .client : .server, bytes: bytes))
    }
    return talk
  }

  /// The type of the client's first record behind its Finished, found by walking its records.
  func typeBehindFinished() throws -> UInt8? {
    var index = try hello().end
    let bytes = client
    var hasChanged = false
    var isFinished = false
    while index + 5 <= bytes.count {
      if isFinished { return bytes[index] }
      isFinished = hasChanged
      if bytes[index] == 20 { hasChanged = true }
      index += 5 + Int(bytes[index + 3]) << 8 + Int(bytes[index + 4])
    }
    return nil
  }
}

/// Would catch a session that is remembered before its client has accepted it, or that no client accepted.
@Suite struct SessionWatchTests {
  @Test("There are captures to watch") func captures() {
    #expect(Capture.sessions.count > 40)
  }

  @Test(
    "A session is learnt where the client sends data behind the Finished, and only there", arguments: Capture.sessions)
  func learns(_ capture: Capture) throws {
    var watch = try #require(try capture.watch())
    let state = watch.hear(try capture.talk())
    guard try capture.typeBehindFinished() == 23 else {
      if case .learnt = state { Issue.record("nothing was sent, yet \(state)") }
      return
    }
    guard case .learnt(let session) = state else { throw Unexpected() }
    #expect(session.ticket.isEmpty == (capture.facts.newSessionTicketClear != true))
    if capture.facts.outcome == "full" {
      #expect(session.sessionID.count == capture.facts.serverHello?.sessionIdLength)
    }
  }

  @Test(
    "What is learnt is what the client offers next time", arguments: Capture.sessions.filter { $0.name.hasSuffix("-1") }
  )
  func pairs(_ capture: Capture) throws {
    var watch = try #require(try capture.watch())
    guard case .learnt(let session) = watch.hear(try capture.talk()) else {
      #expect(try capture.typeBehindFinished() != 23)
      return
    }
    let next = try Capture(try #require(capture.facts.pair)).hello()
    if let ticket = next.sessionTicket {
      #expect(Array(ticket) == session.ticket)
    } else {
      #expect(Array(next.sessionID) == session.sessionID && !session.sessionID.isEmpty)
    }
  }

  @Test("However the bytes are cut, the same is learnt", arguments: Capture.sessions)
  func cuts(_ capture: Capture) throws {
    let talk = try capture.talk()
    var whole = try #require(try capture.watch())
    let state = whole.hear(talk)
    for size in [1, 2, 5, 6, 7, 50, 100] {
      var watch = try #require(try capture.watch())
      #expect(watch.hear(talk, size: size) == state)
    }
  }

  @Test("No talk that is cut off before the client's data teaches anything", arguments: Capture.sessions)
  func prefixes(_ capture: Capture) throws {
    var watch = try #require(try capture.watch())
    var isBeyond = false
    var finished = 0
    for said in try capture.talk() {
      for byte in said.bytes {
        let before = watch.state
        if said.side == .client {
          _ = watch.receive(client: [byte].span)
        } else {
          _ = watch.receive(server: [byte].span)
        }
        if case .learnt = watch.state, before == .watching {
          isBeyond = true
          #expect(said.side == .client && finished > 0 || capture.facts.outcome == "resumed")
        }
      }
      if said.side == .server { finished += 1 }
    }
    if try capture.typeBehindFinished() != 23 { #expect(!isBeyond) }
  }

  // MARK: Made talk

  private static let exchange = Wire.handshake(Wire.message(16, [1, 2, 3]))
  private static let change = Wire.record(20, [1])
  private static let sealed = Wire.handshake(Array(repeating: 9, count: 40))
  private static let data = Wire.record(23, Array(repeating: 7, count: 30))
  private static let ticketBytes: [UInt8] = [5, 6, 7, 8]
  private static let ticket = ticketMessage(ticketBytes)
  private static func ticketMessage(_ bytes: [UInt8]) -> [UInt8] {
    Wire.message(4, [0, 0, 1, 0] + Wire.vector(2, bytes))
  }
  private static let second = Said.client(exchange, change, sealed)
  private static let answer = Said.server(Wire.handshake(ticket), change, sealed)

  /// Talk behind a full handshake that promises a ticket.
  struct Row: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let state: SessionWatch.State
    let talk: [Said]

    init(_ name: String, _ state: SessionWatch.State = .abandoned, _ talk: Said...) {
      testDescription = name
      self.state = state
      self.talk = talk
    }
  }

  private static let learnt = SessionWatch.State.learnt(
    .init(sessionID: Array(repeating: 3, count: 32), ticket: ticketBytes))
  private static let idOnly = SessionWatch.State.learnt(.init(sessionID: Array(repeating: 3, count: 32), ticket: []))

  static let rows = [
    Row("all in order", learnt, second, answer, .client(data)),
    Row(
      "the ticket in one-byte records", learnt, second,
      .server(ticket.flatMap { Wire.handshake([$0]) }, change, sealed), .client(data)),
    Row(
      "the server speaks on behind its Finished", learnt, second, .server(Wire.handshake(ticket), change, sealed, data),
      .client(data)),
    Row(
      "a client certificate before the exchange", learnt,
      .client(Wire.handshake(Wire.message(11, [0, 0, 0])), exchange, change, sealed), answer, .client(data)),
    Row(
      "an empty ticket leaves the id", idOnly, second, .server(Wire.handshake(ticketMessage([])), change, sealed),
      .client(data)),
    Row("no data yet", .watching, second, answer),
    Row("a header that is not whole", .watching, second, answer, .client([23, 3, 3, 0])),
    Row("no Finished of the server yet", .watching, second, .server(Wire.handshake(ticket), change)),
    Row(
      "half of the server's Finished", .watching, second,
      .server(Wire.handshake(ticket), change, Array(sealed.dropLast()))),
    Row("data ahead of the server's Finished", .abandoned, second, .client(data), answer, .client(data)),
    Row(
      "data behind half of the server's Finished", .abandoned, second,
      .server(Wire.handshake(ticket), change, Array(sealed.dropLast())), .client(data)),
    Row(
      "an alert instead of data", .abandoned, second, answer, .client(Wire.record(21, Array(repeating: 1, count: 26))),
      .client(data)),
    Row("an alert in the clear", .abandoned, .client(Wire.record(21, [2, 42]))),
    Row("another handshake instead of data", .abandoned, second, answer, .client(sealed)),
    Row("the server answers before the client", .abandoned, answer, second, .client(data)),
    Row(
      "the server answers inside the client's Finished", .abandoned,
      .client(exchange, change, Array(sealed.dropLast())), answer),
    Row("two tickets", .abandoned, second, .server(Wire.handshake(ticket + ticket), change, sealed), .client(data)),
    Row("no ticket, though promised", .abandoned, second, .server(change, sealed), .client(data)),
    Row("another message than a ticket", .abandoned, second, .server(Wire.handshake(Wire.message(14, [])))),
    Row(
      "a ticket with bytes behind it", .abandoned, second,
      .server(Wire.handshake(Wire.message(4, [0, 0, 1, 0, 0, 1, 9, 9])))),
    Row(
      "a ticket longer than its message", .abandoned, second,
      .server(Wire.handshake(Wire.message(4, [0, 0, 1, 0, 0, 3, 9, 9])))),
    Row(
      "a ChangeCipherSpec inside the ticket", .abandoned, second,
      .server(Wire.handshake(Array(ticket.dropLast())), change, sealed)),
    Row(
      "a ChangeCipherSpec of another byte", .abandoned, second, .server(Wire.handshake(ticket), Wire.record(20, [2]))),
    Row("data of the server before its ChangeCipherSpec", .abandoned, second, .server(data)),
    Row(
      "data of the server instead of its Finished", .abandoned, second, .server(Wire.handshake(ticket), change, data)),
    Row("a record of another version", .abandoned, second, .server(Wire.handshake(ticket, version: 0x0302))),
    Row("a client record of another version", .abandoned, .client(Wire.record(22, [1], version: 0x0302))),
    Row("a ChangeCipherSpec before the exchange", .abandoned, .client(change, sealed)),
    Row("a client's ChangeCipherSpec of two bytes", .abandoned, .client(exchange, Wire.record(20, [1, 1]))),
    Row("data instead of the client's Finished", .abandoned, .client(exchange, change, data)),
    Row("an empty record of the client", .abandoned, .client(exchange, Wire.record(22, []))),
    Row("no TLS at all", .abandoned, .client(Array("GET / HTTP/1.1\r\n".utf8))),
    Row(
      "messages without end", .abandoned, second,
      .server(
        (0..<6).flatMap { _ in Wire.record(22, [4, 1, 0, 0] + Array(repeating: 0, count: 16_380)) })),
    Row("client records without end", .abandoned, .client((0..<100).flatMap { _ in exchange })),
  ]

  /// The flight of a capture with another ServerHello in front.
  private static func flight(ticket: Bool, sessionID: [UInt8]) throws -> (ServerFlight, ClientHello) {
    let capture = try Capture("tls12-openssl-nginx-ticket-1")
    let hello = try capture.hello()
    guard case .tls12Flight(let real) = try capture.flight() else { throw Unexpected() }
    let messages = Wire.messages(of: capture.server, upTo: real.end)
    let list: [(Int, [UInt8])] = ticket ? [(35, [])] : []
    let first = Wire.serverHello(sessionID: sessionID, suite: 0xc02c, extensions: [(0xff01, [0])] + list)
    var reader = ServerFlightReader(answering: hello)
    let bytes = Wire.handshake(first + messages.dropFirst().flatMap { $0 })
    guard case .tls12Flight(let made) = reader.receive(bytes.span) else { throw Unexpected() }
    return (made, hello)
  }

  private static let freshID = [UInt8](repeating: 3, count: 32)

  @Test("Talk behind a promised ticket", arguments: rows) func talk(_ row: Row) throws {
    let (flight, hello) = try Self.flight(ticket: true, sessionID: Self.freshID)
    for size in [Int.max, 1, 3, 64] {
      var watch = try #require(SessionWatch(behind: flight, answering: hello))
      #expect(watch.hear(row.talk, size: size) == row.state)
    }
  }

  @Test("A ticket that nobody promised is not learnt") func unpromised() throws {
    let (flight, hello) = try Self.flight(ticket: false, sessionID: Self.freshID)
    var watch = try #require(SessionWatch(behind: flight, answering: hello))
    #expect(watch.hear([Self.second, Self.answer, .client(Self.data)]) == .abandoned)
    var without = try #require(SessionWatch(behind: flight, answering: hello))
    #expect(without.hear([Self.second, .server(Self.change, Self.sealed), .client(Self.data)]) == Self.idOnly)
  }

  @Test("Without id and ticket there is nothing to watch") func nothing() throws {
    let (flight, hello) = try Self.flight(ticket: false, sessionID: [])
    #expect(SessionWatch(behind: flight, answering: hello) == nil)
  }

  @Test("Behind a resumption the fresh ticket is learnt once the client sends data") func resumed() throws {
    let capture = try Capture("tls12-java-java-ticket-2-resumed")
    guard case .tls12Resumed(let resumed) = try capture.flight() else { throw Unexpected() }
    let ticket = try #require(resumed.newTicket)
    var watch = try #require(SessionWatch(behind: resumed))
    #expect(watch.hear([.client(Self.change, Self.sealed)]) == .watching)
    #expect(watch.hear([.client(Self.data)]) == .learnt(.init(sessionID: [], ticket: ticket)))
    var early = try #require(SessionWatch(behind: resumed))
    #expect(early.hear([.client(Self.exchange, Self.change, Self.sealed, Self.data)]) == .abandoned)
  }
}
