/// A group of the IANA registry "TLS Supported Groups" in which Pinfold can hold a key share of its own.
package enum KeyExchangeGroup: UInt16, CaseIterable, Sendable {
  case secp256r1 = 0x0017
  case secp384r1 = 0x0018
  case secp521r1 = 0x0019
  case x25519 = 0x001d
  case x448 = 0x001e
  case ffdhe2048 = 0x0100
  case ffdhe3072 = 0x0101
  case ffdhe4096 = 0x0102
  case secp256r1MLKEM768 = 0x11eb
  case x25519MLKEM768 = 0x11ec

  /// How a share of the group is made.
  enum Kind: Equatable, Sendable {
    /// One EVP key: algorithm for EVP_PKEY_CTX_new_from_name(3), group name where the algorithm has several.
    case classical(algorithm: String, group: String?)
    /// ML-KEM-768 joined with a classical group; the first half in share and secret is named by `leadsWithMLKEM`
    /// (draft-ietf-tls-ecdhe-mlkem §4).
    case hybrid(KeyExchangeGroup, leadsWithMLKEM: Bool)
  }

  var kind: Kind {
    switch self {
    case .secp256r1: .classical(algorithm: "EC", group: "P-256")
    case .secp384r1: .classical(algorithm: "EC", group: "P-384")
    case .secp521r1: .classical(algorithm: "EC", group: "P-521")
    case .x25519: .classical(algorithm: "X25519", group: nil)
    case .x448: .classical(algorithm: "X448", group: nil)
    case .ffdhe2048: .classical(algorithm: "DH", group: "ffdhe2048")
    case .ffdhe3072: .classical(algorithm: "DH", group: "ffdhe3072")
    case .ffdhe4096: .classical(algorithm: "DH", group: "ffdhe4096")
    case .secp256r1MLKEM768: .hybrid(.secp256r1, leadsWithMLKEM: false)
    case .x25519MLKEM768: .hybrid(.x25519, leadsWithMLKEM: true)
    }
  }

  /// Bytes of a client's key share (RFC 8446 §4.2.8, RFC 7919 §3: padded to the prime's length).
  package var clientShareCount: Int {
    switch self {
    case .secp256r1: 65
    case .secp384r1: 97
    case .secp521r1: 133
    case .x25519: 32
    case .x448: 56
    case .ffdhe2048: 256
    case .ffdhe3072: 384
    case .ffdhe4096: 512
    case .secp256r1MLKEM768: 65 + MLKEM768.encapsulationKeyCount
    case .x25519MLKEM768: MLKEM768.encapsulationKeyCount + 32
    }
  }

  /// Bytes of a server's key share.
  package var serverShareCount: Int {
    switch self {
    case .secp256r1MLKEM768: 65 + MLKEM768.ciphertextCount
    case .x25519MLKEM768: MLKEM768.ciphertextCount + 32
    default: clientShareCount
    }
  }

  /// The classical half of a hybrid group; nil for others.
  var classicalHalf: KeyExchangeGroup? {
    if case .hybrid(let half, _) = kind { half } else { nil }
  }
}
