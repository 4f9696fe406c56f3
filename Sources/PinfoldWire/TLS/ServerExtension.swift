/// Which extensions a server's messages may hold, and the form of those nobody looks into further.
///
/// After RFC 8446 §4.2 with the column "TLS 1.3" of IANA's "TLS ExtensionType Values". A TLS 1.3 ServerHello and a
/// HelloRetryRequest are read elsewhere: they take the few extensions they know. A type that is not known here may stand
/// where the client asked for it, for the client knows it; a GREASE value may stand nowhere (RFC 8701 §3.1).
enum ServerExtension {
  /// A message of a server that holds extensions.
  enum Message {
    /// The ServerHello of TLS 1.2 and older.
    case serverHello12
    /// EncryptedExtensions.
    case encryptedExtensions
    /// An entry of the Certificate.
    case certificate
    /// CertificateRequest: here the server asks, so the client need not have asked before (RFC 8446 §4.3.2).
    case certificateRequest
  }

  /// Throws `malformed` where an extension was not asked for, may not stand in this message, or has not the form that
  /// its document gives it. `content` reads what `one` holds.
  static func check(
    _ one: TLSExtension, in message: Message, answering client: ClientHello, _ content: consuming ByteReader
  ) throws(WireError) {
    let start = one.content.lowerBound - 4
    guard message == .certificateRequest || client.offers(extension: one.type) else {
      throw .malformed("an extension that was not asked for", at: start)
    }
    guard mayStand(one.type, in: message) else {
      throw .malformed("an extension that may not stand in this message", at: start)
    }
    guard try checkForm(of: one.type, in: message, client, &content) else { return }
    try content.finish()
  }

  private static func mayStand(_ type: UInt16, in message: Message) -> Bool {
    // RFC 8701 §3.1 and §4.1: a server sends them where it asks, never where it answers.
    guard message == .certificateRequest || !ClientHello.isGrease(type) else { return false }
    return switch message {
    case .serverHello12: !beginsWithTLS13(type)
    case .encryptedExtensions: place(of: type).map { $0 == .encryptedExtensions } ?? true
    case .certificate: place(of: type).map { $0 == .certificate || $0 == .bothCertificateMessages } ?? true
    case .certificateRequest:
      place(of: type).map { $0 == .certificateRequest || $0 == .bothCertificateMessages } ?? true
    }
  }

  /// Types that are the client's alone, or TLS 1.3's.
  private static func beginsWithTLS13(_ type: UInt16) -> Bool {
    switch type {
    case ExtensionType.signatureAlgorithms, ExtensionType.padding, ExtensionType.compressCertificate,
      ExtensionType.delegatedCredential, ExtensionType.preSharedKey, ExtensionType.earlyData, ExtensionType.cookie,
      ExtensionType.pskKeyExchangeModes, ExtensionType.certificateAuthorities, ExtensionType.oidFilters,
      ExtensionType.postHandshakeAuth, ExtensionType.signatureAlgorithmsCert, ExtensionType.keyShare,
      ExtensionType.quicTransportParameters, ExtensionType.ticketRequest, ExtensionType.encryptedClientHello:
      true
    default: false
    }
  }

  private enum Place {
    case encryptedExtensions, certificate, certificateRequest, bothCertificateMessages, elsewhere
  }

  /// Where a type may stand in TLS 1.3's encrypted messages; nil for one that is not known here.
  private static func place(of type: UInt16) -> Place? {
    switch type {
    case ExtensionType.serverName, ExtensionType.maxFragmentLength, ExtensionType.supportedGroups,
      ExtensionType.useSRTP, ExtensionType.heartbeat, ExtensionType.alpn, ExtensionType.clientCertificateType,
      ExtensionType.serverCertificateType, ExtensionType.recordSizeLimit, ExtensionType.earlyData,
      ExtensionType.quicTransportParameters, ExtensionType.ticketRequest, ExtensionType.encryptedClientHello:
      .encryptedExtensions
    case ExtensionType.statusRequest, ExtensionType.signedCertificateTimestamp, ExtensionType.delegatedCredential,
      ExtensionType.transparencyInfo:
      .bothCertificateMessages
    case ExtensionType.dnssecChain: .certificate
    case ExtensionType.signatureAlgorithms, ExtensionType.compressCertificate, ExtensionType.certificateAuthorities,
      ExtensionType.oidFilters, ExtensionType.signatureAlgorithmsCert:
      .certificateRequest
    // Those of the hellos, and those that ended with TLS 1.2.
    case 2...4, 6...9, ExtensionType.ecPointFormats, 12, ExtensionType.statusRequestV2, ExtensionType.padding,
      ExtensionType.encryptThenMAC, ExtensionType.extendedMasterSecret, 24...26, 29...31, 33,
      ExtensionType.sessionTicket, 36...38, ExtensionType.preSharedKey, ExtensionType.supportedVersions,
      ExtensionType.cookie, ExtensionType.pskKeyExchangeModes, ExtensionType.postHandshakeAuth, ExtensionType.keyShare,
      53...54, ExtensionType.nextProtocolNegotiation, ExtensionType.renegotiationInfo:
      .elsewhere
    default: nil
    }
  }

