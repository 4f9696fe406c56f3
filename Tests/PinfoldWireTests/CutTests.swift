import PinfoldModel
import PinfoldWire
import Testing

/// However bytes are cut, what they amount to is the same, and it is never said too early.
@Suite struct CutTests {
  private func summary(_ event: ClientHelloReader.Event) -> String {
    switch event {
    case .incomplete: "incomplete"
    case .hello(let hello): "hello \(hello.start) \(hello.end) \(hello.recordCount) \(hello.extensions.count)"
    case .refused(let refusal): "refused \(refusal)"
    }
  }

  private func summary(_ event: ServerFlightReader.Event) -> String {
    switch event {
    case .incomplete: "incomplete"
    case .tls12Flight(let flight): "flight \(flight.end) \(flight.certificates) \(flight.keyProof)"
    case .tls12Resumed(let resumed): "resumed \(resumed.end) \(resumed.newTicket?.count ?? -1)"
    case .tls13(let hello): "TLS 1.3 \(hello.end) \(hello.extensions)"
    case .helloRetryRequest(let hello): "retry \(hello.end)"
    case .fatalAlert(let code, let end): "alert \(code) \(end)"
    case .noCertificate(let hello): "no certificate \(hello.end)"
    case .refused(let refusal): "refused \(refusal)"
    }
  }

  private func hello(_ bytes: ArraySlice<UInt8>, cuts: [Int] = []) -> String {
    var reader = ClientHelloReader()
    var event = ClientHelloReader.Event.incomplete
    var start = bytes.startIndex
    for end in cuts + [bytes.endIndex] {
      event = reader.receive(Array(bytes[start..<end]).span)
      start = end
    }
    return summary(event)
  }

  private func flight(
    _ bytes: ArraySlice<UInt8>, _ first: ClientHello, _ second: ClientHello?, cuts: [Int] = []
  ) -> String {
    var reader = ServerFlightReader(answering: first)
    var event = ServerFlightReader.Event.incomplete
    var start = bytes.startIndex
    for end in cuts + [bytes.endIndex] {
      event = reader.receive(Array(bytes[start..<end]).span)
      if case .helloRetryRequest = event, let second { event = reader.secondHello(second) }
      start = end
    }
    return summary(event)
  }

  /// Captures of every shape, cut at every place; the others are cut at every seventh, each from another start.
  private static let whole: Set<String> = [
    "alert-handshake-failure", "tls10-openssl-ecdhe-rsa", "tls12-curl-nginx-ecdsa", "tls12-nss-nss-ocsp-failure",
    "tls12-java-java-ticket-2-resumed", "tls12-openssl-rsa-kex", "tls12-openssl-unrecognized-name-warning",
    "tls12-openssl35-raw-public-key", "tls13-openssl-hello-in-3-records", "tls13-java-openssl-hrr",
    "tls13-openssl-hrr-psk",
  ]

  private func places(_ capture: Capture, _ end: Int) -> StrideTo<Int> {
    if Self.whole.contains(capture.name) { return stride(from: 0, to: end, by: 1) }
    return stride(from: capture.client.count % 7, to: end, by: end > 8000 ? 35 : 7)
  }

