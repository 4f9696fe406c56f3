/// The bytes that a DSSE signature covers (DSSE protocol, "PAE"): type and payload with their lengths, so that no
/// signature over one pair can be read as one over another.
package enum PreAuthEncoding {
  /// Everything before the payload: `DSSEv1 SP LEN(type) SP type SP LEN(body) SP`. Lengths count bytes.
  package static func prefix(type: String, payloadCount: Int) -> [UInt8] {
    Array("DSSEv1 \(type.utf8.count) \(type) \(payloadCount) ".utf8)
  }

  /// The whole encoding of a payload.
  package static func encode(type: String, payload: [UInt8]) -> [UInt8] {
    prefix(type: type, payloadCount: payload.count) + payload
  }
}
