import COpenSSL

/// The handshake part of the TLS 1.3 key schedule (RFC 8446 §7.1), through EVP_KDF-TLS13_KDF(7).
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

  /// Fetched once; an EVP_KDF does not change and lives as long as the process.
  @safe private struct Algorithm: Sendable {
    // An EVP_KDF is not changed by those who use it.
    nonisolated(unsafe) let raw: OpaquePointer?
    init() {
      unsafe raw = EVP_KDF_fetch(nil, "TLS13-KDF", nil)
      ErrorQueue.clear()
    }
  }
  private static let algorithm = Algorithm()

  /// Both handshake secrets out of an (EC)DHE shared secret, without a pre-shared key.
  ///
  /// - Parameter transcriptHash: over the messages up to and including the ServerHello.
  package func handshakeSecrets(
    shared: SecretBytes, transcriptHash: [UInt8]
  ) throws(TLSError) -> HandshakeSecrets {
    let early = try extract(after: nil, nil)
    let handshake = try extract(after: early, shared)
    return HandshakeSecrets(
      client: try expand(handshake, "c hs traffic", transcriptHash, count: suite.hashCount),
      server: try expand(handshake, "s hs traffic", transcriptHash, count: suite.hashCount))
  }

  /// What protects the records of one direction.
  func recordKeys(of secret: SecretBytes) throws(TLSError) -> (key: SecretBytes, iv: SecretBytes) {
    (try expand(secret, "key", [], count: suite.keyCount), try expand(secret, "iv", [], count: 12))
  }

  /// verify_data of a Finished message (RFC 8446 §4.4.4) over the transcript before it.
  func finished(of secret: SecretBytes, transcriptHash: [UInt8]) throws(TLSError) -> SecretBytes {
    let key = try expand(secret, "finished", [], count: suite.hashCount)
    ErrorQueue.clear()
    let mac = unsafe SecretBytes(count: suite.hashCount) { output in
      unsafe key.withBytes { key in
        var length = 0
        return unsafe EVP_Q_mac(
          nil, "HMAC", nil, suite.digestName, nil, key.baseAddress, key.count, transcriptHash, transcriptHash.count,
          output.baseAddress, output.count, &length) != nil && length == output.count
      }
    }
    guard let mac else { throw .drained("EVP_Q_mac") }
    return mac
  }

  /// HKDF-Extract with the "derived" step in front where a secret stands before; nil stands for zeros.
  private func extract(after earlier: SecretBytes?, _ input: SecretBytes?) throws(TLSError) -> SecretBytes {
    guard let kdf = unsafe Self.algorithm.raw else { throw .failed(call: "EVP_KDF_fetch", detail: "no TLS13-KDF") }
    ErrorQueue.clear()
    let result = unsafe SecretBytes(count: suite.hashCount) { output in
      guard let start = output.baseAddress else { return false }
      return unsafe withBytes(of: earlier) { salt in
        unsafe withBytes(of: input) { key in
          unsafe pinfold_tls13_extract(
            kdf, suite.digestName, salt?.baseAddress, salt?.count ?? 0, key?.baseAddress, key?.count ?? 0, start,
            output.count) == 1
        }
      }
    }
    guard let result else { throw .drained("EVP_KDF_derive") }
    return result
  }

  /// HKDF-Expand-Label (RFC 8446 §7.1).
  private func expand(
    _ secret: SecretBytes, _ label: String, _ context: [UInt8], count: Int
  ) throws(TLSError) -> SecretBytes {
    guard let kdf = unsafe Self.algorithm.raw else { throw .failed(call: "EVP_KDF_fetch", detail: "no TLS13-KDF") }
    ErrorQueue.clear()
    let result = unsafe SecretBytes(count: count) { output in
      unsafe secret.withBytes { secret in
        guard let start = output.baseAddress, let key = secret.baseAddress else { return false }
        return unsafe pinfold_tls13_expand(
          kdf, suite.digestName, key, secret.count, label, label.utf8.count, context, context.count, start,
          output.count) == 1
      }
    }
    guard let result else { throw .drained("EVP_KDF_derive") }
    return result
  }

  private func withBytes<Result>(
    of secret: SecretBytes?, _ body: (UnsafeBufferPointer<UInt8>?) -> Result
  ) -> Result {
    guard let secret else { return body(nil) }
    return unsafe secret.withBytes { unsafe body($0) }
  }
}
