import PinfoldModel

/// What was read of a TLS 1.0–1.2 flight so far.
struct FlightParts: Sendable {
  var certificates: [Range<Int>] = []
  var rawPublicKey: Range<Int>?
  var certificateMessageLength = 0
  var status: Range<Int>?
  var keyExchange: ServerKeyExchange?
  var requestsCertificate = false
  var messageTypes: [UInt8] = []
}

extension ServerFlightReader {
  /// Whether a message of this type may come next. The order is RFC 5246 §7.3's, with nothing left open.
  func expects(_ type: UInt8) -> Bool {
    switch phase {
    case .hello: return type == HandshakeType.serverHello
    case .resumed: return type == HandshakeType.newSessionTicket && ticket == nil
    case .flight: return flightExpects(type)
    case .retried, .done: return false
    }
  }

  private func flightExpects(_ type: UInt8) -> Bool {
    guard let hello, let last = flight.messageTypes.last else { return false }
    let mayResume = hello.sessionID == client.sessionID && client.offersSession
    let wantsExchange = if case .signed = hello.cipherSuite.kind { flight.keyExchange == nil } else { false }
    switch type {
    case HandshakeType.newSessionTicket:
      return last == HandshakeType.serverHello && mayResume && hello.promisesTicket
    case HandshakeType.certificate: return last == HandshakeType.serverHello
    case HandshakeType.certificateStatus:
      return last == HandshakeType.certificate && flight.rawPublicKey == nil && promisesStatus
    case HandshakeType.serverKeyExchange: return last != HandshakeType.serverHello && wantsExchange
    case HandshakeType.certificateRequest:
      return last != HandshakeType.serverHello && !wantsExchange && !flight.requestsCertificate
    case HandshakeType.serverHelloDone: return last != HandshakeType.serverHello && !wantsExchange
    default: return false
    }
  }

  private var promisesStatus: Bool {
    guard let hello else { return false }
    return hello.extensions.has(ExtensionType.statusRequest) || hello.extensions.has(ExtensionType.statusRequestV2)
  }

  /// Takes a whole message, a range of the stream's `handshake`.
  mutating func take(_ range: Range<Int>) throws(WireError) -> Event? {
    do throws(WireError) {
      let type = stream.handshake[range.lowerBound]
      if type == HandshakeType.serverHello { return try takeHello(range) }
      flight.messageTypes.append(type)
      let bytes = stream.handshake
      let body = (range.lowerBound + 4)..<range.upperBound
      var reader = ByteReader(bytes.span.extracting(body), at: body.lowerBound)
      switch type {
      case HandshakeType.certificate: try takeCertificate(&reader)
      case HandshakeType.certificateStatus: try takeStatus(&reader)
      case HandshakeType.serverKeyExchange: try takeKeyExchange(&reader, bytes)
      case HandshakeType.certificateRequest: try takeRequest(&reader)
      case HandshakeType.newSessionTicket:
        _ = try reader.u32()
        ticket = Array(bytes[try reader.vector(width: 2)])
        try reader.finish()
        phase = .resumed
      default:
        try reader.finish()
        return .tls12Flight(try whole(at: range.upperBound))
      }
      return nil
    } catch {
      throw stream.located(error)
    }
  }

  private mutating func takeHello(_ range: Range<Int>) throws(WireError) -> Event? {
    var hello: ServerHello
    do throws(WireError) {
      hello = try ServerHello(message: Array(stream.handshake[range]), answering: client, after: retry)
    } catch {
      throw error.moved(by: range.lowerBound)
    }
    hello.recordVersion = helloVersion ?? 0
    hello.end = stream.consumedEnd
    helloVersion = nil
    if hello.version == TLSVersion.tls13 {
      guard !stream.isInsideMessage else {
        // RFC 8446 §5.1: no message may share a record across a change of keys.
        throw .malformed("bytes lie behind the ServerHello in its record", at: range.upperBound)
      }
      if hello.isRetryRequest {
        retry = hello
        return .helloRetryRequest(hello)
      }
      guard case .tls13 = hello.cipherSuite.kind else {
        throw .refused(.keyNotProven, "a TLS 1.3 suite that cannot be followed", at: range.lowerBound)
      }
      self.hello = hello
      return .tls13(hello)
    }
    self.hello = hello
    flight.messageTypes = [HandshakeType.serverHello]
    phase = .flight
    switch hello.cipherSuite.kind {
    case .unauthenticated, .preSharedKey: return .noCertificate(hello)
    case .signed(_, .rsa), .signed(_, .ecdsa), .keyTransport: return nil
    case .signed(_, .dss): throw .refused(.keyNotProven, "a DSS suite", at: range.lowerBound)
    case .rsaPSK: throw .refused(.keyNotProven, "an RSA_PSK suite", at: range.lowerBound)
    case .export: throw .refused(.keyNotProven, "an export suite", at: range.lowerBound)
    case .srp: throw .refused(.keyNotProven, "an SRP suite", at: range.lowerBound)
    case .staticKeyAgreement: throw .refused(.keyNotProven, "a static key agreement suite", at: range.lowerBound)
    case .tls13, .unknown: throw .refused(.keyNotProven, "an unknown cipher suite", at: range.lowerBound)
    }
  }

