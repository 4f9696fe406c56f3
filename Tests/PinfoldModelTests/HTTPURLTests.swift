import PinfoldModel
import Testing

@Suite struct HTTPURLTests {
  @Test(
    "A URL is read into its parts, and written in one form",
    arguments: [
      ("https://pins.example.com/v1/pins", "https://pins.example.com/v1/pins", UInt16(443), "/v1/pins"),
      ("HTTPS://Pins.Example.COM.:443", "https://pins.example.com/", 443, "/"),
      ("http://pins.example.com:8080/a?b=c&d=%2F", "http://pins.example.com:8080/a?b=c&d=%2F", 8080, "/a?b=c&d=%2F"),
      ("https://pins.example.com?q", "https://pins.example.com/?q", 443, "/?q"),
      ("http://[2001:DB8::1]:80/x", "http://[2001:db8::1]/x", 80, "/x"),
      ("https://[::1]:8443/x;y@z", "https://[::1]:8443/x;y@z", 8443, "/x;y@z"),
      ("https://192.0.2.1/~a/!$&'()*+,=:", "https://192.0.2.1/~a/!$&'()*+,=:", 443, "/~a/!$&'()*+,=:"),
    ])
  func reads(text: String, normal: String, port: UInt16, target: String) throws {
    let url = try #require(HTTPURL(text))
    #expect(url.text == normal && url.authority.port == port && url.target == target)
    #expect(url.isSecure == text.lowercased().hasPrefix("https"))
    #expect(HTTPURL(url.text) == url)
  }

  @Test(
    "What could be read in two ways is no URL",
    arguments: [
      "", "https", "https:", "https:/a.test/", "https:a.test", "//a.test/", "ftp://a.test/", "file:///etc/passwd",
      "https://", "https:///x", "https://:443/", "https://user@a.test/", "https://user:word@a.test/",
      "https://a.test/#part", "https://a.test#part", "https://a.test:0/", "https://a.test:65536/", "https://a.test:/",
      "https://a.test:44x/", "https://[::1/", "https://::1/", "https://a..test/", "https://a.test/ b",
      " https://a.test/",
      "https://a.test/\r\nX: y", "https://a.test/\u{e9}", "https://\u{e9}.test/", "https://a.test/%",
      "https://a.test/%4",
      "https://a.test/%4g", "https://a.test/%%41", "https://a.test\\b/", "https://a.test/\\b", "https://a.test/\"",
      "https://a.test/<x>", "https://a.test/{x}", "https://a.test/|", "https://a.test/^", "https://a.test/`",
      "https://127.1/", "https://0x7f.1/", "https://a.test\u{0}/",
    ])
  func refuses(text: String) {
    #expect(HTTPURL(text) == nil)
  }

  @Test("A URL has at most 2048 bytes") func length() {
    let start = "https://a.test/"
    #expect(HTTPURL(start + String(repeating: "a", count: 2048 - start.utf8.count)) != nil)
    #expect(HTTPURL(start + String(repeating: "a", count: 2049 - start.utf8.count)) == nil)
  }

  @Test(
    "A query parameter is added and encoded",
    arguments: [
      ("https://a.test/p", "https://a.test/p?domain=x%20%26y%3D%C3%A9"),
      ("https://a.test/p?", "https://a.test/p?domain=x%20%26y%3D%C3%A9"),
      ("https://a.test/p?k=v", "https://a.test/p?k=v&domain=x%20%26y%3D%C3%A9"),
      ("https://a.test/p?k=v&", "https://a.test/p?k=v&domain=x%20%26y%3D%C3%A9"),
    ])
  func query(text: String, expected: String) throws {
    #expect(try #require(HTTPURL(text)).appending(query: "domain", "x &y=é").text == expected)
  }

  @Test("The Host field has the port only where it is not the scheme's") func hostField() throws {
    #expect(try #require(HTTPURL("https://a.test/")).hostField == "a.test")
    #expect(try #require(HTTPURL("http://a.test:443/")).hostField == "a.test:443")
    #expect(try #require(HTTPURL("http://[::1]/")).hostField == "[::1]")
  }
}
