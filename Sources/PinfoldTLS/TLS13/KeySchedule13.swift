/// The handshake part of the TLS 1.3 key schedule (RFC 8446 §7.1).
///
/// It ends at the handshake secrets: no application key is ever derived here.
package struct KeySchedule13: Sendable {
  /// Both secrets that protect a handshake.
  package struct HandshakeSecrets: Sendable {
    /// client_handshake_traffic_secret.
    package let client: SecretBytes
    /// server_handshake_traffic_secret.
    package let server: SecretBytes
  }

  /// The suite whose hash is used.
  package let suite: Suite13

  /// Uses the hash of this suite.
  package init(_ suite: Suite13) { self.suite = suite }

  /// Both handshake secrets out of an (EC)DHE shared secret, without a pre-shared key.
  ///
  /// - Parameter transcriptHash: over the messages up to and including the ServerHello.
  package func handshakeSecrets(
    shared: SecretBytes, transcriptHash: [UInt8]
  ) throws(TLSError) -> HandshakeSecrets {
    let count = suite.hashCount
    var zeros = [UInt8](repeating: 0, count: count)
    let nothing = SecretBytes(taking: &zeros)
    let early = try DerivationKey(try extract(nothing, salt: nothing), suite)
    let salt = try early.expand("derived", context: try suite.digest.hash([]), count: count)
    let handshake = try DerivationKey(try extract(shared, salt: salt), suite)
    return HandshakeSecrets(
      client: try handshake.expand("c hs traffic", context: transcriptHash, count: count),
      server: try handshake.expand("s hs traffic", context: transcriptHash, count: count))
  }

  /// HKDF-Extract (RFC 5869 §2.2).
  private func extract(_ input: SecretBytes, salt: SecretBytes) throws(TLSError) -> SecretBytes {
    let key = try DerivationKey(salt, suite)
    return try unsafe input.withBytes { (bytes) throws(TLSError) in try unsafe key.code(of: bytes) }
  }
}

extension DerivationKey {
  /// What protects the records of one direction, where this is a traffic secret (RFC 8446 §7.3).
  func recordKeys() throws(TLSError) -> (key: SecretBytes, iv: SecretBytes) {
    (try expand("key", count: suite.keyCount), try expand("iv", count: 12))
  }

  /// verify_data of a Finished message over the transcript before it, where this is a traffic secret (RFC 8446 §4.4.4).
  func finished(transcriptHash: [UInt8]) throws(TLSError) -> SecretBytes {
    let key = try DerivationKey(try expand("finished", count: suite.hashCount), suite)
    return try unsafe transcriptHash.withUnsafeBufferPointer { (bytes) throws(TLSError) in
      try unsafe key.code(of: bytes)
    }
  }
}
