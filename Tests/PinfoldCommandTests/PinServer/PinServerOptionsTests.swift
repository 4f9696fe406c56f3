import PinfoldModel
import Testing

@testable import PinfoldCommand

/// What the command line of `pin-server` refuses before it serves.
@Suite struct PinServerOptionsTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  struct Row: CustomTestStringConvertible {
    let words: [String]
    let message: String

    init(_ words: String..., says message: String) {
      self.words = words
      self.message = message
    }

    var testDescription: String { words.joined(separator: " ") }
  }

  @Test(arguments: [
    Row(says: "-k FILE is missing"), Row("-k", "x", says: "--domain or --pins is missing"),
    Row("-k", "x", "--domain", "*", says: "--domain \"*\" is no host pattern: "),
    Row("-k", "x", "--domain", "*.com", says: "--domain \"*.com\" is no host pattern: "),
    Row("-k", "x", "--domain", "a.test:443", says: "has a port; a record speaks for a host on every port"),
    Row("-k", "x", "--domain", "a.test", "--format", "jwt", says: "is none of ed25519, jws, fingerprint"),
    Row("-k", "x", "--domain", "a.test", "--listen", "8080", says: "is no address; right would be 127.0.0.1:8080"),
    Row("-k", "x", "--domain", "a.test", "--listen", "a.test:1", says: "is no address"),
    Row("-k", "x", "--domain", "a.test", "--ttl", "0", says: "is no whole number of seconds from 1 to 31536000"),
    Row("-k", "x", "--domain", "a.test", "--ttl", "1h", says: "is no whole number of seconds from 1 to 31536000"),
    Row("-k", "x", "--domain", "a.test", "--ttl", "31536001", says: "is no whole number of seconds"),
    Row("-k", "x", "--domain", "a.test", "--cache", "-1", says: "is no whole number of seconds from 0 to 31536000"),
    Row("-k", "x", "--domain", "a.test", "--resolve", "a.test", says: "is not like api.example.com=127.0.0.1:8443"),
    Row("-k", "x", "--domain", "a.test", "--resolve", "a.test:80=1.2.3.4", says: "is not like"),
    Row("-k", "x", "--domain", "a.test", "--resolve", "a.test=b.test", says: "is not like"),
    Row(
      "-k", "x", "--domain", "a.test", "--resolve", "a.test=1.2.3.4", "--resolve", "A.test=1.2.3.5",
      says: "names a host that is there already"),
    Row("-k", "x", "--pins", "y", "--ca-file", "z", says: "--ca-file is for dialling"),
    Row("-k", "x", "--domain", "a.test", "b.test", says: "unexpected argument \"b.test\""),
  ]) func `a mistake on the command line is usage`(_ row: Row) {
    let tool = Tool(["pin-server"] + row.words)
    #expect(tool.status == .usage)
    #expect(tool.output == [])
    #expect(tool.errors.count == 1 && tool.errors[0].contains(row.message), "\(tool.errors)")
  }

  @Test func `a key or a list that cannot be used ends the start`() throws {
    let missing = Tool("pin-server", "-k", scratch["none"], "--domain", "a.test")
    #expect(missing.status == .failed && missing.errors.first?.contains(scratch["none"]) == true)
    try scratch.write("text", "no key")
    #expect(Tool("pin-server", "-k", scratch["text"], "--domain", "a.test").status == .failed)
    #expect(Tool("keygen", "-o", scratch["key"]).status == .good)
    try scratch.write("pins.json5", "{\"a.test\": []}")
    let list = Tool("pin-server", "-k", scratch["key"], "--pins", scratch["pins.json5"])
    #expect(list.status == .config)
    #expect(list.errors == ["pinfold: \(scratch["pins.json5"]):1:12: [\"a.test\"]: expected at least one pin"])
    let authorities = Tool("pin-server", "-k", scratch["key"], "--domain", "a.test", "--ca-file", scratch["text"])
    #expect(authorities.status == .failed)
  }

  @Test func `redirects are read in every form`() throws {
    let words = [
      "-k", "x", "--domain", "a.test", "--resolve", "a.test=127.0.0.1:8443", "--resolve", "b.test:443=127.0.0.2",
      "--resolve", "c.test=::1", "--resolve", "d.test=[::1]:8443", "--listen", "[::1]:0",
    ]
    let syntax = PinServerCommand.syntax
    let options = try PinServerOptions(Arguments(words, syntax: syntax), of: syntax)
    let text = options.redirects.map { "\($0.key.text)=\($0.value.text)" }.sorted()
    #expect(
      text == [
        "a.test:443=127.0.0.1:8443", "b.test:443=127.0.0.2:443", "c.test:443=[::1]:443", "d.test:443=[::1]:8443",
      ])
    #expect(options.listen.text == "[::1]:0")
  }
}
