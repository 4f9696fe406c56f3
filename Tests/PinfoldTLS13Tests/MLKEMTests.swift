import PinfoldModel
import Testing

@testable import PinfoldTLS

/// ML-KEM-768 against published vectors. Sources: NIST's ACVP server, version 1.1.0.40 (usnistgov/ACVP-Server,
/// gen-val/json-files/ML-KEM-keyGen-FIPS203, group ML-KEM-768), and the accumulated vectors of the Go project's
/// crypto/mlkem, which sum up a hundred and ten thousand rounds in one hash each.
@Suite("ML-KEM-768") struct MLKEMTests {
  /// One row of ML-KEM-keyGen-FIPS203. The whole encapsulation key is told by its SHA3-256, which NIST's decapsulation
  /// key contains; the secret vector by its first bytes, since the encapsulation key fixes all of it.
  struct KeyGeneration: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let d: String
    let z: String
    let keyStart: String
    let keyEnd: String
    let secretStart: String
    let keyHash: String
  }

  static let rows = [
    KeyGeneration(
      testDescription: "NIST test case 27",
      d: "6DBB99AE6889AF01DA387D7D99BD4E91BACB11A6051B14AECD4C96F30CD9F9D9",
      z: "360557CADDFCF5FEE7C0DE6A363F095757588C35A3FD11C58677AB5E8797C2B8",
      keyStart: "BC02284C2B36002A8E002311D6FA3ED17088D6157E76867ED2110B7E50A9F038",
      keyEnd: "9A5E09369935779F1B56B9E",
      secretStart: "54DB18751A289F68B462D90388629B33088C2AD32A834380B9E7AAE7DB510DC2",
      keyHash: "9C9032984AE72B7D5E0732A29EC29D8BBC4252A31454185710D280C223A47899")
  ]

  @Test("keys come out as published", arguments: rows) func keyGeneration(_ row: KeyGeneration) throws {
    let d = try #require(Hex.decode(row.d))
    let z = try #require(Hex.decode(row.z))
    let pair = try MLKEM768.keyPair(d: d, z: z)
    let key = Hex.encode(pair.encapsulationKey).uppercased()
    let secret = Hex.encode(pair.decapsulationKey).uppercased()
    #expect(key.count == 2 * 1184 && secret.count == 2 * 2400)
    #expect(key.hasPrefix(row.keyStart) && key.hasSuffix(row.keyEnd))
    #expect(secret.hasPrefix(row.secretStart))
    let hash = Hex.encode(try Keccak.sha3x256.hash(pair.encapsulationKey)).uppercased()
    #expect(row.keyHash == hash)
    #expect(secret.hasSuffix(key + hash + row.z))
  }

  /// `rounds` of key generation, encapsulation, decapsulation, and decapsulation of a random ciphertext, all drawn from
  /// one SHAKE-128 stream and summed up by another.
  @Test("a hundred rounds of everything hash to the published value") func accumulated() throws {
    let rounds = 100
    let perRound = 64 + 32 + MLKEM768.ciphertextCount
    let stream = try Keccak.shake128.output([], count: rounds * perRound)
    var outputs: [UInt8] = []
    for round in 0..<rounds {
      let drawn = Array(stream[(round * perRound)..<((round + 1) * perRound)])
      let pair = try MLKEM768.keyPair(d: Array(drawn[..<32]), z: Array(drawn[32..<64]))
      let sent = try MLKEM768.encapsulate(to: pair.encapsulationKey, message: Array(drawn[64..<96]))
      #expect(try MLKEM768.decapsulate(sent.ciphertext, with: pair.decapsulationKey) == sent.secret)
      let rejected = try MLKEM768.decapsulate(Array(drawn[96...]), with: pair.decapsulationKey)
      outputs += pair.encapsulationKey + sent.ciphertext + sent.secret + rejected
    }
    #expect(
      Hex.encode(try Keccak.shake128.output(outputs, count: 32))
        == "1114b1b6699ed191734fa339376afa7e285c9e6acf6ff0177d346696ce564415")
  }

  @Test("one flipped bit of a ciphertext gives another secret, without an error") func implicitRejection() throws {
    let pair = try MLKEM768.keyPair(d: [UInt8](repeating: 1, count: 32), z: [UInt8](repeating: 2, count: 32))
    let sent = try MLKEM768.encapsulate(to: pair.encapsulationKey, message: [UInt8](repeating: 3, count: 32))
    for position in [0, 500, 959, 960, 1087] {
      var broken = sent.ciphertext
      broken[position] ^= 1
      let secret = try MLKEM768.decapsulate(broken, with: pair.decapsulationKey)
      #expect(secret.count == 32 && secret != sent.secret)
    }
  }

  @Test("wrong lengths and numbers over the modulus are errors") func malformed() throws {
    let pair = try MLKEM768.keyPair(d: [UInt8](repeating: 4, count: 32), z: [UInt8](repeating: 5, count: 32))
    let message = [UInt8](repeating: 6, count: 32)
    #expect(throws: TLSError.self) { try MLKEM768.keyPair(d: [1], z: message) }
    #expect(throws: TLSError.self) {
      try MLKEM768.encapsulate(to: Array(pair.encapsulationKey.dropLast()), message: message)
    }
    var over = pair.encapsulationKey
    over[0] = 0xff
    over[1] |= 0x0f
    #expect(throws: TLSError.self) { try MLKEM768.encapsulate(to: over, message: message) }
    for count in [0, 1087, 1089] {
      #expect(throws: TLSError.self) {
        try MLKEM768.decapsulate([UInt8](repeating: 0, count: count), with: pair.decapsulationKey)
      }
    }
  }

  @Test("transforms are undone exactly, and multiply like polynomials") func transforms() {
    var one = Polynomial()
    one.coefficients[0] = 1
    var last = Polynomial()
    last.coefficients[255] = 3328
    var x = Polynomial()
    x.coefficients[1] = 1
    #expect(last.transformed().restored() == last)
    #expect((one.transformed() * last.transformed()).restored() == last)
    // X · (−X²⁵⁵) = −X²⁵⁶ = 1.
    #expect((x.transformed() * last.transformed()).restored() == one)
  }
}
