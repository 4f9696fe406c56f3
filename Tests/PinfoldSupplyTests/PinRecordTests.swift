import PinfoldConfig
import PinfoldCrypto
import PinfoldModel
import Testing

@testable import PinfoldSupply

/// One change to a good record, and the step that has to notice. Where the change is signed too, only that step can.
struct RecordRow: CustomTestStringConvertible, Sendable {
  let testDescription: String
  let step: String?
  let bytes: @Sendable (RecordMaker) -> [UInt8]

  init(_ name: String, _ step: String?, _ bytes: @escaping @Sendable (RecordMaker) -> [UInt8]) {
    testDescription = name
    self.step = step
    self.bytes = bytes
  }

  /// A record whose maker was changed before it signed.
  static func signed(_ name: String, _ step: String?, _ change: @escaping @Sendable (inout RecordMaker) -> Void)
    -> RecordRow
  {
    RecordRow(name, step) { maker in
      var maker = maker
      change(&maker)
      return maker.ed25519
    }
  }

  /// A record of which the text was changed after it was signed.
  static func text(_ name: String, _ step: String?, _ change: @escaping @Sendable (String) -> String) -> RecordRow {
    RecordRow(name, step) { Array(change(String(decoding: $0.ed25519, as: UTF8.self)).utf8) }
  }

  /// A record of the members that `change` leaves, signed as they are.
  static func members(
    _ name: String, _ step: String?,
    _ change: @escaping @Sendable ([(name: String, value: String)]) -> [(String, String)]
  ) -> RecordRow {
    RecordRow(name, step) { maker in
      let members = change(maker.members).map { (name: $0.0, value: $0.1) }
      let signature = maker.sign(RecordMaker.object(members))
      return Array(RecordMaker.object(members + [("signature", "\"\(signature)\"")]).utf8)
    }
  }
}

@Suite struct PinRecordTests {
  @Test(
    arguments: [
      .signed("as it should be", nil) { _ in },
      .signed("a wildcard of one label", nil) { $0.domain = "\"*.example.com\"" },
      .signed("a domain in capitals and with a point behind it", nil) { $0.domain = "\"API.Example.COM.\"" },
      .signed("a domain with escaped letters", nil) { $0.domain = "\"\\u0061pi.example.com\"" },
      .signed("the wildcard of the name itself", "domain") { $0.domain = "\"*.api.example.com\"" },
      .signed("another host", "domain") { $0.domain = "\"other.example.com\"" },
      .signed("a host that ends like it", "domain") { $0.domain = "\"pi.example.com\"" },
      .signed("all hosts", "domain") { $0.domain = "\"*\"" },
      .signed("all of a top level", "domain") { $0.domain = "\"*.com\"" },
      .signed("a domain with a port", "domain") { $0.domain = "\"api.example.com:443\"" },
      .signed("an empty domain", "domain") { $0.domain = "\"\"" },
      .signed("a domain that is no string", "shape") { $0.domain = "null" },
      .signed("a base64 pin", nil) { $0.pins = "[\"\(Base64.encode([UInt8](repeating: 9, count: 32)))\"]" },
      .signed("no pins", "pins") { $0.pins = "[]" },
      .signed("a pin that is cut short", "pins") { $0.pins = "[\"\(String(repeating: "ab", count: 31))\"]" },
      .signed("a good pin and one that is none", "pins") { $0.pins = $0.pins.dropLast() + ",\"88c329...\"]" },
      .signed("a pin of a certificate", "pins") { $0.pins = "[\"cert-sha256/\(String(repeating: "ab", count: 32))\"]" },
      .signed("64 pins", nil) { maker in maker.pins = Self.pins(64) },
      .signed("65 pins", "pins") { maker in maker.pins = Self.pins(65) },
      .signed("a pin that is a number", "shape") { $0.pins = "[7]" },
      .signed("pins that are no list", "shape") { $0.pins = "\"\(String(repeating: "ab", count: 32))\"" },
      .signed("expired by date", "expired") { $0.expires = 0 },
      .signed("expired by TTL", "expired") { ($0.created, $0.ttl) = (-3600, "3600") },
      .signed("one second left by TTL", nil) { ($0.created, $0.ttl) = (-3599, "3600") },
      .signed("made in five minutes", nil) { ($0.created, $0.expires) = (300, 3900) },
      .signed("made in five minutes and a second", "not_yet_valid") { ($0.created, $0.expires) = (301, 3900) },
      .signed("a TTL of text", "shape") { $0.ttl = "\"3600\"" },
      .signed("a negative TTL", "shape") { $0.ttl = "-1" },
      .signed("half a second of TTL", "shape") { $0.ttl = "0.5" },
      .signed("a TTL that would overflow", "shape") { $0.ttl = "9223372036854775807" },
      .signed("another algorithm", "algorithm") { $0.algorithm = "\"ES256\"" },
      .signed("the algorithm in capitals", "algorithm") { $0.algorithm = "\"ED25519\"" },
      .signed("no algorithm by name", "algorithm") { $0.algorithm = "\"none\"" },
      .signed("a key id of another key", nil) { $0.keyID = "\"7fda4c1e\"" },
      .signed("a key id that is no text", "shape") { $0.keyID = "7" },
    ] as [RecordRow]) func `what is signed is judged`(_ row: RecordRow) throws
  {
    let maker = try RecordMaker()
    #expect(try maker.step(row.bytes(maker)) == row.step)
  }

