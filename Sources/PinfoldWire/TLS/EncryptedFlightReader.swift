import PinfoldModel

/// Puts a decrypted TLS 1.3 flight together (RFC 8446 §4.3, §4.4). It decrypts nothing itself.
///
///     extensions ──▶ request | certificate | finished ──▶ … ──▶ done
///
/// Hand in the content of one decrypted handshake record per call: a record that goes on behind the Finished is refused.
/// Offsets count from the first decrypted byte. An answer, once given, stays.
package struct EncryptedFlightReader: Sendable {
  /// What the bytes so far amount to.
  package enum Event: Sendable {
    /// More records are wanted.
    case incomplete
    /// The flight is whole.
    case flight(EncryptedFlight)
    /// It cannot be let through.
    case refused(HandshakeRefusal)
  }

  private let client: ClientHello
  private let hello: ServerHello
  private var handshake: [UInt8] = []
  private var next = 0
  private var messages: [EncryptedFlight.Message] = []
  private var extensions: [TLSExtension] = []
  private var alpnRange: Range<Int>?
  private var usesRawPublicKey = false
  private var certificate = EncryptedFlight.Certificate.none
  private var scheme: UInt16?
  private var signature: Range<Int>?
  private var answer = Event.incomplete

  /// Reads the flight behind `hello`, which answered `client` (the second hello after a retry).
  package init(answering client: ClientHello, with hello: ServerHello) {
    self.client = client
    self.hello = hello
  }

  /// Takes the content of one decrypted handshake record.
  package mutating func receive(_ bytes: Span<UInt8>) -> Event {
    guard case .incomplete = answer else { return answer }
    guard bytes.count > 0, bytes.count <= WireLimits.heldFlight - handshake.count else {
      let text: StaticString = bytes.count == 0 ? "an empty handshake record" : "more bytes than may be held"
      answer = .refused(HandshakeRefusal(.malformedHandshake, at: handshake.count, text))
      return answer
    }
    unsafe bytes.withUnsafeBufferPointer { unsafe handshake.append(contentsOf: $0) }
    do throws(WireError) {
      while let range = try message() {
        if let flight = try take(range) {
          answer = .flight(flight)
          return answer
        }
      }
    } catch {
      answer = .refused(HandshakeRefusal(error))
    }
    return answer
  }

  /// Whether a message has begun and is not whole: no other record may come then.
  package var isInsideMessage: Bool { next < handshake.count }

  private mutating func message() throws(WireError) -> Range<Int>? {
    guard handshake.count - next >= 4 else { return nil }
    let length = Int(handshake[next + 1]) << 16 | Int(handshake[next + 2]) << 8 | Int(handshake[next + 3])
    guard length <= WireLimits.serverMessage else { throw .malformed("a handshake message is too long", at: next + 1) }
    guard expects(handshake[next]) else { throw .malformed("a handshake message out of order", at: next) }
    guard handshake.count - next - 4 >= length else { return nil }
    defer { next += 4 + length }
    return next..<(next + 4 + length)
  }

  /// The order of RFC 8446 §2: with a pre-shared key neither a request nor a certificate follows.
  private func expects(_ type: UInt8) -> Bool {
    guard let last = messages.last?.type else { return type == HandshakeType.encryptedExtensions }
    let wantsCertificate =
      last == HandshakeType.certificateRequest
      || (last == HandshakeType.encryptedExtensions && hello.selectedPSK == nil)
    switch type {
    case HandshakeType.certificateRequest:
      return last == HandshakeType.encryptedExtensions && hello.selectedPSK == nil
    case HandshakeType.certificate: return wantsCertificate
    case HandshakeType.compressedCertificate: return wantsCertificate && !client.certificateCompression.isEmpty
    case HandshakeType.certificateVerify:
      return last == HandshakeType.certificate || last == HandshakeType.compressedCertificate
    case HandshakeType.finished:
      return last == HandshakeType.certificateVerify
        || (last == HandshakeType.encryptedExtensions && hello.selectedPSK != nil)
    default: return false
    }
  }

  private mutating func take(_ range: Range<Int>) throws(WireError) -> EncryptedFlight? {
    let bytes = handshake
    let body = (range.lowerBound + 4)..<range.upperBound
    var reader = ByteReader(bytes.span.extracting(body), at: body.lowerBound)
    messages.append(EncryptedFlight.Message(type: bytes[range.lowerBound], range: range))
    switch bytes[range.lowerBound] {
    case HandshakeType.encryptedExtensions: try takeExtensions(&reader, in: bytes)
    case HandshakeType.certificateRequest: try takeRequest(&reader)
    case HandshakeType.certificate:
      certificate = try EncryptedFlight.certificate(&reader, answering: client, rawPublicKey: usesRawPublicKey)
    case HandshakeType.compressedCertificate: try takeCompressed(&reader)
    case HandshakeType.certificateVerify: try takeVerify(&reader)
    default: return try whole(body)
    }
    return nil
  }

  @_lifetime(reader: copy reader)
  private mutating func takeExtensions(_ reader: inout ByteReader, in bytes: [UInt8]) throws(WireError) {
    extensions = try TLSExtension.list(&reader)
    try reader.finish()
    for one in extensions {
      let start = one.content.lowerBound
      try ServerExtension.check(one, in: .encryptedExtensions, answering: client, reader.reader(over: one.content))
      var content = reader.reader(over: one.content)
      switch one.type {
      case ExtensionType.earlyData:
        // RFC 8446 §4.2.10: only with the first pre-shared key.
        guard hello.selectedPSK == 0 else { throw .malformed("0-RTT data without its key", at: start - 4) }
      case ExtensionType.alpn: alpnRange = try ServerHello.chosenProtocol(&content, in: bytes, client)
      case ExtensionType.serverCertificateType:
        usesRawPublicKey = try ServerHello.rawPublicKey(try content.u8(), client, at: start)
      default: continue
      }
      try content.finish()
    }
  }

  /// RFC 8446 §4.3.2: an empty context, and signature_algorithms among the extensions.
  @_lifetime(reader: copy reader)
  private mutating func takeRequest(_ reader: inout ByteReader) throws(WireError) {
    let start = reader.offset
    guard try reader.u8() == 0 else { throw .malformed("the CertificateRequest has a context", at: start) }
    let asked = try TLSExtension.list(&reader)
    try reader.finish()
    for one in asked {
      try ServerExtension.check(one, in: .certificateRequest, answering: client, reader.reader(over: one.content))
    }
    guard asked.has(ExtensionType.signatureAlgorithms) else {
      throw .malformed("the CertificateRequest names no signature algorithms", at: start)
    }
  }

  /// RFC 8879 §4.
  @_lifetime(reader: copy reader)
  private mutating func takeCompressed(_ reader: inout ByteReader) throws(WireError) {
    let start = reader.offset
    let algorithm = try reader.u16()
    guard client.certificateCompression.contains(algorithm) else {
      throw .malformed("the certificate is compressed in a way that was not offered", at: start)
    }
    let length = try reader.u24()
    guard length > 0, length <= WireLimits.uncompressedCertificate else {
      throw .malformed("the compressed certificate would open too far", at: start + 2)
    }
    certificate = .compressed(algorithm: algorithm, length: length, content: try reader.vector(width: 3, atLeast: 1))
    try reader.finish()
  }

  /// RFC 8446 §4.4.3. PKCS #1, DSA and SHA-1 schemes may not sign a handshake of TLS 1.3 even where they are offered.
  @_lifetime(reader: copy reader)
  private mutating func takeVerify(_ reader: inout ByteReader) throws(WireError) {
    let start = reader.offset
    let scheme = try reader.u16()
    let isOffered =
      client.signatureAlgorithms.contains(scheme) || client.delegatedCredentialAlgorithms.contains(scheme)
    // In the pairs of TLS 1.2 the low byte names the key, 1 RSA with PKCS #1, 2 DSA;
    // the high byte 1–3 is MD5, SHA-1, SHA-224.
    let isOld = scheme >> 8 <= 6 && (scheme & 0xff <= 2 || scheme >> 8 <= 3)
    guard isOffered, !isOld else {
      throw .malformed("the CertificateVerify has a signature scheme that was not offered", at: start)
    }
    self.scheme = scheme
    signature = try reader.vector(width: 2, atLeast: 1)
    try reader.finish()
  }

  private func whole(_ body: Range<Int>) throws(WireError) -> EncryptedFlight {
    guard case .tls13(let hash) = hello.cipherSuite.kind, body.count == hash.count else {
      throw .malformed("the Finished has not the length of the suite's hash", at: body.lowerBound - 3)
    }
    guard body.upperBound == handshake.count else {
      throw .malformed("bytes lie behind the Finished in its record", at: body.upperBound)
    }
    return EncryptedFlight(
      handshake: handshake, messages: messages, extensions: extensions, alpnRange: alpnRange,
      acceptsEarlyData: extensions.has(ExtensionType.earlyData),
      requestsClientCertificate: messages.contains { $0.type == HandshakeType.certificateRequest },
      usesRawPublicKey: usesRawPublicKey, certificate: certificate, scheme: scheme, signature: signature,
      verifyData: body)
  }
}
