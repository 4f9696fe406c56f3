import PinfoldModel
import PinfoldTLS
import Testing

@testable import PinfoldCommand

@Suite struct PinTests {
  let scratch: Scratch
  let authority: DemoAuthority
  let now: Timestamp

  init() throws {
    scratch = try Scratch()
    now = WallClock.now
    authority = try DemoAuthority(commonName: "Test Root", now: now)
    try scratch.write("ca.pem", authority.certificate.pem())
  }

  private func identity(_ names: String..., signedBy signer: DemoAuthority? = nil) throws -> DemoIdentity {
    let hosts = names.compactMap { HostName($0) }
    return try (signer ?? authority).issue(.init(commonName: names[0], hosts: hosts, now: now))
  }

  private func ask(_ upstream: DemoUpstream, host: String) -> Tool {
    Tool("pin", host, "--ca-file", scratch["ca.pem"], "--connect", "127.0.0.1:\(upstream.port)")
  }

  @Test(arguments: [UInt16(0x0303), 0x0304])
  func `a server's pins are printed leaf first, on each TLS version`(version: UInt16) throws {
    let middle = try DemoAuthority(commonName: "Test Middle", now: now, signedBy: authority)
    let leaf = try identity("api.example.test", signedBy: middle)
    let upstream = try DemoUpstream(leaf, versions: version...version, text: "hello")
    defer { upstream.stop() }
    let tool = ask(upstream, host: "api.example.test")
    #expect(tool.status == .good)
    #expect(tool.errors == [])
    #expect(
      tool.output == [
        "\(Pin.publicKey(leaf.chain[0].keyDigest).text)  CN=api.example.test",
        "\(Pin.publicKey(middle.certificate.keyDigest).text)  CN=Test Middle",
      ])
  }

  @Test func `a chain that does not verify is printed, warned of and exits with 1`() throws {
    let stranger = try DemoAuthority(commonName: "Strange Root", now: now)
    let upstream = try DemoUpstream(identity("api.example.test", signedBy: stranger), text: "hello")
    defer { upstream.stop() }
    let tool = ask(upstream, host: "api.example.test")
    #expect(tool.status == .failed)
    #expect(tool.output.count == 1)
    #expect(tool.errors.count == 1)
    #expect(tool.errors.first?.hasPrefix("pinfold: the chain of api.example.test:443 does not verify: ") == true)
  }

  @Test func `a certificate for another host is printed, warned of and exits with 1`() throws {
    let upstream = try DemoUpstream(identity("other.example.test"), text: "hello")
    defer { upstream.stop() }
    let tool = ask(upstream, host: "api.example.test")
    #expect(tool.status == .failed)
    #expect(tool.output.count == 1)
    #expect(tool.errors == ["pinfold: the certificate is not for api.example.test"])
  }

  @Test func `a server that hangs up exits with 1 and prints nothing`() throws {
    let upstream = try DemoUpstream(identity("api.example.test"), versions: 0x0301...0x0301, text: "hello")
    defer { upstream.stop() }
    let tool = ask(upstream, host: "api.example.test")
    #expect(tool.status == .failed)
    #expect(tool.output == [])
    #expect(tool.errors.first?.hasPrefix("pinfold: no pins of api.example.test:443: TLS handshake: ") == true)
  }

  @Test func `nobody listening is told in the system's words`() {
    let tool = Tool("pin", "127.0.0.1:1")
    #expect(tool.status == .failed)
    #expect(tool.errors == ["pinfold: no pins of 127.0.0.1:1: connecting to 127.0.0.1:1: Connection refused"])
  }

  @Test func `the certificates of a file are printed without any connection`() throws {
    let leaf = try identity("api.example.test")
    let text = try authority.certificate.pem() + leaf.chain[0].pem()
    let tool = Tool("pin", "--cert", try scratch.write("chain.pem", text))
    #expect(tool.status == .good)
    #expect(
      tool.output == [
        "\(Pin.publicKey(leaf.chain[0].keyDigest).text)  CN=api.example.test",
        "\(Pin.publicKey(authority.certificate.keyDigest).text)  CN=Test Root",
      ])
  }

  @Test func `a file that is not there is told in the system's words`() {
    let tool = Tool("pin", "--cert", scratch["none"])
    #expect(tool.status == .failed)
    #expect(tool.errors.first?.hasPrefix("pinfold: opening \(scratch["none"]): No such file or directory") == true)
  }

  @Test func `a file without a certificate is an error with its path`() throws {
    let path = try scratch.write("empty.pem", "nothing\n")
    let tool = Tool("pin", "--cert", path)
    #expect(tool.status == .failed)
    #expect(tool.output == [])
    #expect(tool.errors.first?.contains(path) == true)
  }

  struct Misuse: CustomTestStringConvertible {
    let testDescription: String
    let words: [String]
    let message: String
  }

  @Test(arguments: [
    Misuse(testDescription: "nothing to ask", words: [], message: "pin: HOST[:PORT] or --cert FILE is missing"),
    Misuse(testDescription: "both", words: ["a.test", "--cert", "x.pem"], message: "pin: --cert stands alone"),
    Misuse(
      testDescription: "a URL", words: ["https://a.test/"],
      message:
        #"pin: "https://a.test/" is no host; right would be api.example.com, 192.0.2.1:8443 or [2001:db8::1]:443"#),
    Misuse(
      testDescription: "a name to connect to", words: ["a.test", "--connect", "b.test:443"],
      message: #"pin: --connect "b.test:443" is no address; right would be 127.0.0.1:8443"#),
  ])
  func misuse(_ row: Misuse) {
    let tool = Tool(["pin"] + row.words)
    #expect(tool.status == .usage)
    #expect(tool.output == [])
    #expect(tool.errors == ["pinfold: \(row.message) (see \"pinfold pin --help\")"])
  }
}
