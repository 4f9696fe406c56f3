import PinfoldModel
import Testing

@testable import PinfoldSupply

@Suite struct PinRecordJWSTests {
  @Test(arguments: PinServiceFixture.jws.times)
  func `dates are judged as the family's clients judge them`(_ row: PinServiceFixture.JWS.Times) throws {
    var maker = try RecordMaker()
    maker.now = Timestamp(seconds: PinServiceFixture.jws.clock)
    (maker.created, maker.expires, maker.ttl) = (row.iat, row.exp, "\(row.exp - row.iat)")
    let expected = ["ok": nil, "tokenExpired": "expired", "invalidTimestamp": "not_yet_valid"][row.expect]
    #expect(try maker.step(RecordMaker.jws(maker.compact())) == expected)
  }

  @Test(arguments: PinServiceFixture.jws.malformed)
  func `what is no JWS is refused for its shape`(_ text: String) throws {
    #expect(try RecordMaker().step(RecordMaker.jws(text)) == "shape")
  }

  @Test(
    arguments: [
      ("{\"alg\":\"EdDSA\"}", nil), ("{\"alg\":\"EdDSA\",\"kid\":\"x\",\"typ\":\"JWT\"}", nil),
      ("{\"alg\":\"EdDSA\",\"unknown\":{\"a\":[1]}}", nil), ("{\"alg\":\"none\"}", "algorithm"),
      ("{\"alg\":\"None\"}", "algorithm"), ("{\"alg\":\"HS256\",\"typ\":\"JWT\"}", "algorithm"),
      ("{\"alg\":\"ES256\"}", "algorithm"), ("{\"alg\":\"RS256\"}", "algorithm"), ("{\"alg\":\"EdDSA \"}", "algorithm"),
      ("{\"alg\":\"eddsa\"}", "algorithm"), ("{\"alg\":\"\"}", "algorithm"), ("{}", "shape"), ("[]", "shape"),
      ("{\"alg\":[\"EdDSA\"]}", "shape"), ("{\"alg\":\"EdDSA\",\"alg\":\"EdDSA\"}", "duplicate_member"),
      ("{\"alg\":\"EdDSA\",\"kid\":7}", "shape"), ("{\"alg\":\"EdDSA\",\"crit\":[\"exp\"]}", "algorithm"),
      ("{\"alg\":\"EdDSA\",\"b64\":false,\"crit\":[\"b64\"]}", "algorithm"),
      ("{\"alg\":\"EdDSA\",\"jwk\":{\"kty\":\"OKP\"}}", "algorithm"),
      ("{\"alg\":\"EdDSA\",\"x5c\":[\"\"]}", "algorithm"),
      ("{\"alg\":\"EdDSA\",\"jku\":\"https://a\"}", "algorithm"),
      ("{\"alg\":\"EdDSA\",\"x5u\":\"https://a\"}", "algorithm"),
      ("{\"alg\":\"EdDSA\",\"x5t\":\"\"}", "algorithm"), ("{\"alg\":\"EdDSA\",\"x5t#S256\":\"\"}", "algorithm"),
      ("{\"alg\":\"EdDSA\",}", "shape"), ("{alg:\"EdDSA\"}", "shape"), ("", "shape"),
    ] as [(String, String?)]) func `a header cannot ask for trust`(_ header: String, _ step: String?) throws
  {
    let maker = try RecordMaker()
    #expect(try maker.step(RecordMaker.jws(maker.compact(header: header))) == step)
  }

  @Test(
    arguments: [
      ("", "\"iss\":\"x\",", nil), ("", "\"nbf\":0,", nil), ("", "\"nbf\":1795219500,", nil),
      ("", "\"nbf\":1795219501,", "not_yet_valid"), ("", "\"nbf\":\"x\",", "shape"),
      ("", "\"exp\":1,", "duplicate_member"),
      ("", "\"iss\":{\"a\":1,\"a\":2},", "shape"), ("\"exp\":1795222800,", "", "shape"),
      ("\"iat\":1795219200,", "", "shape"), ("\"domain\":\"api.example.com\",", "", "shape"),
      (",\"ttl_seconds\":3600", "", "shape"), ("1795222800", "\"1795222800\"", "shape"),
      ("1795222800", "1e999", "shape"),
      ("1795222800", "-1", "shape"), ("1795222800", "99999999999999999999", "shape"),
      ("1795219200", "1795219200.5", "shape"), ("api.", "", "domain"), ("ab", "a", "pins"),
      ("\"ttl_seconds\":3600", "\"ttl_seconds\":\"3600\"", "shape"),
    ] as [(String, String, String?)])
  func `a payload is judged once its signature holds`(_ removed: String, _ added: String, _ step: String?) throws {
    let maker = try RecordMaker()
    #expect(maker.payload.contains(removed) || removed.isEmpty)
    let payload =
      removed.isEmpty ? "{" + added + maker.payload.dropFirst() : maker.payload.replacing(removed, with: added)
    #expect(try maker.step(RecordMaker.jws(maker.compact(payload: payload))) == step)
  }

