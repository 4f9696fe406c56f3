import PinfoldModel

extension ClientHello {
  /// Reads `message` into the fields. Offsets of errors count from its first byte.
  ///
  /// Refused as malformed: duplicate extensions, trailing bytes at any level, lists of odd length, a session id over
  /// 32 bytes, no null compression, more than one server name, a pre_shared_key that is not the last extension. SSL 3.0
  /// is `not_tls`.
  func read() throws(WireError) {
    let message = message
    var reader = ByteReader(message.span)
    _ = try reader.skip(4)
    legacyVersion = try reader.u16()
    guard legacyVersion != TLSVersion.ssl30 else { throw .refused(.notTLS, "an SSL 3.0 hello", at: 4) }
    guard (TLSVersion.tls10...TLSVersion.tls12).contains(legacyVersion) else {
      throw .malformed("the hello has an unknown version", at: 4)
    }
    randomRange = try reader.skip(32)
    sessionIDRange = try reader.vector(width: 1)
    guard sessionIDRange.count <= 32 else {
      throw .malformed("the session id is longer than 32 bytes", at: sessionIDRange.lowerBound - 1)
    }
    cipherSuites = try reader.u16List(width: 2)
    var compression = try reader.nested(width: 1, atLeast: 1)
    compressionMethods = try compression.copy(compression.remaining)
    guard compressionMethods.contains(0) else {
      throw .malformed("null compression is not offered", at: reader.offset)
    }
    // RFC 5246 §7.4.1.2: the extensions may be missing altogether.
    guard !reader.isAtEnd else { return }
    extensions = try TLSExtension.list(&reader)
    try reader.finish()
    for one in extensions { try read(one, in: message) }
    try checkTogether()
  }

  /// Reads the content of one extension, if its content matters here.
  private func read(_ one: TLSExtension, in message: [UInt8]) throws(WireError) {
    let bytes = message.span.extracting(one.content)
    var reader = ByteReader(bytes, at: one.content.lowerBound)
    switch one.type {
    case ExtensionType.serverName: serverName = try Self.serverName(&reader, in: message)
    case ExtensionType.supportedVersions: supportedVersions = try reader.u16List(width: 1)
    case ExtensionType.supportedGroups: supportedGroups = try reader.u16List(width: 2)
    case ExtensionType.signatureAlgorithms: signatureAlgorithms = try reader.u16List(width: 2)
    case ExtensionType.signatureAlgorithmsCert: signatureAlgorithmsCert = try reader.u16List(width: 2)
    case ExtensionType.delegatedCredential: delegatedCredentialAlgorithms = try reader.u16List(width: 2)
    case ExtensionType.compressCertificate: certificateCompression = try reader.u16List(width: 1)
    case ExtensionType.alpn: alpnRange = try Self.alpn(&reader)
    case ExtensionType.keyShare: keyShares = try Self.keyShares(&reader)
    case ExtensionType.preSharedKey: try readPreSharedKeys(&reader)
    case ExtensionType.sessionTicket: sessionTicketRange = try reader.skip(reader.remaining)
    case ExtensionType.pskKeyExchangeModes: pskModes = try Self.octets(&reader)
    case ExtensionType.serverCertificateType: serverCertificateTypes = try Self.octets(&reader)
    case ExtensionType.clientCertificateType: clientCertificateTypes = try Self.octets(&reader)
    case ExtensionType.encryptedClientHello:
      guard try reader.u8() == 0 else {
        throw .malformed("an inner encrypted_client_hello stands in the clear", at: one.content.lowerBound)
      }
      hasEncryptedClientHello = true
      return
    case ExtensionType.earlyData, ExtensionType.extendedMasterSecret, ExtensionType.encryptThenMAC,
      ExtensionType.postHandshakeAuth:
      break
    default: return
    }
    try reader.finish()
  }

  /// Reads the list of names (RFC 6066 §3): exactly one, of type host_name. Of several, readers pick differently.
  @_lifetime(reader: copy reader)
  private static func serverName(
    _ reader: inout ByteReader, in message: [UInt8]
  ) throws(WireError) -> ServerNameIndication {
    var list = try reader.nested(width: 2, atLeast: 1)
    guard try list.u8() == 0 else { throw .malformed("a server name of an unknown type", at: list.offset - 1) }
    let name = try list.vector(width: 2, atLeast: 1)
    guard list.isAtEnd else { throw .malformed("more than one server name", at: list.offset) }
    guard name.count <= 254, let host = HostName(utf8: message[name]) else { return .unreadable }
    return .host(host)
  }

  @_lifetime(reader: copy reader)
  private static func alpn(_ reader: inout ByteReader) throws(WireError) -> Range<Int> {
    var list = try reader.nested(width: 2, atLeast: 2)
    let range = list.offset..<(list.offset + list.remaining)
    while !list.isAtEnd { _ = try list.vector(width: 1, atLeast: 1) }
    return range
  }

  /// RFC 8446 §4.2.8: no group twice.
  @_lifetime(reader: copy reader)
  private static func keyShares(_ reader: inout ByteReader) throws(WireError) -> [KeyShare] {
    var list = try reader.nested(width: 2)
    var shares: [KeyShare] = []
    while !list.isAtEnd {
      let start = list.offset
      let group = try list.u16()
      let key = try list.vector(width: 2, atLeast: 1)
      guard shares.count < WireLimits.extensions, !shares.contains(where: { $0.group == group }) else {
        throw .malformed("two key shares of one group", at: start)
      }
      shares.append(KeyShare(group: group, key: key))
    }
    return shares
  }

  @_lifetime(reader: copy reader)
  private static func octets(_ reader: inout ByteReader) throws(WireError) -> [UInt8] {
    var list = try reader.nested(width: 1, atLeast: 1)
    return try list.copy(list.remaining)
  }

  /// RFC 8446 §4.2.11: identities, then as many binders of at least 32 bytes.
  @_lifetime(reader: copy reader)
  private func readPreSharedKeys(_ reader: inout ByteReader) throws(WireError) {
    var identities = try reader.nested(width: 2, atLeast: 7)
    while !identities.isAtEnd {
      pskIdentities.append(try identities.vector(width: 2, atLeast: 1))
      _ = try identities.u32()
    }
    var binders = try reader.nested(width: 2, atLeast: 33)
    while !binders.isAtEnd { pskBinders.append(try binders.vector(width: 1, atLeast: 32)) }
    guard pskIdentities.count == pskBinders.count else {
      throw .malformed("identities and binders differ in number", at: reader.offset)
    }
  }

  /// What several fields have to say together.
  private func checkTogether() throws(WireError) {
    if let position = extensions.firstIndex(where: { $0.type == ExtensionType.preSharedKey }) {
      let start = extensions[position].content.lowerBound
      guard position == extensions.count - 1 else {
        throw .malformed("pre_shared_key is not the last extension", at: start)
      }
      guard extensions.has(ExtensionType.pskKeyExchangeModes) else {
        throw .malformed("pre_shared_key without psk_key_exchange_modes", at: start)
      }
    } else if let early = extensions.content(ExtensionType.earlyData) {
      throw .malformed("early_data without pre_shared_key", at: early.lowerBound)
    }
    guard highestVersion != nil else { throw .malformed("no version is offered that is still in use", at: 4) }
    guard !offersTLS13 || compressionMethods == [0] else {
      throw .malformed("TLS 1.3 with a compression method", at: sessionIDRange.upperBound)
    }
  }
}
