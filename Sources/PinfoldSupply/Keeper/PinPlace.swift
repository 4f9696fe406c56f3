import PinfoldModel
package import PinfoldPolicy

/// A key that signs pin records, by all of its bytes. Its id for people has 32 bits: somebody who may choose a key can
/// find another with the same one.
package struct PinSigner: Hashable, Sendable {
  /// Base64 of 32 raw bytes (Ed25519) or of the SPKI DER (P-256).
  package let text: String

  init(key: [UInt8]) { text = Base64.encode(key) }
}

/// Where a record and the memory of it are kept: under the key that signed it and the domain it names. A record may
/// name more hosts than its service speaks for; what it says of them is in no other service's place.
package struct PinPlace: Hashable, Sendable {
  /// Who signed.
  package let signer: PinSigner
  /// The hosts the record speaks for.
  package let domain: HostPattern

  /// The place of a record.
  package init(_ record: PinRecord) { self.init(record.signer, record.domain) }

  init(_ signer: PinSigner, _ domain: HostPattern) {
    self.signer = signer
    self.domain = domain
  }

  /// What its record is called in the sealed cache. Base64 has no blank.
  package var name: String { "\(signer.text) \(domain.text)" }
}