  private static func pins(_ count: Int) -> String {
    "[" + (0..<count).map { "\"\(Hex.encode([UInt8](repeating: UInt8($0), count: 32)))\"" }.joined(separator: ",") + "]"
  }

  @Test(
    arguments: [
      .text("white space between members, which nobody signs", nil) {
        $0.replacing(",\"", with: " ,\r\n\t\"").replacing("\":", with: "\" : ").replacing("{", with: " { ")
      },
      .text("an escape for a letter of a value", "signature") { $0.replacing("api", with: "\\u0061pi") },
      .text("an escape for a letter of a name", "signature") { $0.replacing("\"domain\"", with: "\"d\\u006fmain\"") },
      .text("a domain in capitals", "signature") { $0.replacing("api", with: "API") },
      .text("a TTL spelled otherwise", "signature") { $0.replacing("3600", with: "3600.0") },
      .text("text behind the record", "shape") { $0 + "{}" },
      .text("a comment", "shape") { $0 + "// x" },
      .text("a byte order mark", "shape") { "\u{feff}" + $0 },
      .text("a trailing comma", "shape") { $0.dropLast() + ",}" },
      .text("a member nobody knows", "shape") { $0.dropLast() + ",\"x\":1}" },
      .text("a second signature", "duplicate_member") { $0.dropLast() + ",\"signature\":\"\"}" },
      .text("a second domain", "duplicate_member") { $0.replacing("\"pins\"", with: "\"domain\":\"x\",\"pins\"") },
      .text("a second domain spelled by escapes", "duplicate_member") {
        $0.replacing("\"pins\"", with: "\"d\\u006fmain\":\"x\",\"pins\"")
      },
      .text("a JWS beside the members", "shape") { "{\"jws\":\"a.b.c\"," + $0.dropFirst() },
      .text("a fingerprint beside the members", "shape") { "{\"fingerprint\":\"ab\"," + $0.dropFirst() },
      .text("a signature without padding", "shape") { $0.replacing("==\"", with: "\"") },
      .text("an empty signature", "signature") { $0.replacing(/"signature":".*"/, with: "\"signature\":\"\"") },
      .text("a list around it", "shape") { "[\($0)]" }, .text("nothing", "shape") { _ in "" },
      .text("no JSON", "shape") { _ in "not json" }, .text("an empty object", "shape") { _ in "{}" },
      .text("an error of the server's", "shape") { _ in "{\"error\":\"Domain not found in whitelist\",\"code\":403}" },
    ] as [RecordRow]) func `what is not signed cannot be changed`(_ row: RecordRow) throws
  {
    let maker = try RecordMaker()
    #expect(try maker.step(row.bytes(maker)) == row.step)
  }

  @Test(arguments: 0..<7) func `each member is needed, once, and in its place`(_ index: Int) throws {
    let maker = try RecordMaker()
    let without = RecordRow.members("", nil) { members in
      members.enumerated().filter { $0.offset != index }.map(\.element)
    }
    #expect(try maker.step(without.bytes(maker)) == "shape")
    let twice = RecordRow.members("", nil) { $0 + [$0[index]] }
    #expect(try maker.step(twice.bytes(maker)) == "duplicate_member")
    let moved = RecordRow.members("", nil) {
      [$0[index]] + $0.enumerated().filter { $0.offset != index }.map(\.element)
    }
    #expect(try maker.step(moved.bytes(maker)) == (index == 0 ? nil : "shape"))
    let null = RecordRow.members("", nil) { members in
      members.enumerated().map { ($1.name, $0 == index ? "null" : $1.value) }
    }
    #expect(try maker.step(null.bytes(maker)) == "shape")
  }

