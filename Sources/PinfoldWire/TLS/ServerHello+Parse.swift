import PinfoldModel

extension ServerHello {
  /// Reads a whole ServerHello message, header included, and holds it against the client's hello.
  ///
  /// - Parameters:
  ///   - message: the message; offsets of errors count from its first byte.
  ///   - client: the hello it answers; after a retry, the second one.
  ///   - retry: the HelloRetryRequest before it, if there was one.
  /// - Throws: `malformed` for a choice the client did not offer, an unsolicited or duplicate extension, trailing
  ///   bytes, a downgrade sentinel where a higher version was offered; `not_tls` for SSL 3.0.
  init(message: [UInt8], answering client: ClientHello, after retry: ServerHello?) throws(WireError) {
    self.message = message
    var reader = ByteReader(message.span)
    _ = try reader.skip(4)
    let legacyVersion = try reader.u16()
    guard legacyVersion != TLSVersion.ssl30 else { throw .refused(.notTLS, "an SSL 3.0 ServerHello", at: 4) }
    guard (TLSVersion.tls10...TLSVersion.tls12).contains(legacyVersion) else {
      throw .malformed("the ServerHello has an unknown version", at: 4)
    }
    _ = try reader.skip(32)
    sessionIDRange = try reader.vector(width: 1)
    guard sessionIDRange.count <= 32 else {
      throw .malformed("the session id is longer than 32 bytes", at: sessionIDRange.lowerBound - 1)
    }
    cipherSuite = CipherSuite(try reader.u16())
    guard client.cipherSuites.contains(cipherSuite.id) else {
      throw .malformed("the server chose a cipher suite that was not offered", at: sessionIDRange.upperBound)
    }
    guard try reader.u8() == 0 else { throw .malformed("the server chose compression", at: reader.offset - 1) }
    if !reader.isAtEnd {
      extensions = try TLSExtension.list(&reader)
      try reader.finish()
    }
    version = try Self.version(legacyVersion, extensions, message)
    guard client.offers(version: version) else {
      throw .malformed("the server chose a version that was not offered", at: 4)
    }
    guard (version == TLSVersion.tls13) == cipherSuite.isOfTLS13,
      version >= TLSVersion.tls12 || !cipherSuite.needsTLS12
    else {
      throw .malformed("the cipher suite is not one of this version", at: sessionIDRange.upperBound)
    }
    if version == TLSVersion.tls13 {
      try readTLS13(message, client, retry)
    } else {
      guard retry == nil, !isRetryRequest else {
        throw .malformed("an older version together with a HelloRetryRequest", at: 4)
      }
      try readTLS12(message, client)
    }
  }

  /// RFC 8446 §4.2.1: supported_versions in a ServerHello says TLS 1.3 and nothing else.
  private static func version(
    _ legacyVersion: UInt16, _ extensions: [TLSExtension], _ message: [UInt8]
  ) throws(WireError) -> UInt16 {
    guard let content = extensions.content(ExtensionType.supportedVersions) else { return legacyVersion }
    var reader = ByteReader(message.span.extracting(content), at: content.lowerBound)
    guard legacyVersion == TLSVersion.tls12, try reader.u16() == TLSVersion.tls13 else {
      throw .malformed("supported_versions says something else than TLS 1.3", at: content.lowerBound)
    }
    try reader.finish()
    return TLSVersion.tls13
  }

  /// RFC 8446 §4.1.3 and §4.1.4.
  private mutating func readTLS13(
    _ message: [UInt8], _ client: ClientHello, _ retry: ServerHello?
  ) throws(WireError) {
    guard message[sessionIDRange] == client.sessionID else {
      throw .malformed("the session id is not the client's", at: sessionIDRange.lowerBound - 1)
    }
    let isRetry = isRetryRequest
    guard !(isRetry && retry != nil) else { throw .malformed("a second HelloRetryRequest", at: 6) }
    if let retry, retry.cipherSuite != cipherSuite {
      throw .malformed("the cipher suite is not the one of the HelloRetryRequest", at: sessionIDRange.upperBound)
    }
    for one in extensions {
      var reader = ByteReader(message.span.extracting(one.content), at: one.content.lowerBound)
      switch one.type {
      case ExtensionType.supportedVersions: continue
      case ExtensionType.keyShare where client.offers(extension: one.type):
        keyShareGroup = try reader.u16()
        if !isRetry { keyShareRange = try reader.vector(width: 2, atLeast: 1) }
      case ExtensionType.preSharedKey where !isRetry && client.offersPSK:
        selectedPSK = Int(try reader.u16())
      case ExtensionType.cookie where isRetry:
        cookieRange = try reader.vector(width: 2, atLeast: 1)
      case ExtensionType.encryptedClientHello where isRetry && client.hasEncryptedClientHello:
        _ = try reader.skip(8)
      default:
        throw .malformed("an extension that may not stand in this message", at: one.content.lowerBound - 4)
      }
      try reader.finish()
    }
    if isRetry { try checkRetry(client) } else { try checkKeys(client, retry) }
  }

