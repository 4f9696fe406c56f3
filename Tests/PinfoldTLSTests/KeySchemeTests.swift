import Foundation
import PinfoldModel
import PinfoldTLS
import Testing

/// Which signature schemes a key may prove itself with, in which version: signatures are made by the openssl command.
struct KeySchemeTests {
  struct Row: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let key: String
    let scheme: UInt16
    let in12: Bool
    let in13: Bool

    init(_ key: String, _ scheme: UInt16, tls12: Bool, tls13: Bool) {
      testDescription = "\(key) with \(String(scheme, radix: 16))"
      self.key = key
      self.scheme = scheme
      in12 = tls12
      in13 = tls13
    }
  }

  @Test(arguments: [
    Row("P-256", 0x0403, tls12: true, tls13: true), Row("P-256", 0x0603, tls12: true, tls13: false),
    Row("P-256", 0x0203, tls12: true, tls13: false), Row("P-256", 0x0303, tls12: true, tls13: false),
    Row("P-384", 0x0503, tls12: true, tls13: true), Row("P-384", 0x0403, tls12: true, tls13: false),
    Row("P-521", 0x0603, tls12: true, tls13: true),
    Row("RSA", 0x0401, tls12: true, tls13: false), Row("RSA", 0x0501, tls12: true, tls13: false),
    Row("RSA", 0x0601, tls12: true, tls13: false), Row("RSA", 0x0201, tls12: true, tls13: false),
    Row("RSA", 0x0301, tls12: true, tls13: false),
    Row("RSA", 0x0804, tls12: true, tls13: true), Row("RSA", 0x0805, tls12: true, tls13: true),
    Row("RSA", 0x0806, tls12: true, tls13: true),
    Row("RSA-PSS", 0x0809, tls12: true, tls13: true), Row("RSA-PSS", 0x080a, tls12: true, tls13: true),
    Row("RSA-PSS", 0x080b, tls12: true, tls13: true),
    Row("ED25519", 0x0807, tls12: true, tls13: true), Row("ED448", 0x0808, tls12: true, tls13: true),
  ])
  func `A scheme proves its own kind of key, in the versions that have it`(_ row: Row) throws {
    let signer = try SigningTool(row.key)
    let key = try LeafKey(subjectPublicKeyInfo: signer.publicKey)
    let content = KeyProof.certificateVerifyContent(transcriptHash: Array(repeating: 7, count: 32))
    let signature = try signer.sign(content, row.scheme)
    func proof(_ version: UInt16, over content: [UInt8]) -> KeyProof {
      KeyProof.verify(
        signature: signature, over: content, scheme: row.scheme, offered: [row.scheme], version: version, by: key)
    }
    #expect(proof(0x0303, over: content) == (row.in12 ? .proven : .notProven(.schemeUnfit)))
    #expect(proof(0x0304, over: content) == (row.in13 ? .proven : .notProven(.schemeUnfit)))
    let other = KeyProof.certificateVerifyContent(transcriptHash: Array(repeating: 8, count: 32))
    #expect(!proof(0x0303, over: other).holds && !proof(0x0304, over: other).holds)
    // One key, every other scheme: none may take this signature.
    for scheme: UInt16 in [0x0401, 0x0804, 0x0809, 0x0403, 0x0503, 0x0807, 0x0808, 0x0101, 0x0402, 0x0a0a]
    where scheme != row.scheme {
      let proof = KeyProof.verify(
        signature: signature, over: content, scheme: scheme, offered: [scheme], version: 0x0303, by: key)
      #expect(!proof.holds, "\(scheme)")
    }
  }

  @Test func `What TLS 1.3 signs is the context string between 64 spaces and the hash`() {
    let content = KeyProof.certificateVerifyContent(transcriptHash: [1, 2, 3])
    #expect(content.count == 64 + 33 + 1 + 3)
    #expect(content.prefix(64).allSatisfy { $0 == 0x20 })
    #expect(String(decoding: content[64..<97], as: UTF8.self) == "TLS 1.3, server CertificateVerify")
    #expect(content.suffix(4) == [0, 1, 2, 3])
  }

  @Test func `Without signature_algorithms a client takes SHA-1 alone, and in TLS 1.3 nothing`() throws {
    let signer = try SigningTool("P-256")
    let key = try LeafKey(subjectPublicKeyInfo: signer.publicKey)
    let rows: [(UInt16, UInt16, KeyProof)] = [
      (0x0203, 0x0303, .proven), (0x0403, 0x0303, .notProven(.schemeNotOffered)),
      (0x0403, 0x0304, .notProven(.schemeNotOffered)), (0x0203, 0x0304, .notProven(.schemeNotOffered)),
    ]
    for (scheme, version, wanted) in rows {
      let signature = try signer.sign([1, 2, 3], scheme)
      let proof = KeyProof.verify(
        signature: signature, over: [1, 2, 3], scheme: scheme, offered: nil, version: version, by: key)
      #expect(proof == wanted)
    }
  }

  @Test func `Static RSA wants an RSA key that encrypts`() throws {
    let rows: [(String, KeyProof)] = [
      ("RSA", .keyTransport), ("RSA-PSS", .notProven(.schemeUnfit)), ("P-256", .notProven(.schemeUnfit)),
    ]
    for (name, wanted) in rows {
      let key = try LeafKey(subjectPublicKeyInfo: SigningTool(name).publicKey)
      #expect(KeyProof.keyTransport(by: key) == wanted)
    }
  }

  @Test func `A public key with bytes behind it, or none, is unreadable`() throws {
    let der = try SigningTool("P-256").publicKey
    for broken in [der + [0], Array(der.dropLast()), []] {
      #expect(throws: TLSError.self) { try LeafKey(subjectPublicKeyInfo: broken) }
    }
  }
}
