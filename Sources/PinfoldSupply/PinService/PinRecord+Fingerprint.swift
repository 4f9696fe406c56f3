import PinfoldModel

extension PinRecord {
  /// `{"domain","fingerprint","signature","ttl"}`: Ed25519 over the fingerprint's text alone.
  ///
  /// Whoever has one such signature can put any domain and any lifetime beside it. So it takes
  /// `allow_unbound_signatures`, and the lifetime is counted from when the record arrived.
  init(fingerprint members: RecordMembers, keys: PinServiceKeys, terms: PinRecordTerms) throws(PinRecordError) {
    guard members.names.sorted() == ["domain", "fingerprint", "signature", "ttl"] else {
      throw .malformed("expected the members domain, fingerprint, signature, ttl", offset: 0)
    }
    guard terms.allowUnboundSignatures else { throw .unboundNotAllowed }
    guard !keys.ed25519.isEmpty else { throw .algorithm("signed with Ed25519, and no trusted key is of that kind") }
    let fingerprint = try members.string("fingerprint")
    let signature = try members.base64("signature")
    guard let signer = keys.ed25519Signer(of: Array(fingerprint.utf8), signature: signature) else { throw .signature }
    try self.init(
      .fingerprint,
      Claims(
        domain: try members.string("domain"), pins: [fingerprint], created: terms.received, expires: nil,
        ttlSeconds: try members.seconds("ttl")),
      signer: signer, terms: terms)
  }
}
