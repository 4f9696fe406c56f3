package import PinfoldCrypto
import PinfoldModel

/// A DSSE envelope as received: nothing in it is believed before `verify`.
///
/// Fields that DSSE does not know are ignored, as its envelope rules demand: they are not signed and nobody reads them.
package struct Envelope: Sendable {
  /// One signature with the id of the key that it claims to be of.
  struct Signature: Equatable, Sendable {
    var keyID: String
    var bytes: [UInt8]
  }

  /// More signatures than any policy has signers; verifying each costs a pass over the payload.
  static let signatureLimit = 64

  /// What the payload says it is.
  let payloadType: String
  let signatures: [Signature]
  /// The PAE: `payloadStart` bytes of frame, then the payload. Kept in one piece, since a payload can be large.
  private let signed: [UInt8]
  private let payloadStart: Int

  init(payloadType: String, signed: [UInt8], payloadStart: Int, signatures: [Signature]) {
    self.payloadType = payloadType
    self.signed = signed
    self.payloadStart = payloadStart
    self.signatures = signatures
  }

  /// The payload, once `type` is what was signed and enough of the trusted keys have signed.
  ///
  /// A signature counts for the key that its id names and no other; each key counts once. Signatures by unknown keys
  /// are passed over. Throws `payloadType` or `signatures`.
  package func verify(
    type: String, trust: TrustedKeys
  ) throws(EnvelopeError) -> (payload: ArraySlice<UInt8>, signers: [String]) {
    guard payloadType == type else { throw .payloadType(found: payloadType, expected: type) }
    var count = SignatureCount(required: trust.required)
    count.unknown = signatures.count { trust.keys(withID: $0.keyID).isEmpty }
    for key in trust.keys {
      let claims = signatures.filter { $0.keyID == key.keyID }
      if claims.contains(where: { key.verifies($0.bytes, of: signed) }) {
        count.good.append(key.keyID)
      } else if !claims.isEmpty {
        count.bad.append(key.keyID)
      }
    }
    guard count.good.count >= trust.required else { throw .signatures(count) }
    return (signed[payloadStart...], count.good)
  }

  /// SHA-256 over the payload, verified or not: to know again what was verified before.
  var payloadDigest: Digest256 { SHA256.digest(Array(signed[payloadStart...])) }

  /// An envelope around `payload`, signed by each of `keys` once: compact JSON and a newline.
  package static func sign(_ payload: [UInt8], type: String, keys: [Ed25519SecretKey]) -> [UInt8] {
    let signed = PreAuthEncoding.encode(type: type, payload: payload)
    var signers: Set<Ed25519PublicKey> = []
    let signatures = keys.filter { signers.insert($0.publicKey).inserted }.map { key in
      "{\"keyid\":\"\(key.publicKey.keyID)\",\"sig\":\"\(Base64.encode(key.sign(signed)))\"}"
    }
    let text =
      "{\"payloadType\":\"\(type)\",\"payload\":\"\(Base64.encode(payload))\","
      + "\"signatures\":[\(signatures.joined(separator: ","))]}\n"
    return Array(text.utf8)
  }
}