  /// A HelloRetryRequest has to ask for a change (RFC 8446 §4.1.4).
  private func checkRetry(_ client: ClientHello) throws(WireError) {
    if let group = keyShareGroup {
      guard client.supportedGroups.contains(group), !client.keyShares.contains(where: { $0.group == group }) else {
        throw .malformed("the HelloRetryRequest asks for a group it may not ask for", at: 0)
      }
    } else if cookieRange == nil {
      throw .malformed("the HelloRetryRequest asks for nothing", at: 0)
    }
  }

  private func checkKeys(_ client: ClientHello, _ retry: ServerHello?) throws(WireError) {
    if let selectedPSK {
      guard selectedPSK < client.pskIdentities.count else {
        throw .malformed("the server took a pre-shared key that was not offered", at: 0)
      }
      guard client.pskModes.contains(keyShareGroup == nil ? 0 : 1) else {
        throw .malformed("the server took a pre-shared key in a way that was not offered", at: 0)
      }
    }
    guard let group = keyShareGroup else {
      guard selectedPSK != nil else { throw .malformed("neither a key share nor a pre-shared key", at: 0) }
      return
    }
    guard client.keyShares.contains(where: { $0.group == group }) else {
      throw .malformed("the server's key share is of a group that was not offered", at: 0)
    }
    if let asked = retry?.keyShareGroup, asked != group {
      throw .malformed("the server's key share is not of the group it asked for", at: 0)
    }
  }

  private mutating func readTLS12(_ message: [UInt8], _ client: ClientHello) throws(WireError) {
    // RFC 8446 §4.1.3: a higher version was offered and the server could have taken it, so somebody took it away.
    if hasDowngradeSentinel {
      let fellBelow12 = message[37] == 0 && version < TLSVersion.tls12 && client.offers(version: TLSVersion.tls12)
      guard !client.offersTLS13, !fellBelow12 else {
        throw .malformed("the server's random says that the version was forced down", at: 30)
      }
    }
    for one in extensions {
      let start = one.content.lowerBound
      let content = message.span.extracting(one.content)
      try ServerExtension.check(one, in: .serverHello12, answering: client, ByteReader(content, at: start))
      var reader = ByteReader(content, at: start)
      switch one.type {
      case ExtensionType.alpn: alpnRange = try Self.chosenProtocol(&reader, in: message, client)
      case ExtensionType.serverCertificateType:
        usesRawPublicKey = try Self.rawPublicKey(try reader.u8(), client, at: start)
      default: continue
      }
      try reader.finish()
    }
  }

  /// RFC 7301 §3.1: exactly one protocol, and one that was offered.
  @_lifetime(reader: copy reader)
  static func chosenProtocol(
    _ reader: inout ByteReader, in message: [UInt8], _ client: ClientHello
  ) throws(WireError) -> Range<Int> {
    var list = try reader.nested(width: 2, atLeast: 2)
    let name = try list.vector(width: 1, atLeast: 1)
    try list.finish()
    guard client.alpn.contains(message[name]) else {
      throw .malformed("the server chose a protocol that was not offered", at: name.lowerBound)
    }
    return name
  }

  /// RFC 7250 §4.2: whether the certificate type chosen is a raw public key.
  static func rawPublicKey(_ type: UInt8, _ client: ClientHello, at offset: Int) throws(WireError) -> Bool {
    guard client.serverCertificateTypes.contains(type), type == 0 || type == 2 else {
      throw .malformed("the server chose a certificate type that was not offered", at: offset)
    }
    return type == 2
  }
}

extension CipherSuite {
  /// Whether the number belongs to TLS 1.3 (RFC 8446 §B.4 and later additions); such a suite works in no other version.
  package var isOfTLS13: Bool {
    switch id {
    case 0x1300...0x13ff, 0x00c6...0x00c7, 0xc0b4...0xc0b5, 0xc103...0xc106: true
    default: false
    }
  }

  /// Whether the suite authenticates by SHA-256, SHA-384 or as AEAD and has a certificate, or nothing, behind it: before
  /// TLS 1.2 there is none of these (RFC 5246 §A.5, RFC 5288 §4, RFC 5289 §2).
  var needsTLS12: Bool {
    switch kind {
    case .signed, .keyTransport, .unauthenticated, .staticKeyAgreement: break
    default: return false
    }
    return switch id {
    case 0x003b...0x0040, 0x0067...0x006d, 0x009c...0x00a7, 0x00ba...0x00c5, 0xc023...0xc032, 0xc03c...0xc0b3,
      0xcca8...0xccae:
      true
    default: false
    }
  }
}