  @Test(arguments: Capture.withHello)
  func `every prefix of a hello is incomplete until one length`(_ capture: Capture) throws {
    let bytes = capture.client
    let whole = hello(bytes[...])
    let end = try #require(capture.facts.clientHello?.end)
    for length in 0..<end { #expect(hello(bytes[..<length]) == "incomplete") }
    for length in [end, end + 1, bytes.count] where length <= bytes.count {
      #expect(hello(bytes[..<length]) == whole)
    }
  }

  @Test(arguments: Capture.withHello)
  func `a hello cut in two anywhere is the same hello`(_ capture: Capture) throws {
    let bytes = capture.client
    let whole = hello(bytes[...])
    let end = try #require(capture.facts.clientHello?.end)
    for cut in places(capture, end) { #expect(hello(bytes[...], cuts: [cut]) == whole) }
    #expect(hello(bytes[...], cuts: Array(1..<bytes.count)) == whole, "byte by byte")
  }

  @Test(arguments: Capture.withHello)
  func `a hello in one-byte records is the same hello`(_ capture: Capture) throws {
    let first = try capture.hello()
    let bytes = first.message.flatMap { Wire.handshake([$0], version: 0x0301) }
    var reader = ClientHelloReader()
    guard case .hello(let hello) = reader.receive(bytes.span) else { throw Unexpected() }
    #expect(hello.message == first.message)
    #expect(hello.extensions == first.extensions)
    #expect(hello.recordCount == first.message.count)
    #expect(hello.end == bytes.count)
  }

  /// Where the event of a capture falls: the end of what it says.
  private func end(_ event: ServerFlightReader.Event) -> Int? {
    switch event {
    case .tls12Flight(let flight): flight.end
    case .tls12Resumed(let resumed): resumed.end
    case .tls13(let hello), .noCertificate(let hello), .helloRetryRequest(let hello): hello.end
    case .fatalAlert(_, let end): end
    case .incomplete, .refused: nil
    }
  }

  @Test(arguments: Capture.withServerHello)
  func `a server's flight fed byte by byte says the same, at its last byte`(_ capture: Capture) throws {
    let first = try capture.hello()
    let second = capture.facts.helloRetry == nil ? nil : try capture.secondHello(after: first)
    let whole = try capture.flight()
    var reader = ServerFlightReader(answering: first)
    for (index, byte) in capture.server.enumerated() {
      var event = reader.receive([byte].span)
      if case .helloRetryRequest(let retry) = event, let second {
        #expect(retry.end == index + 1)
        event = reader.secondHello(second)
      }
      if case .incomplete = event { continue }
      #expect(summary(event) == summary(whole))
      if let end = end(whole) { #expect(index + 1 == end) }
      break
    }
    #expect(summary(reader.receive([UInt8]().span)) == summary(whole))
  }

  @Test(arguments: Capture.withServerHello)
  func `a server's flight cut off or cut in two says nothing else`(_ capture: Capture) throws {
    let first = try capture.hello()
    let second = capture.facts.helloRetry == nil ? nil : try capture.secondHello(after: first)
    let bytes = capture.server[...]
    let whole = flight(bytes, first, second)
    let end = try end(capture.flight()) ?? bytes.count
    for cut in places(capture, end) {
      let prefix = flight(bytes[..<cut], first, second)
      #expect(prefix == "incomplete" || whole.hasPrefix("refused") || whole.hasPrefix("no certificate"))
      #expect(flight(bytes, first, second, cuts: [cut]) == whole)
    }
  }

  @Test(arguments: Capture.withServerHello.filter { $0.facts.version != "TLS1.3" && $0.facts.outcome == "full" })
  func `a flight in one-byte records, and in one record, is the same flight`(_ capture: Capture) throws {
    guard case .tls12Flight(let flight) = try capture.flight() else { return }
    let version = Int(flight.serverHello.version)
    let shapes = [
      flight.handshake.flatMap { Wire.handshake([$0], version: version) },
      stride(from: 0, to: flight.handshake.count, by: 16384).flatMap {
        Wire.handshake(Array(flight.handshake.dropFirst($0).prefix(16384)), version: version)
      },
    ]
    for bytes in shapes {
      var reader = ServerFlightReader(answering: try capture.hello())
      guard case .tls12Flight(let other) = reader.receive(bytes.span) else { throw Unexpected() }
      #expect(other.handshake == flight.handshake)
      #expect(other.certificates == flight.certificates)
      #expect(other.keyProof == flight.keyProof)
      #expect(other.end == bytes.count)
      #expect(Array(reader.held(0..<bytes.count)) == bytes)
    }
  }

  /// Some bytes changed, left out, doubled or put in.
  private func mutated(_ bytes: [UInt8], _ random: inout Random) -> [UInt8] {
    var bytes = bytes
    for _ in 0...random.next(below: 3) {
      let index = random.next(below: bytes.count)
      switch random.next(below: 5) {
      case 0: bytes[index] ^= UInt8(1 << random.next(below: 8))
      case 1: bytes[index] = UInt8(random.next(below: 256))
      case 2: bytes.remove(at: index)
      case 3: bytes.insert(UInt8(random.next(below: 256)), at: index)
      default:
        let end = min(bytes.count, index + random.next(below: 64))
        bytes.insert(contentsOf: bytes[index..<end], at: index)
      }
    }
    return bytes
  }

  @Test(arguments: Capture.withServerHello)
  func `mutated bytes crash nothing and say the same in any cut`(_ capture: Capture) throws {
    var random = Random(seed: UInt64(capture.server.count))
    let first = try capture.hello()
    let second = capture.facts.helloRetry == nil ? nil : try capture.secondHello(after: first)
    for _ in 0..<40 {
      let client = mutated(Array(capture.client.prefix(first.end)), &random)
      let place = random.next(below: client.count)
      #expect(hello(client[...], cuts: [place]) == hello(client[...]))
      let length = capture.facts.serverFlight?.end ?? capture.server.count
      let server = mutated(Array(capture.server.prefix(min(length, 4000))), &random)
      let cut = random.next(below: server.count)
      #expect(flight(server[...], first, second, cuts: [cut]) == flight(server[...], first, second))
    }
  }
}
