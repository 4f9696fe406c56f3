import COpenSSL

/// A cipher suite of TLS 1.3 that Pinfold can open (RFC 8446 §B.4): all that clients offer.
package enum Suite13: UInt16, CaseIterable, Sendable {
  case aes128GCM = 0x1301
  case aes256GCM = 0x1302
  case chacha20Poly1305 = 0x1303
  case aes128CCM = 0x1304
  case aes128CCM8 = 0x1305

  /// The hash of the key schedule and the transcript.
  var digest: Digest { self == .aes256GCM ? .sha384 : .sha256 }

  /// The hash's name for EVP_MAC.
  var digestName: String { self == .aes256GCM ? "SHA384" : "SHA256" }

  /// Bytes of a digest, and so of every secret: 32 or 48.
  package var hashCount: Int { digest.byteCount }

  /// Bytes of a record key.
  var keyCount: Int {
    switch self {
    case .aes128GCM, .aes128CCM, .aes128CCM8: 16
    case .aes256GCM, .chacha20Poly1305: 32
    }
  }

  /// Bytes of the authentication tag behind each record.
  var tagCount: Int { self == .aes128CCM8 ? 8 : 16 }

  /// Name for EVP_CIPHER_fetch(3).
  var cipherName: String {
    switch self {
    case .aes128GCM: "AES-128-GCM"
    case .aes256GCM: "AES-256-GCM"
    case .chacha20Poly1305: "ChaCha20-Poly1305"
    case .aes128CCM, .aes128CCM8: "AES-128-CCM"
    }
  }

  /// The cipher, fetched once.
  var cipher: RecordCipher {
    switch self {
    case .aes128GCM: .aes128GCM
    case .aes256GCM: .aes256GCM
    case .chacha20Poly1305: .chacha20Poly1305
    case .aes128CCM, .aes128CCM8: .aes128CCM
    }
  }

  /// Whether EVP wants the tag and all lengths before the data (EVP_EncryptInit(3), "CCM Mode").
  var isCCM: Bool { self == .aes128CCM || self == .aes128CCM8 }
}

/// A cipher for records, fetched once: an `EVP_CIPHER` that was fetched is not looked up again by each use
/// (EVP_CIPHER_fetch(3)).
///
/// Sendable: it never changes after it was fetched; it lives as long as the process.
@safe struct RecordCipher: Sendable {
  nonisolated(unsafe) let raw: OpaquePointer?

  private init(_ suite: Suite13) {
    unsafe raw = EVP_CIPHER_fetch(nil, suite.cipherName, nil)
    ErrorQueue.clear()
  }

  static let aes128GCM = RecordCipher(.aes128GCM)
  static let aes256GCM = RecordCipher(.aes256GCM)
  static let chacha20Poly1305 = RecordCipher(.chacha20Poly1305)
  static let aes128CCM = RecordCipher(.aes128CCM)
}
