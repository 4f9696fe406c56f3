import PinfoldModel

extension ClientHello {
  /// Whether `second` is a lawful repetition of this hello after `retry` (RFC 8446 §4.1.2); nil when it is.
  ///
  /// The server name has to be the same: `sni_mismatch`. Beyond what the RFC lets a client change (key_share, early_data,
  /// cookie, pre_shared_key, padding, and the ECH that is made anew) everything else has to be the same too.
  package func refusal(ofSecond second: ClientHello, after retry: ServerHello) -> HandshakeRefusal? {
    func malformed(_ text: StaticString) -> HandshakeRefusal {
      HandshakeRefusal(.malformedHandshake, at: second.start, text)
    }
    guard second.serverName == serverName, second.serverName != .unreadable else {
      return HandshakeRefusal(.sniMismatch, at: second.start, "the second hello names another host")
    }
    guard second.message[second.randomRange] == message[randomRange], second.sessionID == sessionID,
      second.legacyVersion == legacyVersion, second.cipherSuites == cipherSuites,
      second.compressionMethods == compressionMethods
    else { return malformed("the second hello is not the first one again") }
    guard !second.offersEarlyData else { return malformed("the second hello announces 0-RTT data") }
    guard second.lasting == lasting else { return malformed("the second hello has other extensions") }
    if let group = retry.keyShareGroup {
      guard second.keyShares.map(\.group) == [group] else {
        return malformed("the second hello has not the one key share that was asked for")
      }
    }
    guard second.cookie == retry.cookieRange.map({ retry.message[$0] }) else {
      return malformed("the second hello has not the cookie it was given")
    }
    return nil
  }

  /// Content of the cookie extension, without its length.
  private var cookie: ArraySlice<UInt8>? {
    guard let content = extensions.content(ExtensionType.cookie) else { return nil }
    return message[content].dropFirst(2)
  }

  /// The extensions a second hello may not change, by type.
  private var lasting: [UInt16: ArraySlice<UInt8>] {
    let changing: Set<UInt16> = [
      ExtensionType.keyShare, ExtensionType.earlyData, ExtensionType.cookie, ExtensionType.preSharedKey,
      ExtensionType.padding, ExtensionType.encryptedClientHello,
    ]
    var result: [UInt16: ArraySlice<UInt8>] = [:]
    for one in extensions where !changing.contains(one.type) { result[one.type] = message[one.content] }
    return result
  }
}
