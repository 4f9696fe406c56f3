import PinfoldModel
import PinfoldTLS
import PinfoldWire

/// Promises: the cut of the bytes does not matter; a flight's ranges lie in it; an answer comes with the last byte.
///
/// An input is: a byte whose highest bit says that the flight is sealed already; the handshake secret behind its length
/// in a byte; the client's bytes and the server's clear ones, each behind a 16-bit count; the flight. A flight that is
/// not sealed is a row of chunks, each with 16 bits in front: two of its kind, fourteen of its length.
enum EncryptedFlightTarget {
  /// The highest bit of the first byte.
  static let isSealed: UInt8 = 0x80
  private static let alert = 1
  private static let applicationData = 2
  private static let changeCipherSpec = 3

  static func run(_ bytes: [UInt8]) throws(BrokenPromise) {
    var input = InputBytes(bytes)
    let kind = input.byte()
    var secret = input.take(Int(input.byte()))
    let client = input.counted()
    let clear = input.counted()
    guard let hellos = hellos(client, clear), let suite = hellos.suite, secret.count == suite.hashCount else { return }
    let shared = SecretBytes(taking: &secret)
    if kind & isSealed != 0 { return try open(Array(input.rest), hellos, shared) }
    guard let protection = try? RecordProtection(suite, secret: shared, .sealing) else { return }
    var reader = EncryptedFlightReader(answering: hellos.client, with: hellos.server)
    var sealed: [UInt8] = []
    while !input.rest.isEmpty {
      let head = input.number()
      let chunk = input.take(head & 0x3fff)
      switch head >> 14 {
      case alert: sealed += protection.seal(type: 21, content: chunk) ?? []
      case applicationData: sealed += protection.seal(type: 23, content: chunk) ?? []
      case changeCipherSpec: sealed += [20, 3, 3, 0, 1, 1]
      default:
        sealed += protection.seal(type: 22, content: chunk) ?? []
        if case .flight(let flight) = reader.receive(chunk.span) { try check(flight) }
      }
    }
    try open(sealed, hellos, shared)
  }

  /// The clear messages, if they lead to TLS 1.3 and end where the flight begins.
  static func hellos(_ client: [UInt8], _ clear: [UInt8]) -> Hellos13? {
    guard let sent = ServerFlightTarget.Hellos(client) else { return nil }
    var reading = ServerFlightTarget.Reading(sent)
    reading.receive(clear)
    guard case .tls13(let server) = reading.event, server.end == clear.count else { return nil }
    return Hellos13(first: sent.first, retry: reading.retry, server: server)
  }

  private static func open(_ bytes: [UInt8], _ hellos: Hellos13, _ secret: SecretBytes) throws(BrokenPromise) {
    guard let whole = try? FlightOpener(secret: secret, hellos: hellos, now: ServerFlightTarget.now) else { return }
    let event = whole.receive(bytes[...])
    for size in [1, 400] {
      guard let cut = try? FlightOpener(secret: secret, hellos: hellos, now: ServerFlightTarget.now) else { return }
      var answer = FlightOpener.Event.incomplete
      var received = hellos.server.end
      for piece in bytes.pieces(of: size) {
        answer = cut.receive(piece[...])
        received += piece.count
        guard size == 1, case .flight(let flight) = answer else { continue }
        try BrokenPromise.unless(flight.end == received, "an answer about \(flight.end) bytes after \(received)")
        break
      }
      try BrokenPromise.unless(
        summary(answer) == summary(event), "in pieces of \(size): \(summary(answer)), at once: \(summary(event))")
    }
    if case .flight(let flight) = event { try check(flight.messages) }
  }

  private static func check(_ flight: EncryptedFlight) throws(BrokenPromise) {
    let count = flight.handshake.count
    var position = 0
    for message in flight.messages {
      try BrokenPromise.unless(message.range.lowerBound == position, "messages leave a gap")
      position = message.range.upperBound
    }
    try BrokenPromise.unless(position == count, "bytes behind the last message")
    var ranges = [flight.signature, flight.alpnRange, flight.verifyData].compactMap { $0 }
    switch flight.certificate {
    case .none: break
    case .entries(let entries): ranges += entries.map(\.certificate)
    case .rawPublicKey(let range), .compressed(_, _, let range): ranges.append(range)
    }
    for range in ranges {
      try BrokenPromise.unless(!range.isEmpty && range.upperBound <= count, "a range outside of the flight")
    }
    try BrokenPromise.unless((flight.certificate == .none) == (flight.signature == nil), "a certificate without proof")
  }

  private static func summary(_ event: FlightOpener.Event) -> String {
    switch event {
    case .incomplete: "incomplete"
    case .flight(let flight):
      "flight \(flight.end) \(flight.leafKey?.hex ?? "-") \(flight.messages.handshake.hashValue)"
    case .refused(let refusal): "refused \(refusal.reason) \(refusal.offset) \(refusal.detail)"
    }
  }
}
