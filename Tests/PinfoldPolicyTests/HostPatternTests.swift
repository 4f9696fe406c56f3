import PinfoldModel
import PinfoldPolicy
import Testing

@Suite struct HostPatternTests {
  @Test(
    "Patterns have one normal form",
    arguments: [
      ("api.example.com", "api.example.com"), ("API.Example.COM.", "api.example.com"),
      ("*.example.com", "*.example.com"),
      ("**.Example.org:8443", "**.example.org:8443"), ("10.0.0.1", "10.0.0.1"), ("10.0.0.1:1", "10.0.0.1:1"),
      ("2001:DB8::1", "2001:db8::1"), ("[2001:db8::1]", "2001:db8::1"), ("[2001:db8::1]:65535", "[2001:db8::1]:65535"),
      ("::ffff:10.0.0.1", "10.0.0.1"), ("[::ffff:10.0.0.1]:443", "10.0.0.1:443"), ("a_b.example", "a_b.example"),
    ])
  func normalForm(_ written: String, _ normal: String) throws {
    let pattern = try HostPattern(written)
    #expect(pattern.text == normal)
    #expect(try HostPattern(normal) == pattern)
  }

  @Test(
    "What is no pattern is refused with its reason",
    arguments: [
      ("", HostPatternError.badHost), ("*", .misplacedWildcard), ("**", .misplacedWildcard), ("*.", .badHost),
      ("**.", .badHost), ("*.*.example.com", .misplacedWildcard), ("***.example.com", .misplacedWildcard),
      ("api.*", .misplacedWildcard), ("a*.example.com", .misplacedWildcard), ("a..b", .badHost), (".a", .badHost),
      ("a.example.com:", .badPort), ("a.example.com:0", .badPort), ("a.example.com:65536", .badPort),
      ("a.example.com:0443", .badPort), ("a.example.com:+443", .badPort), ("a.example.com:443:443", .badHost),
      ("[::1", .badHost), ("[::1]443", .badHost), ("[10.0.0.1]", .badHost), ("*.10.0.0.1", .wildcardOverAddress),
      ("**.[::1]", .wildcardOverAddress), ("192.168.1", .badHost), ("-a.example.com", .badHost), ("a b", .badHost),
      ("https://a.example.com", .badHost), ("user@a.example.com", .badHost), ("bücher.example", .badHost),
    ])
  func refused(_ text: String, _ error: HostPatternError) {
    #expect(throws: error) { try HostPattern(text) }
  }

  @Test(
    "A pattern matches what it says",
    arguments: [
      ("api.example.com", "api.example.com:443", true), ("api.example.com", "api.example.com:8443", true),
      ("api.example.com", "www.example.com:443", false), ("api.example.com", "x.api.example.com:443", false),
      ("api.example.com:8443", "api.example.com:8443", true), ("api.example.com:8443", "api.example.com:443", false),
      ("*.example.com", "api.example.com:443", true), ("*.example.com", "example.com:443", false),
      ("*.example.com", "a.b.example.com:443", false), ("*.example.com", "apiexample.com:443", false),
      ("**.example.com", "example.com:443", true), ("**.example.com", "a.b.c.example.com:443", true),
      ("**.example.com", "badexample.com:443", false), ("**.example.com", "example.com.evil.org:443", false),
      ("10.0.0.1", "10.0.0.1:443", true), ("10.0.0.1", "[::ffff:10.0.0.1]:443", true), ("::1", "[::1]:443", true),
      ("10.0.0.1", "10.0.0.2:443", false),
    ])
  func matches(_ pattern: String, _ host: String, _ isMatch: Bool) throws {
    let authority = try Samples.authority(host)
    #expect(try HostPattern(pattern).matches(authority) == isMatch)
    let found = try Samples.table([(pattern, [])]).rule(for: authority)
    #expect((found != nil) == isMatch, "the table agrees")
  }
}
