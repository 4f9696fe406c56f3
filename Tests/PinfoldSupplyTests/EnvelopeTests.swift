import PinfoldCrypto
import PinfoldModel
import Testing

@testable import PinfoldSupply

@Suite struct EnvelopeTests {
  private static let type = "http://example.com/HelloWorld"
  private let payload = Array("hello world".utf8)

  private func verify(_ bytes: [UInt8], _ keys: [Ed25519PublicKey], required: Int = 1) throws -> [UInt8] {
    let trust = try #require(TrustedKeys(keys, required: required))
    return Array(try Envelope(parsing: bytes).verify(type: Self.type, trust: trust).payload)
  }

  private func count(_ bytes: [UInt8], _ keys: [Ed25519PublicKey], required: Int = 1) throws -> SignatureCount? {
    do {
      _ = try verify(bytes, keys, required: required)
      Issue.record("verified")
    } catch let EnvelopeError.signatures(count) { return count }
    return nil
  }

  /// An envelope with signatures of the test's own making.
  private func envelope(
    payload: String? = nil, type: String = EnvelopeTests.type, _ signatures: [(keyID: String, bytes: [UInt8])]
  ) -> [UInt8] {
    let list = signatures.map { "{\"keyid\":\"\($0.keyID)\",\"sig\":\"\(Base64.encode($0.bytes))\"}" }
    let text = payload ?? Base64.encode(self.payload)
    return Array(
      "{\"payload\":\"\(text)\",\"payloadType\":\"\(type)\",\"signatures\":[\(list.joined(separator: ","))]}".utf8)
  }

  private func signature(_ key: Ed25519SecretKey) -> [UInt8] {
    key.sign(PreAuthEncoding.encode(type: Self.type, payload: payload))
  }

