import PinfoldModel
import PinfoldTLS
import PinfoldWire

/// Promises: the cut of the bytes does not matter; an answer comes with the last byte it is about, never before; what is
/// read lies in what came; no leaf, however odd, harms OpenSSL.
///
/// An input is the client's bytes behind their 16-bit count, then the server's.
enum ServerFlightTarget {
  static let verifier = (try? TrustStore([])).map { ChainVerifier(trusting: $0, capacity: 16) }
  /// Within the validity of everything captured: 2026-11-21.
  static let now = Timestamp(seconds: 1_795_219_200)

  static func run(_ bytes: [UInt8]) throws(BrokenPromise) {
    var input = InputBytes(bytes)
    let client = input.counted()
    guard let hellos = Hellos(client) else { return }
    let server = Array(input.rest)
    var whole = Reading(hellos)
    whole.receive(server)
    let wanted = summary(whole.event)
    for size in [1, 6, 500] {
      var cut = Reading(hellos)
      var received = 0
      for piece in server.pieces(of: size) {
        cut.receive(piece)
        received += piece.count
        guard size == 1, let end = end(of: cut.event) else { continue }
        try BrokenPromise.unless(end == received, "an answer about \(end) bytes after \(received)")
        break
      }
      try BrokenPromise.unless(
        summary(cut.event) == wanted, "pieces of \(size): \(summary(cut.event)), whole: \(wanted)")
    }
    if let end = end(of: whole.event) {
      try BrokenPromise.unless(
        whole.reader.held(0..<end).elementsEqual(server[..<end]), "held bytes are not the server's")
    }
    if case .tls12Flight(let flight) = whole.event { try judge(flight, hellos) }
  }

  /// The client's hellos: a second one where it follows the first.
  struct Hellos {
    let first: ClientHello
    let second: ClientHello?

    init?(_ bytes: [UInt8]) {
      var reader = ClientHelloReader()
      guard case .hello(let first) = reader.receive(bytes.span) else { return nil }
      self.first = first
      var next = ClientHelloReader(after: first)
      if case .hello(let second) = next.receive(Array(reader.surplus).span) {
        self.second = second
      } else {
        second = nil
      }
    }
  }

  /// A server's bytes on their way, a retry answered at once.
  struct Reading {
    private let hellos: Hellos
    var reader: ServerFlightReader
    var event = ServerFlightReader.Event.incomplete
    /// The request, and the hello that answered it, once that happened.
    var retry: (request: ServerHello, second: ClientHello)?
    /// Whether the second hello was held against the request: once, however many pieces follow.
    private var isCompared = false

    init(_ hellos: Hellos) {
      self.hellos = hellos
      reader = ServerFlightReader(answering: hellos.first)
    }

    mutating func receive(_ bytes: [UInt8]) {
      event = reader.receive(bytes.span)
      guard case .helloRetryRequest(let request) = event, !isCompared, let second = hellos.second else { return }
      isCompared = true
      guard hellos.first.refusal(ofSecond: second, after: request) == nil else { return }
      retry = (request, second)
      event = reader.secondHello(second)
    }
  }

  private static func judge(_ flight: ServerFlight, _ hellos: Hellos) throws(BrokenPromise) {
    let ranges = flight.certificates + [flight.rawPublicKey, flight.certificateStatus].compactMap { $0 }
    for range in ranges {
      try BrokenPromise.unless(
        !range.isEmpty && range.upperBound <= flight.handshake.count, "a range outside of the handshake")
    }
    try BrokenPromise.unless(
      flight.certificates.isEmpty == (flight.rawPublicKey != nil), "neither certificate nor raw key, or both")
    try BrokenPromise.unless(flight.messageTypes.count { $0 == 11 } == 1, "not one Certificate")
    guard let host = HostName("api.pinfold.test"),
      let judgement = try? verifier?.judge(flight, host: host, now: now)
    else { return }
    let client = hellos.second ?? hellos.first
    let proof = KeyProof.of(flight, answering: client, by: judgement.leafKey)
    if case .signature = flight.keyProof {
      try BrokenPromise.unless(proof != .keyTransport, "a signed suite counts as key transport")
    }
  }

  private static func end(of event: ServerFlightReader.Event) -> Int? {
    switch event {
    case .tls12Flight(let flight): flight.end
    case .tls12Resumed(let resumed): resumed.end
    case .tls13(let hello), .noCertificate(let hello): hello.end
    case .fatalAlert(_, let end): end
    case .incomplete, .refused, .helloRetryRequest: nil
    }
  }

  private static func summary(_ event: ServerFlightReader.Event) -> String {
    switch event {
    case .incomplete: "incomplete"
    case .tls12Flight(let flight):
      "flight \(flight.end) \(flight.handshake.hashValue) \(flight.certificates.count) \(flight.messageTypes)"
    case .tls12Resumed(let resumed): "resumed \(resumed.end) \(resumed.newTicket.hashValue)"
    case .tls13(let hello): "TLS 1.3 \(hello.end) \(hello.message.hashValue)"
    case .helloRetryRequest(let hello): "retry \(hello.end) \(hello.message.hashValue)"
    case .fatalAlert(let code, let end): "alert \(code) \(end)"
    case .noCertificate(let hello): "no certificate \(hello.end)"
    case .refused(let refusal): "refused \(refusal.reason) \(refusal.offset) \(refusal.detail)"
    }
  }
}
