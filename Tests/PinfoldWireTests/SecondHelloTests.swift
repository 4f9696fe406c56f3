import PinfoldModel
import PinfoldWire
import Testing

/// What may and may not stand between two hellos, and how far the second may differ.
@Suite struct SecondHelloTests {
  private static let early = try? Capture("tls13-openssl-early-data").hello()
  private static let plain = try? Capture("tls13-openssl-hrr").hello()

  private func read(_ bytes: [UInt8], after first: ClientHello?) throws -> ClientHelloReader.Event {
    var reader = ClientHelloReader(after: try #require(first))
    return reader.receive(bytes.span)
  }

  @Test func `0-RTT records between the hellos are dropped and reported`() throws {
    let first = try #require(Self.early)
    let hello = Wire.handshake(Wire.clientHello())
    let data = Wire.record(23, Array(repeating: 5, count: 100))
    let bytes = Wire.record(20, [1]) + data + data + hello
    guard case .hello(let second) = try read(bytes, after: first) else { throw Unexpected() }
    let start = first.end
    #expect(second.changeCipherSpec == start..<(start + 6))
    #expect(second.droppedEarlyData == [(start + 6)..<(start + 111), (start + 111)..<(start + 216)])
    #expect(second.start == start + 216)
    #expect(second.end == start + 216 + hello.count)
    #expect(second.records == hello)
  }

  @Test func `0-RTT records nobody announced are refused`() throws {
    let first = try #require(Self.plain)
    guard case .refused(let refusal) = try read(Wire.record(23, [1]), after: first) else { throw Unexpected() }
    #expect(
      refusal == HandshakeRefusal(.malformedHandshake, at: first.end, "application data before the hello is whole"))
  }

  @Test func `0-RTT records without end are refused`() throws {
    let data = Wire.record(23, Array(repeating: 5, count: 16384))
    let flood = (0..<20).flatMap { _ in data }
    guard case .refused(let refusal) = try read(flood, after: Self.early) else { throw Unexpected() }
    #expect(refusal.reason == .helloTooLarge)
  }

  static let rows: [(String, [UInt8])] = [
    ("two ChangeCipherSpecs", Wire.record(20, [1]) + Wire.record(20, [1])),
    ("a ChangeCipherSpec that is not the byte 1", Wire.record(20, [2])),
    ("a ChangeCipherSpec of two bytes", Wire.record(20, [1, 1])),
    ("a ChangeCipherSpec inside the hello", Wire.record(22, [1]) + Wire.record(20, [1])),
    ("0-RTT data inside the hello", Wire.record(22, [1]) + Wire.record(23, [1])),
    ("an alert", Wire.record(21, [2, 40])),
    ("another message", Wire.handshake(Wire.message(20, [0]))),
  ]

  @Test(arguments: rows.map(\.0))
  func `what may not stand before a second hello is refused`(_ name: String) throws {
    let row = try #require(Self.rows.first { $0.0 == name })
    guard case .refused(let refusal) = try read(row.1, after: Self.early) else { throw Unexpected() }
    #expect(refusal.reason == .malformedHandshake)
  }

  private func retry(_ capture: Capture) throws -> (ClientHello, ServerHello, [UInt8]) {
    let first = try capture.hello()
    var reader = ServerFlightReader(answering: first)
    guard case .helloRetryRequest(let retry) = reader.receive(capture.server.span) else { throw Unexpected() }
    return (first, retry, try capture.secondHello(after: first).message)
  }

  @Test(arguments: Capture.withHello.filter { $0.facts.helloRetry != nil })
  func `the second hello of every capture repeats its first`(_ capture: Capture) throws {
    let (first, retry, _) = try retry(capture)
    let second = try capture.secondHello(after: first)
    #expect(first.refusal(ofSecond: second, after: retry) == nil)
    // The first hello again has no share of the group that was asked for.
    #expect(first.refusal(ofSecond: first, after: retry)?.reason == .malformedHandshake)
  }

  @Test func `a second hello that differs is refused`() throws {
    let capture = try Capture("tls13-openssl-hrr")
    let (first, retry, message) = try retry(capture)
    let name = Array("api.pinfold.test".utf8)
    let place = try #require(message.indices.first { message[$0...].starts(with: name) })
    for (index, reason) in [
      (place, Reason.sniMismatch), (4 + 2, .malformedHandshake), (4 + 2 + 32 + 5, .malformedHandshake),
      (4 + 2 + 32 + 33 + 3, .malformedHandshake),
    ] {
      var changed = message
      changed[index] ^= 1
      guard case .hello(let second) = try read(Wire.handshake(changed), after: first) else { throw Unexpected() }
      #expect(first.refusal(ofSecond: second, after: retry)?.reason == reason, "byte \(index)")
    }
  }
}