  @_lifetime(reader: copy reader)
  private mutating func takeCertificate(_ reader: inout ByteReader) throws(WireError) {
    flight.certificateMessageLength = reader.remaining + 4
    if hello?.usesRawPublicKey == true {
      flight.rawPublicKey = try CertificateMessage.rawPublicKey(&reader)
    } else {
      flight.certificates = try CertificateMessage.list(&reader)
    }
  }

  /// RFC 6066 §8 (type 1) and RFC 6961 §2.2 (type 2). The answer inside is the client's to judge.
  @_lifetime(reader: copy reader)
  private mutating func takeStatus(_ reader: inout ByteReader) throws(WireError) {
    let start = reader.offset
    let type = try reader.u8()
    guard type == 1 || (type == 2 && hello?.extensions.has(ExtensionType.statusRequestV2) == true) else {
      throw .malformed("a certificate status of an unknown type", at: start)
    }
    flight.status = start..<(try reader.vector(width: 3, atLeast: 1).upperBound)
    try reader.finish()
  }

  @_lifetime(reader: copy reader)
  private mutating func takeKeyExchange(_ reader: inout ByteReader, _ bytes: [UInt8]) throws(WireError) {
    guard let hello, case .signed(let agreement, _) = hello.cipherSuite.kind else { return }
    flight.keyExchange = try ServerKeyExchange(
      &reader, agreement, in: bytes, version: hello.version, answering: client)
  }

  /// RFC 5246 §7.4.4: read for its shape alone; mutual TLS is the client's business.
  @_lifetime(reader: copy reader)
  private mutating func takeRequest(_ reader: inout ByteReader) throws(WireError) {
    _ = try reader.vector(width: 1, atLeast: 1)
    if hello?.version == TLSVersion.tls12 { _ = try reader.u16List(width: 2) }
    var names = try reader.nested(width: 2)
    while !names.isAtEnd { _ = try names.vector(width: 2, atLeast: 1) }
    try reader.finish()
    flight.requestsCertificate = true
  }

  private func whole(at end: Int) throws(WireError) -> ServerFlight {
    guard !stream.isInsideMessage else {
      throw .malformed("bytes lie behind the ServerHelloDone in its record", at: end)
    }
    guard let hello else { throw .malformed("a flight without a ServerHello", at: 0) }
    let proof: ServerFlight.KeyProof
    switch (hello.cipherSuite.kind, flight.keyExchange) {
    case (.signed(_, let key), .some(let exchange)): proof = .signature(exchange, key)
    case (.keyTransport, nil): proof = .keyTransport
    default: throw .malformed("the flight does not fit its cipher suite", at: 0)
    }
    return ServerFlight(
      handshake: stream.handshake, serverHello: hello, certificates: flight.certificates,
      rawPublicKey: flight.rawPublicKey, keyProof: proof, certificateStatus: flight.status,
      requestsClientCertificate: flight.requestsCertificate,
      certificateMessageLength: flight.certificateMessageLength, messageTypes: flight.messageTypes,
      end: stream.consumedEnd)
  }

  /// ChangeCipherSpec: between a HelloRetryRequest and the ServerHello once (RFC 8446 appendix D.4), and in a
  /// resumption, where the session id has to be the client's own (RFC 5246 §7.4.1.3, RFC 5077 §3.4).
  mutating func takeChangeCipherSpec(_ record: TLSRecord, at start: Int) throws(WireError) {
    guard record.payload.count == 1, stream.raw[record.payload.lowerBound] == 1 else {
      throw .malformed("a ChangeCipherSpec that is not the byte 1", at: start + 5)
    }
    switch phase {
    case .hello where retry != nil && !hasCompatibilityRecord:
      hasCompatibilityRecord = true
    case .flight, .resumed:
      guard let hello, hello.sessionID == client.sessionID, client.offersSession, !hasChangedCipher,
        phase == .resumed || (flight.messageTypes.count == 1 && !hello.promisesTicket)
      else { throw .malformed("a ChangeCipherSpec before the flight is whole", at: start) }
      hasChangedCipher = true
    default: throw .malformed("a ChangeCipherSpec where none may be", at: start)
    }
  }

  /// The encrypted Finished has come: the abbreviated handshake's first half is whole.
  func resumed() throws(WireError) -> ResumedHandshake {
    guard let hello else { throw .malformed("a resumption without a ServerHello", at: 0) }
    return ResumedHandshake(serverHello: hello, newTicket: ticket, end: stream.consumedEnd)
  }
}

extension WireError {
  /// The same error with its offset moved.
  func moved(by distance: Int) -> WireError {
    switch self {
    case .incomplete: self
    case .malformed(let text, let offset): .malformed(text, at: offset + distance)
    case .refused(let reason, let text, let offset): .refused(reason, text, at: offset + distance)
    }
  }
}
