import PinfoldConfig
import PinfoldModel
import PinfoldPolicy
import Testing

@testable import PinfoldSupply

/// What released servers sent verifies; nothing that differs from it does.
@Suite struct PinRecordCaptureTests {
  private typealias Captured = PinServiceFixture.Captured

  @Test func `both kinds of server are among the captures`() {
    #expect(Set(PinServiceFixture.captured.map(\.format)) == ["ed25519", "jws"])
    #expect(PinServiceFixture.captured.count == 7)
  }

  @Test(arguments: PinServiceFixture.captured)
  func `a captured answer verifies and is read as it was meant`(_ row: PinServiceFixture.Captured) throws {
    let record = try PinRecord(parsing: row.bytes, keys: row.keys, terms: row.terms())
    #expect(record.format.rawValue == row.format)
    #expect(record.keyID == row.keyID)
    #expect(record.pins == row.pins.compactMap { Pin("sha256/\($0)") })
    #expect(record.domain.text == row.host.lowercased())
    #expect(record.created.text == row.made)
    #expect(record.expires.text == row.ends)
    #expect(record.freshUntil == record.expires)
    // As the server writes it: with a line end behind it.
    let again = try PinRecord(parsing: row.bytes + [0x0a], keys: row.keys, terms: row.terms())
    #expect(again == record)
  }

  @Test(arguments: PinServiceFixture.captured)
  func `no flipped bit of a captured answer verifies`(_ row: PinServiceFixture.Captured) throws {
    let keys = try row.keys
    let terms = try row.terms()
    for bit in 0..<(row.bytes.count * 8) {
      var bytes = row.bytes
      bytes[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(throws: PinRecordError.self, "bit \(bit): \(String(decoding: bytes, as: UTF8.self))") {
        try PinRecord(parsing: bytes, keys: keys, terms: terms)
      }
    }
  }

  @Test(arguments: PinServiceFixture.captured)
  func `no part of a captured answer verifies`(_ row: PinServiceFixture.Captured) throws {
    let keys = try row.keys
    let terms = try row.terms()
    for length in 0..<row.bytes.count {
      #expect(throws: PinRecordError.self, "\(length) bytes") {
        try PinRecord(parsing: Array(row.bytes.prefix(length)), keys: keys, terms: terms)
      }
    }
  }

  @Test(arguments: PinServiceFixture.captured)
  func `a captured answer is nothing to another key`(_ row: PinServiceFixture.Captured) throws {
    for other in Set(PinServiceFixture.captured.map(\.key)) where other != row.key {
      do {
        _ = try PinRecord(parsing: row.bytes, keys: PinServiceFixture.keys([other]), terms: row.terms())
        Issue.record("verified by \(other)")
      } catch let error as PinRecordError { #expect(["signature", "algorithm"].contains(error.step)) }
    }
    let all = try PinServiceFixture.keys(Array(Set(PinServiceFixture.captured.map(\.key))))
    #expect(try PinRecord(parsing: row.bytes, keys: all, terms: row.terms()).keyID == row.keyID)
  }

  @Test(arguments: PinServiceFixture.captured)
  func `a captured answer is for its own host and its own time`(_ row: PinServiceFixture.Captured) throws {
    func step(_ terms: PinRecordTerms) throws -> String? {
      do { _ = try PinRecord(parsing: row.bytes, keys: row.keys, terms: terms) } catch let error as PinRecordError {
        return error.step
      }
      return nil
    }
    let made = try #require(Timestamp(row.made))
    let ends = try #require(Timestamp(row.ends))
    #expect(try step(row.terms(host: "other.\(row.host)")) == "domain")
    #expect(try step(row.terms(host: "test")) == "domain")
    #expect(try step(row.terms(now: Timestamp(seconds: made.seconds - 300))) == nil)
    #expect(try step(row.terms(now: Timestamp(seconds: made.seconds - 301))) == "not_yet_valid")
    #expect(try step(row.terms(now: Timestamp(seconds: ends.seconds - 1))) == nil)
    #expect(try step(row.terms(now: ends)) == "expired")
  }

  @Test func `the bytes that a server signed are known to the byte`() throws {
    let row = try #require(PinServiceFixture.captured.first)
    let members = try RecordMembers(row.bytes)
    let signed = PinRecord.withoutSpace(row.bytes[..<members.end(of: 6)]) + [0x7d]
    #expect(signed.count == 287)
    #expect(String(decoding: signed, as: UTF8.self).hasSuffix("\"alg\":\"Ed25519\"}"))
  }
}

/// Which texts are keys.
@Suite struct PinServiceKeyTests {
  @Test func `keys of both kinds are taken, in every written form`() throws {
    let texts = PinServiceFixture.keyTexts
    #expect(texts.good.count == 3)
    let raw = try #require(Hex.decode(texts.raw))
    let keys = try PinServiceFixture.keys(texts.good + [Base64.encode(raw)])
    // The raw spelling is the first key again.
    #expect(keys.ed25519.count == 2 && keys.es256.count == 1)
    #expect(keys.ids == ["7fda4c1e", "a6873073", "a853c117"])
  }

  @Test func `anything else is a complaint at its place`() throws {
    let texts = PinServiceFixture.keyTexts
    #expect(texts.bad.count == 6)
    for text in texts.bad {
      do {
        _ = try PinServiceFixture.keys([texts.good[0], text])
        Issue.record("\(text) was taken")
      } catch let errors as FileErrors {
        #expect(errors.complaints.count == 1)
        #expect(errors.text.hasPrefix("pinfold.json5:8:3: pin_services[0].trusted_keys[1]: "), "\(errors.text)")
        #expect(errors.text.contains("expected base64 of an Ed25519 key"), "\(errors.text)")
      }
    }
  }

  private static let p256 = PinServiceFixture.keyTexts.good.last.flatMap { Base64.decode($0) } ?? []

  @Test func `a P-256 key has one form`() throws {
    let key = Self.p256
    try #require(key.count == 91)
    let odd: [(name: String, bytes: [UInt8])] = [
      ("a point that is not on the curve", key.dropLast() + [key[90] ^ 1]),
      ("a compressed point", [0x30, 0x39] + key[2..<23] + [0x03, 0x22, 0x00, 0x02 + (key[90] & 1)] + key[27..<59]),
      ("a byte behind the key", key + [0]), ("half a key", Array(key.prefix(60))),
      ("the frame of another curve", Array(key[..<22]) + [0x06] + key[23...]),
      ("no point", Array(key[..<27]) + Array(repeating: 0, count: 64)),
    ]
    for (name, bytes) in odd {
      #expect(throws: FileErrors.self, "\(name)") { try PinServiceFixture.keys([Base64.encode(bytes)]) }
    }
  }
}