  /// Reads the content as far as its document fixes it; whether it has to end there.
  @_lifetime(content: copy content)
  private static func checkForm(
    of type: UInt16, in message: Message, _ client: ClientHello, _ content: inout ByteReader
  ) throws(WireError) -> Bool {
    switch (type, message) {
    case (ExtensionType.statusRequest, .certificate):
      // RFC 8446 §4.4.2.1: a CertificateStatus, of type ocsp.
      guard try content.u8() == 1 else {
        throw .malformed("a certificate status of an unknown type", at: content.offset - 1)
      }
      _ = try content.vector(width: 3, atLeast: 1)
    case (ExtensionType.signedCertificateTimestamp, .certificate),
      (ExtensionType.signedCertificateTimestamp, .serverHello12):
      // RFC 6962 §3.3.
      try readVectors(&content, atLeast: 1)
    case (ExtensionType.serverName, _), (ExtensionType.earlyData, _), (ExtensionType.extendedMasterSecret, _),
      (ExtensionType.encryptThenMAC, _), (ExtensionType.sessionTicket, _), (ExtensionType.statusRequestV2, _),
      (ExtensionType.statusRequest, .serverHello12), (ExtensionType.signedCertificateTimestamp, .certificateRequest):
      break
    case (ExtensionType.supportedGroups, _), (ExtensionType.signatureAlgorithms, _),
      (ExtensionType.signatureAlgorithmsCert, _):
      _ = try content.u16List(width: 2)
    case (ExtensionType.compressCertificate, _): _ = try content.u16List(width: 1)
    case (ExtensionType.certificateAuthorities, _): try readVectors(&content, atLeast: 3)
    case (ExtensionType.encryptedClientHello, _):
      // RFC 9849 §5: configurations to try again with, each with its version.
      var list = try content.nested(width: 2, atLeast: 4)
      while !list.isAtEnd {
        _ = try list.u16()
        _ = try list.vector(width: 2)
      }
    default: return try checkChoice(type, client, &content)
    }
    return true
  }

  /// The same for extensions in which the server chooses a value.
  @_lifetime(content: copy content)
  private static func checkChoice(
    _ type: UInt16, _ client: ClientHello, _ content: inout ByteReader
  ) throws(WireError) -> Bool {
    let start = content.offset
    switch type {
    case ExtensionType.renegotiationInfo:
      // RFC 5746 §3.4.
      guard try content.vector(width: 1).isEmpty else {
        throw .malformed("renegotiation_info is not empty in a first handshake", at: start)
      }
    case ExtensionType.ecPointFormats:
      // RFC 8422 §5.1.2: uncompressed, which is 0, is always among them.
      var list = try content.nested(width: 1, atLeast: 1)
      guard try list.copy(list.remaining).contains(0) else {
        throw .malformed("ec_point_formats without the uncompressed one", at: start)
      }
    case ExtensionType.maxFragmentLength:
      // RFC 6066 §4: the client's own value.
      guard try [content.u8()] == client.extensions.content(type).map({ Array(client.message[$0]) }) else {
        throw .malformed("max_fragment_length is not the client's", at: start)
      }
    case ExtensionType.recordSizeLimit:
      // RFC 8449 §4 and §5.
      guard try content.u16() >= 64 else { throw .malformed("a record size limit below 64", at: start) }
    case ExtensionType.clientCertificateType:
      guard client.clientCertificateTypes.contains(try content.u8()) else {
        throw .malformed("the server chose a certificate type that was not offered", at: start)
      }
    case ExtensionType.heartbeat:
      guard try (1...2).contains(content.u8()) else { throw .malformed("an unknown heartbeat mode", at: start) }
    default: return false
    }
    return true
  }

  /// A list whose members have a length of two bytes each and are not empty.
  @_lifetime(content: copy content)
  private static func readVectors(_ content: inout ByteReader, atLeast minimum: Int) throws(WireError) {
    var list = try content.nested(width: 2, atLeast: minimum)
    while !list.isAtEnd { _ = try list.vector(width: 2, atLeast: 1) }
  }
}
