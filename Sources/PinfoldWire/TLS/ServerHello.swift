/// What a ServerHello chose (RFC 8446 §4.1.3, RFC 5246 §7.4.1.3), already held against what the client offered.
///
/// Ranges count from the first byte of `message`.
package struct ServerHello: Sendable {
  /// The handshake message, its four-byte header included.
  package let message: [UInt8]
  /// The version agreed on: supported_versions where it was sent, else `legacy_version`.
  package internal(set) var version: UInt16 = 0
  /// The suite agreed on.
  package internal(set) var cipherSuite = CipherSuite(0)
  /// The session id: in TLS 1.3 and in a resumption it equals the client's.
  package internal(set) var sessionIDRange = 0..<0
  /// All extensions in order.
  package internal(set) var extensions: [TLSExtension] = []
  /// Group of the key share, or the one a HelloRetryRequest asks for.
  package internal(set) var keyShareGroup: UInt16?
  /// The server's key share; nil in a HelloRetryRequest and in TLS 1.2.
  package internal(set) var keyShareRange: Range<Int>?
  /// Index of the pre-shared key the server took.
  package internal(set) var selectedPSK: Int?
  /// Cookie of a HelloRetryRequest.
  package internal(set) var cookieRange: Range<Int>?
  /// The protocol chosen by ALPN in the clear (TLS 1.2 and older).
  package internal(set) var alpnRange: Range<Int>?
  /// Whether the certificate is a raw public key (RFC 7250; TLS 1.2 and older).
  package internal(set) var usesRawPublicKey = false
  /// Version field of the record that brought the first byte.
  package internal(set) var recordVersion: UInt16 = 0
  /// Stream offset behind the record that ends it.
  package internal(set) var end = 0

  /// The random value by which a HelloRetryRequest is told (RFC 8446 §4.1.3).
  static let retryRandom: [UInt8] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
  ]

  /// The 32 random bytes.
  package var random: [UInt8] { Array(message[6..<38]) }

  /// The session id.
  package var sessionID: ArraySlice<UInt8> { message[sessionIDRange] }

  /// The protocol chosen by ALPN in the clear.
  package var alpn: ArraySlice<UInt8>? { alpnRange.map { message[$0] } }

  /// Whether this is a HelloRetryRequest.
  package var isRetryRequest: Bool { message[6..<38] == ServerHello.retryRandom[...] }

  /// Whether a ticket is promised (RFC 5077 §3.2): a NewSessionTicket has to follow.
  package var promisesTicket: Bool { extensions.has(ExtensionType.sessionTicket) }

  /// Whether the random ends in one of the two downgrade sentinels (RFC 8446 §4.1.3).
  package var hasDowngradeSentinel: Bool {
    message[30..<37] == [0x44, 0x4f, 0x57, 0x4e, 0x47, 0x52, 0x44] && message[37] <= 1
  }
}
