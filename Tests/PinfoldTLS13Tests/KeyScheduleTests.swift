import PinfoldModel
import Testing

@testable import PinfoldTLS

/// The key schedule and record protection against the example of RFC 8448 §3, and against themselves.
@Suite("key schedule and records") struct KeyScheduleTests {
  private func secret(_ hex: String) throws -> SecretBytes {
    var bytes = try #require(Hex.decode(hex))
    return SecretBytes(taking: &bytes)
  }

  @Test("RFC 8448 §3: shared secret and transcript give the handshake secrets, keys and IV") func rfc8448() throws {
    let schedule = KeySchedule13(.aes128GCM)
    let shared = try secret("8bd4054fb55b9d63fdfbacf9f04b9f0d35e6d63f537563efd46272900f89492d")
    let transcript = try #require(Hex.decode("860c06edc07858ee8e78f0e7428c58edd6b43f2ca3e6e95f02ed063cf0e1cad8"))
    let secrets = try schedule.handshakeSecrets(shared: shared, transcriptHash: transcript)
    let client = try #require(Hex.decode("b3eddb126e067f35a780b3abf45e2d8f3b1a950738f52e9600746a0e27a55a21"))
    let server = try #require(Hex.decode("b67b7d690cc16c4e75e54213cb2d37b4e9c912bcded9105d42befd59d391ad38"))
    #expect(secrets.client.matches(client))
    #expect(secrets.server.matches(server))
    let keys = try DerivationKey(secrets.server, .aes128GCM).recordKeys()
    #expect(keys.key.matches(try #require(Hex.decode("3fce516009c21727d0f2e4e86ee403bc"))))
    #expect(keys.iv.matches(try #require(Hex.decode("5d313eb2671276ee13000b30"))))
  }

  @Test("what is sealed opens with the same secret, in order, and with no other", arguments: Suite13.allCases)
  func sealing(_ suite: Suite13) throws {
    var bytes = [UInt8](repeating: 3, count: suite.hashCount)
    let secret = SecretBytes(taking: &bytes)
    let sealing = try RecordProtection(suite, secret: secret, .sealing)
    let records = try (0..<3).map { try #require(sealing.seal(type: 22, content: [UInt8](repeating: $0, count: 40))) }
    let opening = try RecordProtection(suite, secret: secret, .opening)
    for (index, record) in records.enumerated() {
      let opened = try #require(opening.open(record[...]))
      #expect(opened.type == 22 && Array(opened.content) == [UInt8](repeating: UInt8(index), count: 40))
    }
    let late = try RecordProtection(suite, secret: secret, .opening)
    #expect(late.open(records[1][...]) == nil)
    for index in records[0].indices {
      var broken = records[0]
      broken[index] ^= 0x80
      #expect(late.open(broken[...]) == nil)
    }
    // After all those failures the sequence has not moved.
    #expect(late.open(records[0][...]) != nil)
  }

  @Test("a record of padding alone, and one shorter than its tag, do not open") func degenerate() throws {
    var bytes = [UInt8](repeating: 3, count: 32)
    let secret = SecretBytes(taking: &bytes)
    let sealing = try RecordProtection(.aes128GCM, secret: secret, .sealing)
    // Type zero is what padding looks like.
    let record = try #require(sealing.seal(type: 0, content: [0, 0, 0]))
    let opening = try RecordProtection(.aes128GCM, secret: secret, .opening)
    #expect(opening.open(record[...]) == nil)
    for count in [0, 1, 16] {
      #expect(opening.open(([23, 3, 3, 0, UInt8(count)] + [UInt8](repeating: 0, count: count))[...]) == nil)
    }
    for count in 0..<5 { #expect(opening.open([UInt8](repeating: 23, count: count)[...]) == nil) }
    #expect(sealing.open(record[...]) == nil, "made for the other direction")
    #expect(opening.seal(type: 22, content: [1]) == nil, "made for the other direction")
    #expect(sealing.seal(type: 22, content: [UInt8](repeating: 0, count: (1 << 14) + 1)) == nil)
  }
}