  @Test func `the signed bytes are those of DSSE's own example`() {
    #expect(
      PreAuthEncoding.encode(type: Self.type, payload: payload)
        == Array("DSSEv1 29 http://example.com/HelloWorld 11 hello world".utf8))
    #expect(PreAuthEncoding.encode(type: "", payload: []) == Array("DSSEv1 0  0 ".utf8))
  }

  @Test(arguments: 0...5) func `what was signed verifies, whatever its padding`(length: Int) throws {
    let key = try Ed25519SecretKey()
    let payload = [UInt8](repeating: 0xfb, count: length)
    #expect(try verify(Envelope.sign(payload, type: Self.type, keys: [key]), [key.publicKey]) == payload)
  }

  @Test func `no single flipped bit of an envelope verifies`() throws {
    let key = try Ed25519SecretKey()
    let good = Envelope.sign(payload, type: Self.type, keys: [key])
    #expect(try verify(good, [key.publicKey]) == payload)
    for bit in 0..<(good.count * 8) {
      var bytes = good
      bytes[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(throws: EnvelopeError.self, "bit \(bit): \(String(decoding: bytes, as: UTF8.self))") {
        try verify(bytes, [key.publicKey])
      }
    }
  }

  @Test func `no envelope that is cut short verifies`() throws {
    let key = try Ed25519SecretKey()
    let good = Envelope.sign(payload, type: Self.type, keys: [key])
    // The last byte is the newline behind the object.
    for length in 0..<(good.count - 1) {
      #expect(throws: EnvelopeError.self, "\(length) bytes") { try verify(Array(good[..<length]), [key.publicKey]) }
    }
  }

  @Test func `a forged signature counts as bad`() throws {
    let (key, forger) = (try Ed25519SecretKey(), try Ed25519SecretKey())
    let bytes = envelope([(key.publicKey.keyID, signature(forger))])
    #expect(try count(bytes, [key.publicKey]) == SignatureCount(required: 1, bad: [key.publicKey.keyID]))
  }

  @Test func `a key id that lies makes nobody's signature count`() throws {
    let (one, two) = (try Ed25519SecretKey(), try Ed25519SecretKey())
    // Says one, signed by two, and both are trusted: still not a signature of one, and none of two.
    let bytes = envelope([(one.publicKey.keyID, signature(two))])
    #expect(
      try count(bytes, [one.publicKey, two.publicKey]) == SignatureCount(required: 1, bad: [one.publicKey.keyID]))
  }

  @Test func `a signature over the bare payload is none`() throws {
    let key = try Ed25519SecretKey()
    let bytes = envelope([(key.publicKey.keyID, key.sign(payload))])
    #expect(try count(bytes, [key.publicKey])?.good == [])
  }

  @Test func `unknown keys are passed over`() throws {
    let (key, stranger) = (try Ed25519SecretKey(), try Ed25519SecretKey())
    let strange = (stranger.publicKey.keyID, signature(stranger))
    #expect(
      try verify(envelope([strange, ("", [1]), (key.publicKey.keyID, signature(key))]), [key.publicKey]) == payload)
    #expect(try count(envelope([strange]), [key.publicKey]) == SignatureCount(required: 1, unknown: 1))
    #expect(try count(envelope([]), [key.publicKey]) == SignatureCount(required: 1))
  }

  @Test func `a good signature beside a bad one of the same key counts once`() throws {
    let (one, two) = (try Ed25519SecretKey(), try Ed25519SecretKey())
    let id = one.publicKey.keyID
    #expect(try verify(envelope([(id, signature(two)), (id, signature(one))]), [one.publicKey]) == payload)
    let twice = envelope([(id, signature(one)), (id, signature(one))])
    #expect(
      try count(twice, [one.publicKey, two.publicKey], required: 2) == SignatureCount(required: 2, good: [id]))
  }

  @Test func `two of three keys are enough and one is not`() throws {
    let keys = try (0..<3).map { _ in try Ed25519SecretKey() }
    let trusted = keys.map(\.publicKey)
    #expect(
      try verify(Envelope.sign(payload, type: Self.type, keys: [keys[2], keys[0]]), trusted, required: 2) == payload)
    #expect(
      try count(Envelope.sign(payload, type: Self.type, keys: [keys[1], keys[1]]), trusted, required: 2)?.good
        == [trusted[1].keyID])
  }

  @Test func `a key trusted twice is one key`() throws {
    let key = try Ed25519SecretKey().publicKey
    #expect(TrustedKeys([key, key], required: 2) == nil)
    #expect(TrustedKeys([key, key], required: 1)?.keys == [key])
  }

  @Test(arguments: [-1, 0, 2]) func `a threshold that believes all or nothing is no threshold`(required: Int) throws {
    #expect(TrustedKeys([try Ed25519SecretKey().publicKey], required: required) == nil)
    #expect(TrustedKeys([], required: required) == nil)
  }

  @Test func `another payload type is refused even if it is signed`() throws {
    let key = try Ed25519SecretKey()
    let bytes = Envelope.sign(payload, type: "text/plain", keys: [key])
    #expect(throws: EnvelopeError.payloadType(found: "text/plain", expected: Self.type)) {
      try verify(bytes, [key.publicKey])
    }
  }

  @Test func `both base64 alphabets and escaped slashes are read, as DSSE asks`() throws {
    let key = try Ed25519SecretKey()
    let payload: [UInt8] = [0xfb, 0xff, 0xfe, 0x3f]
    let signature = key.sign(PreAuthEncoding.encode(type: Self.type, payload: payload))
    for text in ["+//+Pw==", "-__-Pw==", "+\\/\\/+Pw=="] {
      #expect(try verify(envelope(payload: text, [(key.publicKey.keyID, signature)]), [key.publicKey]) == payload)
    }
    for text in ["+//+Pw", "-__-Pw", "+//-Pw==", "+//+Px==", "-__-Px==", "+//+ Pw==", "===="] {
      #expect(throws: EnvelopeError.self, "\(text)") {
        try verify(envelope(payload: text, [(key.publicKey.keyID, signature)]), [key.publicKey])
      }
    }
  }

  @Test func `members that DSSE does not know change nothing`() throws {
    let key = try Ed25519SecretKey()
    let text = String(decoding: Envelope.sign(payload, type: Self.type, keys: [key]), as: UTF8.self)
      .replacing("{\"keyid\"", with: "{\"cert\":null,\"keyid\"").replacing(
        "{\"payloadType\"", with: "{\"x\":[1],\"payloadType\"")
    #expect(try verify(Array(text.utf8), [key.publicKey]) == payload)
  }

  @Test(arguments: [
    "", "[]", "null", "{}", "{\"payloadType\":\"t\",\"payload\":\"\"}", "{\"payload\":\"\",\"signatures\":[]}",
    "{\"payloadType\":\"t\",\"signatures\":[]}", "{\"payloadType\":\"t\",\"payload\":\"\",\"signatures\":{}}",
    "{\"payloadType\":\"t\",\"payload\":1,\"signatures\":[]}",
    "{\"payloadType\":\"t\",\"payload\":\"\",\"payload\":\"\",\"signatures\":[]}",
    "{\"payloadType\":\"t\",\"payload\":\"\",\"signatures\":[{\"keyid\":\"a\"}]}",
    "{\"payloadType\":\"t\",\"payload\":\"\",\"signatures\":[{\"sig\":\"\"}]}",
    "{\"payloadType\":\"t\",\"payload\":\"\",\"signatures\":[{\"keyid\":\"a\",\"keyid\":\"a\",\"sig\":\"\"}]}",
    "{\"payloadType\":\"t\",\"payload\":\"\",\"signatures\":[{\"keyid\":\"a\",\"sig\":\"!\"}]}",
    "{\"payloadType\":\"t\",\"payload\":\"\",\"signatures\":[]} {}",
    "{\"payloadType\":\"t\",\"payload\":\"\",\"signatures\":[],}",
    "{payloadType:\"t\",\"payload\":\"\",\"signatures\":[]}",
    "// comment\n{\"payloadType\":\"t\",\"payload\":\"\",\"signatures\":[]}",
    "{\"payloadType\":\"t\",\"payload\":\"", "{\"payloadType\":\"t\",\"payload\":\"\\", "{\"payload\":",
  ]) func `what is no envelope is malformed`(text: String) {
    do throws(EnvelopeError) {
      _ = try Envelope(parsing: Array(text.utf8))
      Issue.record("parsed")
    } catch {
      #expect(error.description.hasPrefix("not a DSSE envelope: "))
      guard case .malformed = error else {
        Issue.record("\(error)")
        return
      }
    }
  }

  @Test func `signatures are bounded`() throws {
    let many = (0...Envelope.signatureLimit).map { _ in (keyID: "a", bytes: [1 as UInt8]) }
    #expect(throws: EnvelopeError.self) { try Envelope(parsing: envelope(many)) }
    #expect(try Envelope(parsing: envelope(Array(many.dropLast()))).signatures.count == Envelope.signatureLimit)
  }
}
