package import PinfoldCrypto
import PinfoldModel
package import PinfoldTLS

/// The key with which a pin service signs: one of `keygen`, or a PEM file of OpenSSL.
package enum RecordSigningKey: Sendable {
  /// Ed25519, as `keygen` makes it.
  case keygen(Ed25519SecretKey)
  /// Ed25519 or P-256.
  case pem(PEMSigningKey)

  /// Reads a key file of either form, and says in `warnings` when others may read it too.
  package init(path: String, warnings: inout [String]) throws(RecordSigningKeyError) {
    do throws(CryptoError) {
      let contents = try SecretBytes(file: path, limit: PEMSigningKey.byteLimit, warnings: &warnings)
      let mark = Array("pinfold-".utf8)
      let isKeygen = contents.withBytes { bytes in
        bytes.count > mark.count && mark.indices.allSatisfy { bytes[$0] == mark[$0] }
      }
      if isKeygen {
        // The mode was complained about above.
        var again: [String] = []
        self = .keygen(try Ed25519SecretKey(path: path, warnings: &again))
        return
      }
      do throws(TLSError) {
        self = .pem(try contents.withBytes { bytes throws(TLSError) in try PEMSigningKey(pem: bytes) })
      } catch {
        throw CryptoError.keyFile(path: path, problem: error.description)
      }
    } catch {
      throw RecordSigningKeyError(message: error.description)
    }
  }

  /// Whether it signs with Ed25519; with ES256 otherwise.
  package var isEd25519: Bool {
    switch self {
    case .keygen: true
    case .pem(let key): key.algorithm == .ed25519
    }
  }

  /// The DER SubjectPublicKeyInfo, whose base64 belongs into `pin_services[].trusted_keys`.
  package var publicKey: [UInt8] {
    switch self {
    case .keygen(let key): key.publicKey.der
    case .pem(let key): key.publicKey
    }
  }

  /// The id that records carry: 8 hexadecimal digits of SHA-256, over the raw bytes of an Ed25519 key, over the DER of
  /// a P-256 key.
  package var id: String {
    // The last 32 bytes of an Ed25519 key's DER are its raw bytes.
    let bytes = isEd25519 ? Array(publicKey.suffix(Ed25519PublicKey.byteCount)) : publicKey
    return Hex.encode(SHA256.digest(bytes).bytes.prefix(4))
  }

  /// The 64 bytes of a signature.
  func sign(_ message: [UInt8]) throws(TLSError) -> [UInt8] {
    switch self {
    case .keygen(let key): key.sign(message)
    case .pem(let key): try key.sign(message)
    }
  }
}

/// Why a key file cannot sign.
package struct RecordSigningKeyError: Error, Hashable, Sendable, CustomStringConvertible {
  /// One line that names the file and says what would be right.
  package var message: String
  /// The message.
  package var description: String { message }
}
