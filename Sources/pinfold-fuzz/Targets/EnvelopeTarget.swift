import PinfoldCrypto
import PinfoldSupply

/// Promises: what verifies is what was signed, byte for byte. Nobody but the seeds has signed anything.
enum EnvelopeTarget {
  /// Type and payload of the one thing that was ever signed.
  static let type = "application/vnd.pinfold.policy+json"
  static let payload = Array("{ version: 1 } // ~~~???".utf8)
  /// A key everybody knows, for nothing else than this.
  static let key = try? Ed25519SecretKey(seed: SecretBytes(copying: Array(repeating: 7, count: 32)))

  static func run(_ bytes: [UInt8]) throws(BrokenPromise) {
    guard let key, let trust = TrustedKeys([key.publicKey], required: 1) else {
      throw BrokenPromise("no key to verify with")
    }
    guard let envelope = try? Envelope(parsing: bytes) else { return }
    guard let verified = try? envelope.verify(type: type, trust: trust) else { return }
    try BrokenPromise.unless(verified.payload.elementsEqual(payload), "a payload that nobody signed")
    try BrokenPromise.unless(verified.signers == [key.publicKey.keyID], "a signer who is not trusted")
  }

  /// The one envelope there is.
  static func signed(by keys: [Ed25519SecretKey]) -> [UInt8] { Envelope.sign(payload, type: type, keys: keys) }
}
