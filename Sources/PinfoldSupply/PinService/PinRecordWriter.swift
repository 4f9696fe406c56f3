package import PinfoldModel
package import PinfoldTLS

/// Writes pin records as services of this family do, byte for byte.
package struct PinRecordWriter: Sendable {
  /// The form of the records.
  package let format: PinRecord.Format
  /// How long each is good for, in seconds.
  package let ttlSeconds: Int64
  /// The key that signs.
  package let key: RecordSigningKey

  /// `nil` when such records cannot be signed with this key: only a JWS is signed with P-256.
  package init?(_ format: PinRecord.Format, key: RecordSigningKey, ttlSeconds: Int64) {
    guard key.isEd25519 || format == .jws, ttlSeconds > 0 else { return nil }
    self.format = format
    self.key = key
    self.ttlSeconds = ttlSeconds
  }

  /// A signed record of a host, spelled as its asker spelled it, and at least one pin. A `fingerprint` record has room
  /// for the first pin only. Throws when OpenSSL fails, or for a text that is no host.
  package func write(_ host: String, pins: [Digest256], at now: Timestamp) throws(TLSError) -> [UInt8] {
    // Hosts need no escapes in JSON.
    guard HostName(host) != nil, let first = pins.first else {
      throw .failed(call: "writing a record", detail: "no host, or no pins")
    }
    switch format {
    case .ed25519:
      let members =
        "{\"domain\":\"\(host)\",\"pins\":[\(Self.list(pins.map(\.hex)))],\"created\":\"\(now.text)\","
        + "\"expires\":\"\(end(now).text)\",\"ttl_seconds\":\(ttlSeconds),\"keyId\":\"\(key.id)\","
        + "\"alg\":\"Ed25519\""
      let signature = try key.sign(Array((members + "}").utf8))
      return Array("\(members),\"signature\":\"\(Base64.encode(signature))\"}".utf8)
    case .jws:
      let header = "{\"alg\":\"\(key.isEd25519 ? "EdDSA" : "ES256")\",\"kid\":\"\(key.id)\",\"typ\":\"JWT\"}"
      let payload =
        "{\"domain\":\"\(host)\",\"exp\":\(end(now).seconds),\"iat\":\(now.seconds),"
        + "\"pins\":[\(Self.list(pins.map(\.base64)))],\"ttl_seconds\":\(ttlSeconds)}"
      let signed = [header, payload].map { Base64.encodeURLSafe(Array($0.utf8)) }.joined(separator: ".")
      let signature = Base64.encodeURLSafe(try key.sign(Array(signed.utf8)))
      return Array("{\"jws\":\"\(signed).\(signature)\"}".utf8)
    case .fingerprint:
      let signature = Base64.encode(try key.sign(Array(first.hex.utf8)))
      return Array(
        "{\"domain\":\"\(host)\",\"fingerprint\":\"\(first.hex)\",\"signature\":\"\(signature)\",\"ttl\":\(ttlSeconds)}"
          .utf8)
    }
  }

  private func end(_ now: Timestamp) -> Timestamp {
    Timestamp(seconds: now.seconds.addingReportingOverflow(ttlSeconds).partialValue)
  }

  private static func list(_ texts: [String]) -> String { texts.map { "\"\($0)\"" }.joined(separator: ",") }
}
