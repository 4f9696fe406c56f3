import Foundation
import Glibc
import PinfoldModel
import PinfoldPolicy
import PinfoldWire
import Testing

@testable import PinfoldLoop
@testable import PinfoldServer

/// The captured first connection of a pair, behind its held flight: what each side says, and what may be learnt.
private struct Talk {
  static let authority = Authority("api.pinfold.test:443")
  let hello: ClientHello
  let flight: ServerFlight
  /// The client's second flight, the server's answer with its ticket, the client's data, the server's data.
  let second: [UInt8]
  let answer: [UInt8]
  let request: [UInt8]
  let response: [UInt8]

  struct Wrong: Error {}

  init() throws {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Fixtures/Handshakes/tls12-openssl-nginx-ticket-1")
    let client = [UInt8](try Data(contentsOf: folder.appending(path: "client.bin")))
    let server = [UInt8](try Data(contentsOf: folder.appending(path: "server.bin")))
    var reader = ClientHelloReader()
    guard case .hello(let hello) = reader.receive(Array(client[..<213]).span) else { throw Wrong() }
    var flights = ServerFlightReader(answering: hello)
    guard case .tls12Flight(let flight) = flights.receive(Array(server[..<1340]).span) else { throw Wrong() }
    self.hello = hello
    self.flight = flight
    second = Array(client[213..<306])
    answer = Array(server[1340..<1614])
    request = Array(client[306..<353])
    response = Array(server[1614..<1812])
  }

  func lesson() throws -> Lesson {
    let digest = try #require(Digest256([UInt8](repeating: 1, count: 32)))
    let evidence = Evidence(
      publicKey: digest, certificate: digest, chain: .unchecked, nameMatches: true, keyProven: true)
    return Lesson(
      watch: try #require(SessionWatch(behind: flight, answering: hello)), authority: try #require(Self.authority),
      origin: SessionOrigin(evidence, judged: Timestamp(seconds: 1000), under: .tested))
  }

  /// Whether the ledger knows the ticket that the second connection of the pair offers.
  func isKnown(to ledger: ResumptionLedger) throws -> Bool {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Fixtures/Handshakes/tls12-openssl-nginx-ticket-2-resumed")
    let client = [UInt8](try Data(contentsOf: folder.appending(path: "client.bin")))
    var reader = ClientHelloReader()
    guard case .hello(let next) = reader.receive(client.span) else { throw Wrong() }
    let host = try #require(Self.authority)
    let origin = ledger.origin(ofSessionIn: next, at: host, now: Timestamp(seconds: 1000), under: .tested)
    if case .known = origin { return true }
    return false
  }
}

/// What a tunnel came to, and how many of its bytes passed under the watch.
private struct Served {
  var isWhole: Bool
  var watched: UInt64
  var up: UInt64
  var down: UInt64
}

/// Two loopback connections with a watched relay between them; all on one loop.
private final class House: @unchecked Sendable {  // Touched on its loop's thread only.
  let loop: EventLoop
  let talk: Talk
  let ledger = ResumptionLedger()
  var client: StreamSocket
  var server: StreamSocket
  private let nearClient: StreamSocket
  private let nearServer: StreamSocket
  private var accepted: [StreamSocket] = []
  /// Whether the tunnel has ended.
  private(set) var isOver = false

  init(_ loop: EventLoop) async throws {
    self.loop = loop
    talk = try Talk()
    (client, nearClient) = try await SocketPair.make(loop)
    (nearServer, server) = try await SocketPair.make(loop)
  }

  /// Watches, then relays; what the watch itself came to is the answer.
  func serve(patience: Duration = .seconds(10), idle: Duration = .seconds(10)) -> Task<Served, any Error> {
    Task(executorPreference: loop) {
      defer { self.isOver = true }
      var watched = WatchedRelay(
        try self.talk.lesson(), client: self.nearClient, upstream: self.nearServer, ledger: self.ledger,
        deadline: self.loop.deadline(after: patience), idle: idle)
      let isWhole = await watched.run()
      let byteCount = watched.up + watched.down
      guard isWhole else { return Served(isWhole: false, watched: byteCount, up: watched.up, down: watched.down) }
      let result = await Relay.run(client: self.nearClient, upstream: self.nearServer, idle: .seconds(10))
      return Served(
        isWhole: true, watched: byteCount, up: watched.up + result.bytesUp, down: watched.down + result.bytesDown)
    }
  }