  @Test func `base64 has one spelling`() throws {
    let maker = try RecordMaker()
    let good = maker.compact()
    #expect(try maker.step(RecordMaker.jws(good)) == nil)
    let parts = good.split(separator: ".").map(String.init)
    let signature = try #require(Base64.decodeURLSafe(parts[2]))
    let standard = Base64.encode(signature)
    // The last character of 86 stands for two bits of the signature and four that have to be zero.
    let last = try #require(parts[2].utf8.last)
    let loose = parts[2].dropLast() + String(Unicode.Scalar(last + 1))
    let odd: [String] = [
      good + "=", good + "==", good + ".", "." + good, good + " ", " " + good, good + "\\n",
      parts[0] + "=." + parts[1] + "." + parts[2], parts[0] + "." + parts[1] + "." + loose,
      parts[0] + "." + parts[1] + "." + standard, parts[0] + "." + parts[1] + ".", parts[0] + "." + parts[1],
      parts[0] + ".." + parts[2], "." + parts[1] + "." + parts[2],
    ]
    for text in odd { #expect(try maker.step(RecordMaker.jws(text)) == "shape", "\(text)") }
    for length in [0, 32, 63, 65, 128] where length > 0 {
      let text = parts[0] + "." + parts[1] + "." + RecordMaker.urlSafe([UInt8](repeating: 7, count: length))
      #expect(try maker.step(RecordMaker.jws(text)) == "signature")
    }
  }

  @Test func `parts of two good records make no third`() throws {
    var maker = try RecordMaker()
    let first = maker.compact().split(separator: ".")
    maker.domain = "\"*.example.com\""
    let second = maker.compact().split(separator: ".")
    #expect(first[0] == second[0])
    for parts in [[first[0], second[1], first[2]], [first[0], first[1], second[2]]] {
      #expect(try maker.step(RecordMaker.jws(parts.joined(separator: "."))) == "signature")
    }
  }

  @Test func `a JWS stands alone`() throws {
    let maker = try RecordMaker()
    let text = maker.compact()
    for body in [
      "{\"jws\":\"\(text)\",\"x\":1}", "{\"jws\":\"\(text)\",\"pins\":[]}", "\"\(text)\"", text, "{\"jws\":7}",
    ] {
      #expect(try maker.step(Array(body.utf8)) == "shape")
    }
    #expect(try maker.step(Array("{\"jws\":\"\(text)\",\"jws\":\"\(text)\"}".utf8)) == "duplicate_member")
    #expect(try maker.step(Array(" { \"jws\" : \"\(text)\" }\n".utf8)) == nil)
  }
}

/// Records that bind neither host nor lifetime.
@Suite struct PinRecordFingerprintTests {
  private func record(
    _ maker: RecordMaker, domain: String = "api.example.com", ttl: String = "600", signature: String? = nil
  ) -> [UInt8] {
    let fingerprint = String(repeating: "ab", count: 32)
    let text = signature ?? maker.sign(fingerprint)
    return Array(
      "{\"domain\":\"\(domain)\",\"fingerprint\":\"\(fingerprint)\",\"signature\":\"\(text)\",\"ttl\":\(ttl)}".utf8)
  }

  @Test func `they are off unless the service is set to send them`() throws {
    let maker = try RecordMaker()
    #expect(try maker.step(record(maker)) == "unbound")
    let taken = try maker.read(record(maker), unbound: true)
    #expect(taken.format == .fingerprint)
    #expect(taken.pins.count == 1)
    #expect(taken.created == maker.now)
    #expect(taken.freshUntil.seconds - maker.now.seconds == 600)
  }

  @Test func `their lifetime is counted from their arrival and bounded on both sides`() throws {
    let maker = try RecordMaker()
    for (ttl, fresh) in [("1", 60), ("600", 600), ("86400", 86_400), ("99999999", 86_400)] as [(String, Int64)] {
      let taken = try maker.read(record(maker, ttl: ttl), unbound: true)
      #expect(taken.freshUntil.seconds - maker.now.seconds == fresh)
    }
    let late = try PinServiceFixture.terms(
      "api.example.com", now: Timestamp(seconds: maker.now.seconds + 600), received: maker.now, unbound: true)
    #expect(throws: PinRecordError.expired(late.now)) {
      try PinRecord(parsing: record(maker), keys: maker.keys, terms: late)
    }
  }

  @Test func `signature, domain and shape are judged as elsewhere`() throws {
    let maker = try RecordMaker()
    let other = try RecordMaker()
    let good = String(decoding: record(maker), as: UTF8.self)
    let rows: [([UInt8], String)] = [
      (record(other), "signature"), (record(maker, signature: ""), "signature"),
      (record(maker, signature: "x"), "shape"),
      (record(maker, domain: "b.example.com"), "domain"), (record(maker, domain: "*.com"), "domain"),
      (record(maker, ttl: "-1"), "shape"), (Array(good.replacing("abab", with: "abac").utf8), "signature"),
      (Array(good.replacing("abab", with: "ABAB").utf8), "signature"),
      (Array((good.dropLast() + ",\"ttl\":1}").utf8), "duplicate_member"),
      (Array((good.dropLast() + ",\"x\":1}").utf8), "shape"),
      (Array(good.replacing(",\"ttl\":600", with: "").utf8), "shape"),
    ]
    for (bytes, step) in rows { #expect(try maker.step(bytes, unbound: true) == step) }
  }

  @Test func `a signature of one shape is none in another`() throws {
    let maker = try RecordMaker()
    let jws = maker.compact()
    let signature = try #require(jws.split(separator: ".").last.flatMap { Base64.decodeURLSafe($0) })
    #expect(try maker.step(record(maker, signature: Base64.encode(signature)), unbound: true) == "signature")
  }
}
