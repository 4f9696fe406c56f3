import PinfoldModel

extension PinRecord {
  /// The members of an `ed25519` record, all of them and in this order; the signature covers those before it.
  static let ed25519Members = [
    "domain", "pins", "created", "expires", "ttl_seconds", "keyId", "alg", "signature",
  ]

  /// `{"domain","pins","created","expires","ttl_seconds","keyId","alg":"Ed25519","signature"}`.
  ///
  /// Signed is the received text of the first seven members as an object of their own, without the white space between
  /// them; each value is spelled as it was received. `keyId` is a hint that nothing is decided by.
  init(
    ed25519 members: RecordMembers, _ bytes: [UInt8], keys: PinServiceKeys, terms: PinRecordTerms
  ) throws(PinRecordError) {
    guard members.names == Self.ed25519Members else {
      let expected = Self.ed25519Members.joined(separator: ", ")
      throw .malformed("expected the members \(expected), in this order", offset: 0)
    }
    let algorithm = try members.string("alg")
    guard algorithm == "Ed25519" else {
      throw .algorithm("\"alg\" is \(PinRecordError.quoted(algorithm)), not \"Ed25519\"")
    }
    guard !keys.ed25519.isEmpty else { throw .algorithm("signed with Ed25519, and no trusted key is of that kind") }
    let signed = Self.withoutSpace(bytes[..<members.end(of: 6)]) + [0x7d]
    let signature = try members.base64("signature")
    guard let signer = keys.ed25519Signer(of: signed, signature: signature) else { throw .signature }
    _ = try members.string("keyId")
    let claims = Claims(
      domain: try members.string("domain"), pins: try members.strings("pins"), created: try members.time("created"),
      expires: try members.time("expires"), ttlSeconds: try members.seconds("ttl_seconds"))
    try self.init(.ed25519, claims, signer: signer, terms: terms)
  }

  /// JSON that was read without an error, less the white space outside its strings.
  static func withoutSpace(_ text: ArraySlice<UInt8>) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(text.count + 1)
    var isQuoted = false
    var isEscaped = false
    for byte in text {
      if isQuoted {
        if isEscaped { isEscaped = false } else if byte == 0x5c { isEscaped = true } else { isQuoted = byte != 0x22 }
      } else if byte == 0x20 || byte == 0x09 || byte == 0x0a || byte == 0x0d {
        continue
      } else {
        isQuoted = byte == 0x22
      }
      result.append(byte)
    }
    return result
  }
}