  /// Ends the tunnel, as a drain does.
  func cancel() { nearClient.cancel() }

  /// Sends until nothing more is taken on the way to a server that does not read.
  func stall() async throws {
    var size: Int32 = 16_384
    unsafe setsockopt(nearServer.descriptor, SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
    let record = [22, 3, 3, 0x3f, 0] + [UInt8](repeating: 0x78, count: 0x3f00)
    await #expect(throws: IOError.timedOut) {
      while true { try await client.send(record, deadline: loop.deadline(after: .milliseconds(200))) }
    }
  }

  func say(_ bytes: [UInt8], from socket: StreamSocket) async throws {
    try await socket.send(bytes, deadline: loop.deadline(after: .seconds(10)))
  }

  func hear(_ count: Int, at socket: StreamSocket) async throws -> [UInt8] {
    var all: [UInt8] = []
    while all.count < count {
      let more = try await socket.receive(max: count - all.count, deadline: loop.deadline(after: .seconds(10)))
      if more.isEmpty { break }
      all += more
    }
    return all
  }

  func isEnded(_ socket: StreamSocket) async throws -> Bool { try await hear(1, at: socket).isEmpty }
}

/// Would catch a byte that is lost, doubled or out of order where the watch hands over, and an end that is not passed on.
@Suite struct WatchedRelayTests {
  private func inHouse(_ body: @escaping @Sendable (House) async throws -> Void) async throws {
    try await onLoop { loop in try await body(try await House(loop)) }
  }

  @Test("A handshake and its data pass whole, and the session is learnt when the data comes") func whole() async throws
  {
    try await inHouse { house in
      let served = house.serve()
      let talk = house.talk
      try await house.say(talk.second, from: house.client)
      #expect(try await house.hear(talk.second.count, at: house.server) == talk.second)
      try await house.say(talk.answer, from: house.server)
      #expect(try await house.hear(talk.answer.count, at: house.client) == talk.answer)
      #expect(try !talk.isKnown(to: house.ledger))
      try await house.say(talk.request, from: house.client)
      #expect(try await house.hear(talk.request.count, at: house.server) == talk.request)
      #expect(try talk.isKnown(to: house.ledger))
      try await house.say(talk.response, from: house.server)
      #expect(try await house.hear(talk.response.count, at: house.client) == talk.response)
      house.client.shutdownWrite()
      house.server.shutdownWrite()
      let result = try await served.value
      #expect(result.up == UInt64(talk.second.count + talk.request.count))
      #expect(result.down == UInt64(talk.answer.count + talk.response.count))
    }
  }

  @Test("Everything at once and byte by byte arrives in order, whatever is learnt", arguments: [1, 7, 100_000])
  func cuts(size: Int) async throws {
    try await inHouse { house in
      let served = house.serve()
      let up = house.talk.second + house.talk.request + (0..<50_000).map { UInt8(truncatingIfNeeded: $0 % 251) }
      let down = house.talk.answer + house.talk.response + (0..<50_000).map { UInt8(truncatingIfNeeded: $0 % 241) }
      func pour(_ bytes: [UInt8], _ socket: StreamSocket) async throws {
        // The beginning in small cuts; the rest at once.
        for start in stride(from: 0, to: 500, by: size) {
          try await house.say(Array(bytes[start..<min(500, start + size)]), from: socket)
        }
        try await house.say(Array(bytes[500...]), from: socket)
        socket.shutdownWrite()
      }
      try await pour(up, house.client)
      try await pour(down, house.server)
      #expect(try await house.hear(up.count, at: house.server) == up)
      #expect(try await house.hear(down.count, at: house.client) == down)
      #expect(try await house.isEnded(house.server))
      #expect(try await house.isEnded(house.client))
      #expect(try await served.value.isWhole)
    }
  }

