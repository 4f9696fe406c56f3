import PinfoldModel
import Testing

@testable import PinfoldCrypto

/// A test vector of RFC 8032 §7.1, as hexadecimal text.
struct SignatureVector: Sendable, CustomTestStringConvertible {
  var testDescription: String
  var seed: String
  var publicKey: String
  var message: String
  var signature: String

  static let all = [
    SignatureVector(
      testDescription: "RFC 8032 TEST 1, the empty message",
      seed: "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
      publicKey: "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", message: "",
      signature: "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd"
        + "25bf5f0595bbe24655141438e7a100b"),
    SignatureVector(
      testDescription: "RFC 8032 TEST 2, one byte",
      seed: "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
      publicKey: "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", message: "72",
      signature: "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c3"
        + "87b2eaeb4302aeeb00d291612bb0c00"),
    SignatureVector(
      testDescription: "RFC 8032 TEST 3, two bytes",
      seed: "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
      publicKey: "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", message: "af82",
      signature: "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594"
        + "a7c15e9716ed28dc027beceea1ec40a"),
  ]
}

@Suite struct Ed25519Tests {
  private func key(_ vector: SignatureVector) throws -> Ed25519SecretKey {
    try Ed25519SecretKey(seed: SecretBytes(copying: #require(Hex.decode(vector.seed))))
  }

  @Test(arguments: SignatureVector.all) func `a published vector is met`(_ vector: SignatureVector) throws {
    let key = try key(vector)
    let message = try #require(Hex.decode(vector.message))
    #expect(Hex.encode(key.publicKey.bytes) == vector.publicKey)
    #expect(Hex.encode(key.sign(message)) == vector.signature)
    #expect(key.publicKey.verifies(try #require(Hex.decode(vector.signature)), of: message))
  }

  @Test func `no single altered bit of a signature verifies`() throws {
    let key = try key(SignatureVector.all[2])
    let message: [UInt8] = [0xaf, 0x82]
    let signature = key.sign(message)
    for bit in 0..<(signature.count * 8) {
      var forged = signature
      forged[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(!key.publicKey.verifies(forged, of: message), "bit \(bit)")
    }
  }

  @Test func `a signature is bound to its message, its key and its length`() throws {
    let key = try key(SignatureVector.all[0])
    let message: [UInt8] = [1, 2, 3]
    let signature = key.sign(message)
    #expect(key.publicKey.verifies(signature, of: message))
    #expect(!key.publicKey.verifies(signature, of: [1, 2]))
    #expect(!key.publicKey.verifies(signature, of: [1, 2, 3, 0]))
    #expect(!(try Ed25519SecretKey().publicKey.verifies(signature, of: message)))
    #expect(!key.publicKey.verifies(Array(signature.dropLast()), of: message))
    #expect(!key.publicKey.verifies(signature + [0], of: message))
    #expect(!key.publicKey.verifies([], of: message))
  }

  @Test func `a signature plus the group order is refused, as one message has one signature`() throws {
    // RFC 8032 §5.1.7: S must be below L, else anybody could make a second valid signature.
    let order = try #require(Hex.decode("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010"))
    let key = try key(SignatureVector.all[1])
    var signature = key.sign([0x72])
    var carry = 0
    for index in 0..<32 {
      let sum = Int(signature[32 + index]) + Int(order[index]) + carry
      signature[32 + index] = UInt8(sum & 255)
      carry = sum >> 8
    }
    #expect(!key.publicKey.verifies(signature, of: [0x72]))
  }

  @Test func `two new keys differ`() throws {
    #expect(try Ed25519SecretKey().publicKey != Ed25519SecretKey().publicKey)
  }

  @Test func `a seed of another length makes no key`() throws {
    #expect(throws: CryptoError.seedLength(31)) { try Ed25519SecretKey(seed: SecretBytes(randomCount: 31)) }
  }

  @Test func `ten megabytes are signed and verified where they lie`() throws {
    let message = [UInt8](repeating: 7, count: 10_000_000)
    let key = try Ed25519SecretKey()
    #expect(key.publicKey.verifies(key.sign(message), of: message))
  }
}
