import PinfoldModel
import Testing

@Suite("host and port") struct AuthorityTests {
  @Test("an IPv4-mapped address is the IPv4 address", arguments: ["[::ffff:10.0.0.1]:443", "[::FFFF:a00:1]:443"])
  func mapped(_ text: String) throws {
    let authority = try #require(Authority(text))
    #expect(authority == Authority("10.0.0.1:443"))
    #expect(authority.text == "10.0.0.1:443")
  }

  @Test("other addresses stay as they are", arguments: ["[::10.0.0.1]:443", "[64:ff9b::a00:1]:443", "[::1]:443"])
  func others(_ text: String) throws {
    guard case .address(.v6) = try #require(Authority(text)).host else {
      Issue.record("\(text) is no longer IPv6")
      return
    }
  }

  @Test("a group of an IPv6 address has no sign", arguments: ["fe80::-0:1", "fe80::+0:1", "fe80::-1"])
  func signs(_ text: String) { #expect(IPAddress(text) == nil) }
}