  @Test("A client that ends its side inside the handshake can still read the server's") func halfClose() async throws {
    try await inHouse { house in
      let served = house.serve()
      try await house.say(house.talk.second, from: house.client)
      house.client.shutdownWrite()
      #expect(try await house.hear(house.talk.second.count, at: house.server) == house.talk.second)
      #expect(try await house.isEnded(house.server))
      try await house.say(house.talk.answer, from: house.server)
      house.server.shutdownWrite()
      #expect(try await house.hear(house.talk.answer.count, at: house.client) == house.talk.answer)
      #expect(try await house.isEnded(house.client))
      #expect(try await served.value.isWhole)
      #expect(try !house.talk.isKnown(to: house.ledger))
    }
  }

  @Test("When the time of the watch is up, the tunnel goes on and nothing is learnt") func patience() async throws {
    try await inHouse { house in
      let served = house.serve(patience: .milliseconds(20))
      await house.loop.sleep(for: .milliseconds(80))
      for (bytes, from, to) in [
        (house.talk.second, house.client, house.server), (house.talk.answer, house.server, house.client),
        (house.talk.request, house.client, house.server),
      ] {
        try await house.say(bytes, from: from)
        #expect(try await house.hear(bytes.count, at: to) == bytes)
      }
      house.client.shutdownWrite()
      house.server.shutdownWrite()
      #expect(try await served.value.isWhole)
      #expect(try !house.talk.isKnown(to: house.ledger))
    }
  }

  /// Would catch a tunnel that keeps its worker to itself for as long as a server talks to a silent client.
  @Test("A server that talks on to a silent client ends the watch, and no byte is lost") func flood() async throws {
    try await inHouse { house in
      let served = house.serve()
      try await house.say(house.talk.second, from: house.client)
      #expect(try await house.hear(house.talk.second.count, at: house.server) == house.talk.second)
      let flood = house.talk.answer + (0..<4_000_000).map { UInt8(truncatingIfNeeded: $0 % 251) }
      let told = Task(executorPreference: house.loop) {
        try await house.say(flood, from: house.server)
        house.server.shutdownWrite()
      }
      #expect(try await house.hear(flood.count, at: house.client) == flood)
      try await told.value
      house.client.shutdownWrite()
      let result = try await served.value
      #expect(result.isWhole && result.down == UInt64(flood.count))
      #expect(result.watched < 1_200_000, "\(result.watched) bytes under the watch")
    }
  }

  @Test("Bytes that are there do not make the time of the watch longer") func late() async throws {
    try await inHouse { house in
      try await house.say(house.talk.second, from: house.client)
      let served = house.serve(patience: .zero)
      #expect(try await house.hear(house.talk.second.count, at: house.server) == house.talk.second)
      house.client.shutdownWrite()
      house.server.shutdownWrite()
      let result = try await served.value
      #expect(result.isWhole && result.watched == 0 && result.up == UInt64(house.talk.second.count))
    }
  }

  @Test("A reset of one side resets the other") func reset() async throws {
    try await inHouse { house in
      let served = house.serve()
      try await house.say(house.talk.second, from: house.client)
      #expect(try await house.hear(house.talk.second.count, at: house.server) == house.talk.second)
      house.server.abort()
      #expect(try await !served.value.isWhole)
      await #expect(throws: IOError.reset) { _ = try await house.hear(1, at: house.client) }
    }
  }

  /// Would catch a process that ends without the line of a tunnel whose upstream has stopped to read.
  @Test("A cancel ends a step that the upstream does not take, and the client's end does not") func stalled()
    async throws
  {
    try await inHouse { house in
      let served = house.serve(patience: .seconds(40), idle: .seconds(40))
      try await house.stall()
      house.client.shutdownWrite()
      await house.loop.sleep(for: .milliseconds(50))
      #expect(!house.isOver)
      house.cancel()
      let limit = house.loop.deadline(after: .seconds(20))
      while !house.isOver, house.loop.now < limit { await house.loop.sleep(for: .milliseconds(5)) }
      #expect(house.isOver)
      house.server.abort()
      _ = try await served.value
    }
  }
}
