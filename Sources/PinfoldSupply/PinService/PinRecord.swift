import PinfoldConfig
package import PinfoldModel
package import PinfoldPolicy

/// What a pin service said of a host, verified. Nothing in it is believed before its signature.
///
/// Reading is a pure function of bytes, keys and terms: who keeps the bytes reads them again, and gets the same.
package struct PinRecord: Hashable, Sendable {
  /// The shape a record came in.
  package enum Format: String, CaseIterable, Sendable {
    /// Members of their own and an Ed25519 signature over them.
    case ed25519
    /// A JWS in compact form (RFC 7515 §7.1), ES256 or EdDSA.
    case jws
    /// One fingerprint and an Ed25519 signature over its text alone.
    case fingerprint
  }

  /// Bytes a record may have. One with 64 pins has 5 KiB.
  package static let byteLimit = 65_536

  /// The shape it came in.
  package let format: Format
  /// The hosts it speaks for; the asked one is among them.
  package let domain: HostPattern
  /// At least one and at most `PinSet.limit`, each once.
  package let pins: [Pin]
  /// When it was made; when it arrived, for a `fingerprint`, which does not say.
  package let created: Timestamp
  /// When it was made, by its own words; `nil` for a `fingerprint`: neither it nor another is the older of the two.
  package var date: Timestamp? { format == .fingerprint ? nil : created }
  /// The end of its own lifetime, beyond which it is worth nothing: its date of expiry, or its TTL counted from when it
  /// was made (at least `min_ttl_seconds`), whichever comes first.
  package let expires: Timestamp
  /// Until when its pins may be used: its own end, or `max_ttl_seconds` after it arrived.
  package let freshUntil: Timestamp
  /// The id of the trusted key that signed it: 8 hexadecimal digits.
  package let keyID: String
  /// The trusted key that signed it.
  package let signer: PinSigner

  /// Reads and verifies a record as it was received. What it is is told by its members: `jws`, `fingerprint`, or those
  /// of an `ed25519` record. Throws the first step that fails: shape, algorithm, signature, then what was signed.
  package init(parsing bytes: [UInt8], keys: PinServiceKeys, terms: PinRecordTerms) throws(PinRecordError) {
    guard bytes.count <= Self.byteLimit else { throw .tooLarge(bytes.count) }
    let members = try RecordMembers(bytes)
    if members.has("jws") {
      self = try Self(jws: members, keys: keys, terms: terms)
    } else if members.has("fingerprint") {
      self = try Self(fingerprint: members, keys: keys, terms: terms)
    } else {
      self = try Self(ed25519: members, bytes, keys: keys, terms: terms)
    }
  }

  /// What a record says, whatever its shape. Only what a signature covers may be put here.
  struct Claims {
    var domain: String
    var pins: [String]
    var created: Timestamp
    /// The date of expiry; `nil` where the shape has none.
    var expires: Timestamp?
    var ttlSeconds: Int64
  }

  /// Judges what was signed: dates, domain, pins.
  init(_ format: Format, _ claims: Claims, signer: PinServiceKeys.Key, terms: PinRecordTerms) throws(PinRecordError) {
    guard claims.created.seconds <= terms.now.seconds + PinRecordTerms.skewSeconds else {
      throw .notYetValid(claims.created)
    }
    let ttlEnd = Timestamp(seconds: claims.created.seconds + max(claims.ttlSeconds, terms.minTTLSeconds))
    let expires = claims.expires.map { min($0, ttlEnd) } ?? ttlEnd
    let freshUntil = min(expires, Timestamp(seconds: terms.received.seconds + terms.maxTTLSeconds))
    guard terms.now < freshUntil else { throw .expired(freshUntil) }
    self.format = format
    domain = try Self.domain(claims.domain, terms.host)
    pins = try Self.pins(claims.pins)
    created = claims.created
    self.expires = expires
    self.freshUntil = freshUntil
    keyID = signer.id
    self.signer = signer.signer
  }

  /// Whether it says that it was made before this time; `nil` is before everything.
  func isOlder(than time: Timestamp?) -> Bool {
    guard let date, let time else { return false }
    return date < time
  }

  private static func domain(_ text: String, _ host: HostName) throws(PinRecordError) -> HostPattern {
    let pattern: HostPattern
    do throws(DomainNameError) { pattern = try DomainNames.pattern(text) } catch {
      throw .badDomain(PinRecordError.quoted(text))
    }
    // A record speaks for a host on every port.
    guard pattern.port == nil else { throw .badDomain(PinRecordError.quoted(text)) }
    guard pattern.matches(Authority(host: host, port: 443)) else {
      throw .otherHost(domain: pattern.text, asked: host.text)
    }
    return pattern
  }

  /// Hashes of public keys: 64 hexadecimal digits or 44 characters of base64.
  private static func pins(_ texts: [String]) throws(PinRecordError) -> [Pin] {
    guard !texts.isEmpty else { throw .pins("a record without pins") }
    guard texts.count <= PinSet.limit else { throw .pins("more than \(PinSet.limit) pins") }
    var pins: [Pin] = []
    for text in texts {
      guard let pin = Pin("sha256/" + text) else {
        throw .pins("\(PinRecordError.quoted(text)) is no SHA-256 in hexadecimal or base64")
      }
      if !pins.contains(pin) { pins.append(pin) }
    }
    return pins
  }
}
