import PinfoldConfig
import PinfoldModel

extension Envelope {
  /// Reads an envelope: one strict JSON object (RFC 8259), no member twice, `keyid` and `sig` in each signature.
  ///
  /// The payload's base64 is decoded once, from where it lies to behind the frame that was signed. Throws `malformed`.
  package init(parsing bytes: [UInt8]) throws(EnvelopeError) {
    var reader = EnvelopeReader(bytes)
    do throws(JSONError) { try reader.read() } catch { throw .malformed(error.message, offset: error.offset) }
    self = try reader.envelope()
  }
}

/// Collects the members of an envelope in whatever order they come.
private struct EnvelopeReader {
  private let bytes: [UInt8]
  private var json: JSONReader
  private var payloadType: String?
  /// The base64 text of the payload, as indices of `bytes` while it holds no escape.
  private var payload: ArraySlice<UInt8>?
  private var payloadOffset = 0
  private var signatures: [Envelope.Signature]?

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    json = JSONReader(bytes[...], dialect: .json)
  }

  mutating func read() throws(JSONError) {
    var seen: Set<String> = []
    try json.beginObject()
    while let (name, offset) = try json.nextMember() {
      guard seen.insert(name).inserted else { throw JSONError(at: offset, "a member that is there twice") }
      switch name {
      case "payloadType": payloadType = try json.string()
      case "payload": payload = try base64Text()
      case "signatures": signatures = try signatureList()
      default: try json.skipValue()
      }
    }
    try json.end()
  }

  /// The text of the next string without building one: base64 needs no escapes, but JSON may write `/` as `\/`.
  private mutating func base64Text() throws(JSONError) -> ArraySlice<UInt8> {
    _ = try json.peek()
    payloadOffset = json.offset
    let rest = bytes[json.offset...].dropFirst()
    if let end = rest.firstIndex(where: { $0 == 0x22 || $0 == 0x5c }), bytes[end] == 0x22, bytes[json.offset] == 0x22 {
      try json.skipValue()
      return rest[..<end]
    }
    return Array(try json.string().utf8)[...]
  }

  private mutating func signatureList() throws(JSONError) -> [Envelope.Signature] {
    var list: [Envelope.Signature] = []
    try json.beginArray()
    while try json.nextElement() {
      let start = json.offset
      guard list.count < Envelope.signatureLimit else {
        throw JSONError(at: start, "more than \(Envelope.signatureLimit) signatures")
      }
      list.append(try signature())
    }
    return list
  }

  private mutating func signature() throws(JSONError) -> Envelope.Signature {
    var seen: Set<String> = []
    var keyID: String?
    var signature: [UInt8]?
    try json.beginObject()
    let start = json.offset
    while let (name, offset) = try json.nextMember() {
      guard seen.insert(name).inserted else { throw JSONError(at: offset, "a member that is there twice") }
      switch name {
      case "keyid": keyID = try json.string()
      case "sig":
        guard let decoded = Self.decode(Array(try json.string().utf8)[...], prefix: []) else {
          throw JSONError(at: offset, "\"sig\" is not base64")
        }
        signature = decoded
      default: try json.skipValue()
      }
    }
    guard let keyID, let signature else {
      throw JSONError(at: start, "a signature without \"keyid\" or \"sig\"")
    }
    return Envelope.Signature(keyID: keyID, bytes: signature)
  }

  func envelope() throws(EnvelopeError) -> Envelope {
    guard let payloadType else { throw .malformed("\"payloadType\" is missing", offset: 0) }
    guard let payload else { throw .malformed("\"payload\" is missing", offset: 0) }
    guard let signatures else { throw .malformed("\"signatures\" is missing", offset: 0) }
    let padding = payload.suffix(2).count { $0 == 0x3d }
    let prefix = PreAuthEncoding.prefix(type: payloadType, payloadCount: (payload.count - padding) * 3 / 4)
    guard let signed = Self.decode(payload, prefix: prefix) else {
      throw .malformed("\"payload\" is not base64", offset: payloadOffset)
    }
    return Envelope(payloadType: payloadType, signed: signed, payloadStart: prefix.count, signatures: signatures)
  }

  /// Verifiers have to take both alphabets (DSSE envelope, "payload"); each is read strictly, with its padding.
  private static func decode(_ text: ArraySlice<UInt8>, prefix: [UInt8]) -> [UInt8]? {
    guard text.contains(where: { $0 == 0x2d || $0 == 0x5f }) else {
      return Base64.decode(text, urlSafe: false, prefix: prefix)
    }
    guard text.count % 4 == 0 else { return nil }
    let padding = text.suffix(2).count { $0 == 0x3d }
    return Base64.decode(text.dropLast(padding), urlSafe: true, prefix: prefix)
  }
}