  @Test func `members in the order of their names do not verify`() throws {
    let maker = try RecordMaker()
    let sorted = RecordRow.members("", nil) { $0.sorted { $0.name < $1.name } }
    #expect(try maker.step(sorted.bytes(maker)) == "shape")
  }

  @Test func `a signature over text with spaces does not verify`() throws {
    let maker = try RecordMaker()
    let spaced = RecordMaker.object(maker.members).replacing(",\"", with: ", \"")
    let body = spaced.dropLast() + ", \"signature\": \"\(maker.sign(spaced))\"}"
    #expect(try maker.step(Array(body.utf8)) == "signature")
  }

  @Test func `a record has a limit in bytes`() throws {
    let maker = try RecordMaker()
    let room = PinRecord.byteLimit - maker.ed25519.count
    #expect(try maker.step(maker.ed25519 + Array(repeating: 0x20, count: room)) == nil)
    #expect(try maker.step(maker.ed25519 + Array(repeating: 0x20, count: room + 1)) == "shape")
    #expect(try maker.step(Array(repeating: 0x5b, count: PinRecord.byteLimit)) == "shape")
  }

  struct Lifetime {
    var ttl: Int64
    var expires: Int64
    var min = 60
    var max = 86_400
    /// What comes out, in seconds from when it was made.
    var fresh: Int64
  }

  /// Bounds of a lifetime: TTL and date of expiry from the record, lower and upper bound from the configuration.
  @Test(arguments: [
    Lifetime(ttl: 3600, expires: 7200, fresh: 3600), Lifetime(ttl: 7200, expires: 3600, fresh: 3600),
    Lifetime(ttl: 10, expires: 7200, fresh: 60), Lifetime(ttl: 10, expires: 30, fresh: 30),
    Lifetime(ttl: 0, expires: 7200, fresh: 60), Lifetime(ttl: 90_000, expires: 90_000, max: 600, fresh: 600),
    Lifetime(ttl: 86_400, expires: 86_400, min: 1, max: 2, fresh: 2),
  ]) func `a lifetime is bounded on both sides`(_ row: Lifetime) throws {
    var maker = try RecordMaker()
    (maker.ttl, maker.expires) = ("\(row.ttl)", row.expires)
    let terms = try PinServiceFixture.terms("api.example.com", now: maker.now, min: row.min, max: row.max)
    let record = try PinRecord(parsing: maker.ed25519, keys: maker.keys, terms: terms)
    #expect(record.freshUntil.seconds - maker.now.seconds == row.fresh)
    #expect(record.expires >= record.freshUntil)
  }

  @Test func `a record that is loaded again is bounded from when it arrived`() throws {
    let maker = try RecordMaker()
    func fresh(at offset: Int64, received: Int64) throws -> Int64 {
      let terms = try PinServiceFixture.terms(
        "api.example.com", now: Timestamp(seconds: maker.now.seconds + offset),
        received: Timestamp(seconds: maker.now.seconds + received), max: 600)
      let record = try PinRecord(parsing: maker.ed25519, keys: maker.keys, terms: terms)
      return record.freshUntil.seconds - maker.now.seconds
    }
    #expect(try fresh(at: 0, received: 0) == 600)
    #expect(try fresh(at: 599, received: 0) == 600)
    #expect(throws: PinRecordError.self) { try fresh(at: 600, received: 0) }
    // A clock that went back makes nothing longer.
    #expect(try fresh(at: 0, received: 3000) == 600)
  }

  @Test func `hosts match by one label, whatever their spelling`() throws {
    var maker = try RecordMaker()
    maker.domain = "\"*.example.com\""
    let rows = [
      ("api.example.com", true), ("API.example.com.", true), ("example.com", false), ("a.b.example.com", false),
      ("notexample.com", false), ("example.com.evil.test", false), ("192.0.2.1", false),
    ]
    for (host, isServed) in rows { #expect(try maker.step(maker.ed25519, host: host) == (isServed ? nil : "domain")) }
    maker.domain = "\"192.0.2.1\""
    #expect(try maker.step(maker.ed25519, host: "192.0.2.1") == nil)
    #expect(try maker.step(maker.ed25519, host: "192.0.2.2") == "domain")
  }

  @Test func `what a record says stands in messages without harm`() throws {
    var maker = try RecordMaker()
    maker.domain = "\"a\\u001b[2J\\u202e\\n\(String(repeating: "x", count: 500))\""
    do { _ = try maker.read(maker.ed25519) } catch let error as PinRecordError {
      #expect(error.description.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f })
      #expect(error.description.count < 160)
    }
  }
}
