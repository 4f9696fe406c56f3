/// Whether the peer of a handshake owns the key it shows, now and on this very connection.
///
/// One core for the ServerKeyExchange of TLS 1.0–1.2, read in the clear, and the CertificateVerify of TLS 1.3, from
/// a decrypted flight. Pure but for OpenSSL: the caller brings the bytes.
package enum KeyProof: Equatable, Sendable {
  /// A signature over this handshake's own values verifies by the leaf's key.
  case proven
  /// Static RSA: nothing is signed, but only the key's owner can finish this handshake.
  case keyTransport
  /// The reason in constant words.
  case notProven(Failure)

  /// Why a key counts as not proven.
  package enum Failure: String, CaseIterable, Sendable {
    /// The scheme is unknown, or one that is never taken (DSA, MD5).
    case schemeRefused = "signature scheme is not supported"
    /// The client did not offer it, and would refuse it.
    case schemeNotOffered = "signature scheme was not offered by the client"
    /// It belongs to another kind of key, another curve, or another version of TLS.
    case schemeUnfit = "signature scheme does not fit the key"
    /// OpenSSL cannot use the key.
    case keyUnusable = "public key cannot be used"
    /// It is not this key's signature over this handshake.
    case signatureWrong = "signature does not verify"
  }

  /// Protocol versions as on the wire.
  private static let tls10: UInt16 = 0x0301
  private static let tls12: UInt16 = 0x0303
  private static let tls13: UInt16 = 0x0304

  /// What a client offers that sends no `signature_algorithms`: SHA-1 with RSA and ECDSA (RFC 5246 §7.4.1.4.1).
  private static let defaultOffer: [UInt16] = [0x0201, 0x0203]

  /// Verifies `signature` over `content` by `key`.
  ///
  /// - `scheme`: the code in the message; `nil` exactly where none is on the wire (TLS 1.0 and 1.1).
  /// - `offered`: the client's `signature_algorithms`, `nil` if it sent none.
  /// - `version`: the negotiated version, 0x0301 to 0x0304.
  package static func verify(
    signature: [UInt8], over content: [UInt8], scheme code: UInt16?, offered: [UInt16]?, version: UInt16,
    by key: LeafKey
  ) -> KeyProof {
    guard key.kind != .unusable else { return .notProven(.keyUnusable) }
    let scheme: SignatureScheme
    switch (version, code) {
    case (tls12, .some(let code)), (tls13, .some(let code)):
      guard let known = SignatureScheme(code: code) else { return .notProven(.schemeRefused) }
      guard (offered ?? (version == tls12 ? defaultOffer : [])).contains(code) else {
        return .notProven(.schemeNotOffered)
      }
      scheme = known
    case (tls10..<tls12, nil):
      guard let known = SignatureScheme(legacyFor: key.kind) else { return .notProven(.schemeUnfit) }
      scheme = known
    default:
      return .notProven(.schemeRefused)
    }
    guard scheme.fits(key.kind, isTLS13: version == tls13) else { return .notProven(.schemeUnfit) }
    return key.verifies(signature, over: content, scheme.method) ? .proven : .notProven(.signatureWrong)
  }

  /// The proof of a suite with static RSA key exchange, which needs a key that encrypts.
  package static func keyTransport(by key: LeafKey) -> KeyProof {
    key.kind == .rsa ? .keyTransport : .notProven(.schemeUnfit)
  }

  /// What a ServerKeyExchange signs: both randoms and its own parameters (RFC 5246 §7.4.3, RFC 8422 §5.4).
  package static func serverKeyExchangeContent(
    clientRandom: ArraySlice<UInt8>, serverRandom: ArraySlice<UInt8>, parameters: ArraySlice<UInt8>
  ) -> [UInt8] {
    var content: [UInt8] = []
    content.reserveCapacity(clientRandom.count + serverRandom.count + parameters.count)
    content += clientRandom
    content += serverRandom
    content += parameters
    return content
  }

  /// What a server's CertificateVerify signs: 64 spaces, a context string, a zero byte and the transcript hash
  /// (RFC 8446 §4.4.3).
  package static func certificateVerifyContent(transcriptHash: [UInt8]) -> [UInt8] {
    Array(repeating: 0x20, count: 64) + Array("TLS 1.3, server CertificateVerify".utf8) + [0] + transcriptHash
  }

  /// Whether the peer may be taken for the key's owner.
  package var holds: Bool {
    switch self {
    case .proven, .keyTransport: true
    case .notProven: false
    }
  }
}
