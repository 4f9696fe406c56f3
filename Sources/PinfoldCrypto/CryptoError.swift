/// Why a piece of cryptography or a key file could not be used. Every case is a refusal for whoever asked.
package enum CryptoError: Error, Equatable, Sendable, CustomStringConvertible {
  /// `sodium_init` failed: the machine gives no randomness, or the library is broken.
  case sodiumUnavailable
  /// Guarded memory for a secret could not be had.
  case secureMemoryUnavailable
  /// Text that should be a public key is none.
  case publicKey(PublicKeyFault)
  /// A secret key's seed has another number of bytes than 32.
  case seedLength(Int)
  /// A key file was read, but holds something else than its format.
  case keyFile(path: String, problem: String)
  /// A key file could not be read or written.
  case file(FileError)
  /// Sealed bytes are truncated, altered, sealed under another key, or sealed for another context.
  case sealBroken

  /// One line that names the place and what would be right.
  package var description: String {
    switch self {
    case .sodiumUnavailable: "libsodium could not be initialised"
    case .secureMemoryUnavailable: "no guarded memory left for a secret"
    case .publicKey(let fault): fault.description
    case .seedLength(let count): "a seed of \(count) bytes: an Ed25519 seed has 32"
    case .keyFile(let path, let problem): "\(path): \(problem)"
    case .file(let error): error.description
    case .sealBroken: "sealed data is altered, truncated, or belongs to another key"
    }
  }
}

/// What is wrong with the text of a public key.
package enum PublicKeyFault: Equatable, Sendable, CustomStringConvertible {
  /// Not standard base64 with its padding.
  case notBase64
  /// Neither 32 raw bytes nor the 44 bytes of an Ed25519 SubjectPublicKeyInfo.
  case wrongLength(Int)
  /// 44 bytes, but not the DER frame that RFC 8410 §4 gives an Ed25519 key.
  case otherAlgorithm
  /// Not a point of the curve's prime-order group in its canonical form: such a key can verify forgeries.
  case weakPoint

  /// One line that says what would be right.
  package var description: String {
    let right = "an Ed25519 public key is base64 of its 32 raw bytes, or of its SPKI DER (MCowBQYDK2VwAyEA…)"
    return switch self {
    case .notBase64: "not base64: \(right)"
    case .wrongLength(let count): "\(count) bytes: \(right)"
    case .otherAlgorithm: "not an Ed25519 key: \(right)"
    case .weakPoint: "a weak or malformed curve point: \(right), as keygen makes it"
    }
  }
}
