import PinfoldConfig
import PinfoldModel
import PinfoldPolicy
import Testing

/// The file behind `pin-server --pins`.
@Suite struct PinListTests {
  private static let pin = "sha256/\(String(repeating: "ab", count: 32))"
  private static let other = "sha256/\(String(repeating: "cd", count: 32))"

  private func read(_ text: String) throws -> RuleTable {
    try PinList(reading: Array(text.utf8), file: "pins.json5").table
  }

  @Test func `hosts have their pins in the order of the file, or by their parts`() throws {
    let table = try read(
      """
      { // the next key comes second
        "api.example.com": ["\(Self.pin)", "\(Self.other)"],
        "*.example.com": { backup: "\(Self.other)", primary: "\(Self.pin)" } }
      """)
    for host in ["api.example.com", "www.example.com"] {
      let rule = table.rule(for: Authority(host: try #require(HostName(host)), port: 443))
      #expect(rule?.pins.entries.map(\.pin.text) == [Pin(Self.pin), Pin(Self.other)].map { $0?.text })
    }
    #expect(table.count == 2)
    #expect(try read("{}").count == 0)
  }

  @Test(arguments: [
    ("[]", "pins.json5:1:1: expected an object from hosts to pins, found a list"),
    ("{", "pins.json5:1:2: expected a member's name, found the end of the text"),
    (
      "{\"a.test\": []}", "pins.json5:1:12: [\"a.test\"]: expected at least one pin"
    ),
    (
      "{\"a.test:443\": [\"\(pin)\"]}",
      "pins.json5:1:2: [\"a.test:443\"]: a record speaks for a host on every port: leave the port out"
    ),
    (
      "{\"a.test\": [\"cert-\(pin)\"]}",
      "pins.json5:1:12: [\"a.test\"]: records have pins of keys (sha256/…), not of certificates"
    ),
    ("{\"a.test\": [\"\(pin)\"], \"A.test.\": [\"\(pin)\"]}", "a.test is there already"),
    ("{\"*.com\": [\"\(pin)\"]}", "\"com\" is a public suffix"), ("{\"*\": [\"\(pin)\"]}", "is no host pattern"),
    ("{\"a.test\": [\"ab\"]}", "\"ab\" is not a pin"), ("{\"a.test\": \"\(pin)\"}", "expected a list of pins"),
    ("{\"a.test\": {primry: \"\(pin)\"}}", "did you mean \"primary\"?"),
  ])
  func `a mistake is told with its place`(_ text: String, _ message: String) throws {
    let errors = try #require(throws: FileErrors.self) { _ = try read(text) }
    #expect(errors.text == message || (!message.hasPrefix("pins") && errors.text.contains(message)), "\(errors.text)")
  }
}
