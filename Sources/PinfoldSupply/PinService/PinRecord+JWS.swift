import PinfoldModel

extension PinRecord {
  /// Header members by which a JWS asks to be believed otherwise than by a trusted key alone: keys of its own (RFC 7515
  /// §4.1.2–4.1.8), extensions that have to be understood (§4.1.11), another way to build what is signed (RFC 7797).
  static let refusedHeaders = ["jku", "jwk", "x5u", "x5c", "x5t", "x5t#S256", "crit", "b64"]

  /// `{"jws":"header.payload.signature"}` (RFC 7515 §7.1), each part base64url without padding.
  ///
  /// `kid` is a hint that nothing is decided by; other members of header and payload mean nothing here.
  init(jws members: RecordMembers, keys: PinServiceKeys, terms: PinRecordTerms) throws(PinRecordError) {
    guard members.names == ["jws"] else { throw .malformed("expected \"jws\" and no other member", offset: 0) }
    let text = Array(try members.string("jws").utf8)
    let parts = text.split(separator: 0x2e, omittingEmptySubsequences: false)
    guard parts.count == 3, let header = Self.decoded(parts[0]), let payload = Self.decoded(parts[1]),
      let signature = Self.decoded(parts[2])
    else { throw .malformed("\"jws\" is not three parts of base64url with points between", offset: 0) }
    let signer = try Self.signer(
      try RecordMembers(header), of: Array(text[..<parts[1].endIndex]), signature: signature, keys)
    let claims = try RecordMembers(payload)
    if claims.has("nbf") {
      let start = Timestamp(seconds: try claims.seconds("nbf"))
      guard start.seconds <= terms.now.seconds + PinRecordTerms.skewSeconds else { throw .notYetValid(start) }
    }
    try self.init(
      .jws,
      Claims(
        domain: try claims.string("domain"), pins: try claims.strings("pins"),
        created: Timestamp(seconds: try claims.seconds("iat")),
        expires: Timestamp(seconds: try claims.seconds("exp")), ttlSeconds: try claims.seconds("ttl_seconds")),
      signer: signer, terms: terms)
  }

  private static func decoded(_ part: ArraySlice<UInt8>) -> [UInt8]? {
    part.isEmpty ? nil : Base64.decode(part, urlSafe: true)
  }

  /// The trusted key behind the signature. The header's `alg` only has to agree with what such keys sign with: it never
  /// chooses how a key is used (RFC 8725 §3.1).
  private static func signer(
    _ header: RecordMembers, of signed: [UInt8], signature: [UInt8], _ keys: PinServiceKeys
  ) throws(PinRecordError) -> PinServiceKeys.Key {
    if let name = refusedHeaders.first(where: header.has) {
      throw .algorithm("a JWS whose header has \"\(name)\"")
    }
    _ = try header.optionalString("kid")
    let algorithm = try header.string("alg")
    let signer: PinServiceKeys.Key?
    switch algorithm {
    case "ES256" where !keys.es256.isEmpty: signer = keys.es256Signer(of: signed, signature: signature)
    case "EdDSA" where !keys.ed25519.isEmpty: signer = keys.ed25519Signer(of: signed, signature: signature)
    default: throw .algorithm("signed with \(PinRecordError.quoted(algorithm)), which no trusted key signs with")
    }
    guard let signer else { throw .signature }
    return signer
  }
}
