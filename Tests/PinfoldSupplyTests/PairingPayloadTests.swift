import PinfoldModel
import Testing

@testable import PinfoldSupply

@Suite struct PairingPayloadTests {
  private static let hex = "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF"
  private static let base64 = "ABEiM0RVZneImaq7zN3u/wARIjNEVWZ3iJmqu8zd7v8="
  private static var colons: String {
    stride(from: 0, to: 64, by: 2).map { String(Array(hex)[$0...($0 + 1)]) }.joined(separator: ":")
  }

  private static func text(
    version: String = #""1""#, host: String = #""192.168.1.42""#, port: String = "8443", code: String = #""271-828""#,
    expires: String = #""2026-11-21T00:00:00Z""#, fingerprint: String = "\"\(hex)\"", more: String = ""
  ) -> String {
    #"{"version":\#(version),"host":\#(host),"port":\#(port),"code":\#(code),"expiresAt":\#(expires),"#
      + #""certificateFingerprint":\#(fingerprint)\#(more)}"#
  }

  private static func read(_ text: String) throws(PairingError) -> PairingPayload {
    try PairingPayload(Array(text.utf8))
  }

  @Test("Every form of the fingerprint is the same certificate") func fingerprints() throws {
    let bytes = try #require(Hex.decode(Self.hex))
    let digest = try #require(Digest256(bytes))
    for form in [Self.hex, Self.hex.lowercased(), Self.colons, Self.colons.lowercased(), Self.base64] {
      #expect(try Self.read(Self.text(fingerprint: "\"\(form)\"")).fingerprint == digest, "\(form)")
    }
  }

  @Test("Host and port are brought to their normal form, and the time may be written in three ways") func forms() throws
  {
    #expect(try Self.read(Self.text()).authority.text == "192.168.1.42:8443")
    #expect(try Self.read(Self.text(host: #""Printer.LOCAL.""#)).authority.text == "printer.local:8443")
    #expect(try Self.read(Self.text(host: #""[fd00::1]""#)).authority.text == "[fd00::1]:8443")
    #expect(try Self.read(Self.text(host: #""fd00::1""#)).authority.text == "[fd00::1]:8443")
    let time = Timestamp("2026-11-21T00:00:00Z")
    for expires in [#""2026-11-21T01:00:00+01:00""#, "1795219200", "1795219200000"] {
      #expect(try Self.read(Self.text(expires: expires)).expires == time, "\(expires)")
    }
    #expect(try Self.read(Self.text(more: #","name":"TV""#)).authority.port == 8443)
  }

  struct Row: CustomTestStringConvertible {
    let testDescription: String
    let text: String
    let error: PairingError

    init(_ description: String, _ text: String, _ error: PairingError) {
      (testDescription, self.text, self.error) = (description, text, error)
    }
  }

  private static let bad = [
    Row("nothing", "", .notJSON), Row("a list", "[]", .notJSON), Row("JSON5", "{version:'1'}", .notJSON),
    Row("text behind it", text() + "x", .notJSON), Row("a member twice", text(more: #","port":1"#), .notJSON),
    Row("no version", "{}", .version), Row("version 2", text(version: #""2""#), .version),
    Row("a version of another kind", text(version: "1"), .version),
    Row("no host", text(host: "null"), .malformed("host")), Row("no name", text(host: #""a b""#), .malformed("host")),
    Row("a URL", text(host: #""https://a.local""#), .malformed("host")),
    Row("a host with its port", text(host: #""a.local:1""#), .malformed("host")),
    Row("a public address", text(host: #""93.184.216.34""#), .notLocal(.address(.v4(0x5db8_d822)))),
    Row("a public name", text(host: #""example.com""#), .notLocal(.name("example.com"))),
    Row("an address of a cloud", text(host: #""169.254.169.254""#), .notLocal(.address(.v4(0xa9fe_a9fe)))),
    Row("port 0", text(port: "0"), .malformed("port")), Row("port 65536", text(port: "65536"), .malformed("port")),
    Row("a port as text", text(port: #""8443""#), .malformed("port")),
    Row("half a port", text(port: "80.5"), .malformed("port")), Row("no code", text(code: "null"), .malformed("code")),
    Row("an empty code", text(code: #""""#), .malformed("code")),
    Row("no time", text(expires: #""soon""#), .malformed("expiresAt")),
    Row("a time before all", text(expires: "-1"), .malformed("expiresAt")),
    Row("a SHA-1", text(fingerprint: "\"\(hex.prefix(40))\""), .malformed("certificateFingerprint")),
    Row("a colon too many", text(fingerprint: "\"\(colons):\""), .malformed("certificateFingerprint")),
    Row(
      "a colon in another place", text(fingerprint: "\"0:\(hex.dropFirst())\""), .malformed("certificateFingerprint")),
    Row("base64 without padding", text(fingerprint: "\"\(base64.dropLast())\""), .malformed("certificateFingerprint")),
    Row("a pin", text(fingerprint: "\"cert-sha256/\(base64)\""), .malformed("certificateFingerprint")),
  ]

  @Test(arguments: bad) func `what is no payload pairs with nothing, and the code is not told`(_ row: Row) {
    #expect(throws: row.error) { try Self.read(row.text) }
    #expect(!row.error.description.contains("271-828"))
    #expect(row.error.description.split(separator: "\n").count == 1)
  }

  @Test("No prefix of a payload is one") func prefixes() {
    let bytes = Array(Self.text().utf8)
    for end in 0..<bytes.count { #expect(throws: PairingError.self) { try PairingPayload(Array(bytes[..<end])) } }
  }

  @Test("A payload ends with its time") func expiry() throws {
    let payload = try Self.read(Self.text())
    try payload.requireValid(at: Timestamp(seconds: payload.expires.seconds - 1))
    #expect(throws: PairingError.expired(payload.expires)) { try payload.requireValid(at: payload.expires) }
  }
}
