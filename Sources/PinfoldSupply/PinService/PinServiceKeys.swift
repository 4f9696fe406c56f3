package import PinfoldConfig
package import PinfoldCrypto
import PinfoldModel
package import PinfoldTLS

/// The keys that may sign a pin service's records. What each of them signs with follows from the key alone, never from
/// what a record says.
package struct PinServiceKeys: Sendable {
  /// Each key once, in the order of the file.
  package let ed25519: [Ed25519PublicKey]
  package let es256: [ES256PublicKey]
  /// What each of them is called where its records are kept.
  package let signers: [PinSigner]

  /// Takes keys; those that are there twice count once.
  package init(ed25519: [Ed25519PublicKey] = [], es256: [ES256PublicKey] = []) {
    self.ed25519 = Self.distinct(ed25519)
    self.es256 = Self.distinct(es256)
    signers = Self.distinct(self.ed25519.map { Key.ed25519($0).signer } + self.es256.map { Key.es256($0).signer })
  }

  /// Reads `pin_services[].trusted_keys`. Every mistake is a complaint at its place in `file`.
  package init(_ section: PinServiceSection, file: String) throws(FileErrors) {
    var complaints: [Complaint] = []
    var ed25519: [Ed25519PublicKey] = []
    var es256: [ES256PublicKey] = []
    for located in section.trustedKeys {
      do throws(PinServiceKeyError) {
        switch try Key(located.text) {
        case .ed25519(let key): ed25519.append(key)
        case .es256(let key): es256.append(key)
        }
      } catch {
        complaints.append(Complaint(at: located.place, path: located.path, error.description))
      }
    }
    guard complaints.isEmpty else { throw FileErrors(file: file, complaints) }
    self.init(ed25519: ed25519, es256: es256)
  }

  /// A key of either kind.
  package enum Key: Hashable, Sendable {
    /// For `ed25519` and `fingerprint` records, and for JWS of `EdDSA`.
    case ed25519(Ed25519PublicKey)
    /// For JWS of `ES256`.
    case es256(ES256PublicKey)

    /// Reads base64 of 32 raw bytes or the SPKI DER of an Ed25519 key, or of the SPKI DER of a P-256 key, exactly.
    package init(_ text: some StringProtocol) throws(PinServiceKeyError) {
      guard let bytes = Base64.decode(text) else { throw PinServiceKeyError(problem: "not base64") }
      if bytes.count == ES256PublicKey.derByteCount {
        do throws(TLSError) { self = .es256(try ES256PublicKey(subjectPublicKeyInfo: bytes)) } catch {
          throw PinServiceKeyError(problem: "not a key on P-256")
        }
        return
      }
      do throws(CryptoError) { self = .ed25519(try Ed25519PublicKey(text)) } catch {
        switch error {
        case .publicKey(.wrongLength(let count)): throw PinServiceKeyError(problem: "\(count) bytes")
        case .publicKey(.otherAlgorithm): throw PinServiceKeyError(problem: "a key of another algorithm")
        case .publicKey(.weakPoint): throw PinServiceKeyError(problem: "a weak or malformed curve point")
        default: throw PinServiceKeyError(problem: error.description)
        }
      }
    }

    /// The id that services of this family print: 8 hexadecimal digits of SHA-256, over the 32 raw bytes of an Ed25519
    /// key, over the SPKI DER of a P-256 key.
    package var id: String {
      switch self {
      case .ed25519(let key): String(key.keyID.prefix(8))
      case .es256(let key): Hex.encode(SHA256.digest(key.der).bytes.prefix(4))
      }
    }

    /// What it is called where its records are kept.
    package var signer: PinSigner {
      switch self {
      case .ed25519(let key): PinSigner(key: key.bytes)
      case .es256(let key): PinSigner(key: key.der)
      }
    }
  }

  /// The ids of all keys, for people.
  package var ids: [String] { ed25519.map { Key.ed25519($0).id } + es256.map { Key.es256($0).id } }

  /// The trusted Ed25519 key that made `signature` over `message`.
  func ed25519Signer(of message: [UInt8], signature: [UInt8]) -> Key? {
    ed25519.first { $0.verifies(signature, of: message) }.map(Key.ed25519)
  }

  /// The trusted P-256 key that made `signature` over `message`.
  func es256Signer(of message: [UInt8], signature: [UInt8]) -> Key? {
    es256.first { $0.verifies(signature, of: message) }.map(Key.es256)
  }

  private static func distinct<Value: Hashable>(_ values: [Value]) -> [Value] {
    var seen: Set<Value> = []
    return values.filter { seen.insert($0).inserted }
  }
}

/// Why a text is no key of a pin service.
package struct PinServiceKeyError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What is wrong.
  package var problem: String

  /// One line that says what would be right.
  package var description: String {
    "\(problem): expected base64 of an Ed25519 key, raw or as SPKI DER (MCowBQYDK2VwAyEA…), or of a P-256 key as SPKI "
      + "DER (MFkwEwYHKoZI…)"
  }
}
