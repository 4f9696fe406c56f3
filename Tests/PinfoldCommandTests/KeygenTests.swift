import PinfoldCrypto
import PinfoldModel
import Testing

@testable import PinfoldCommand

@Suite struct KeygenTests {
  let scratch: Scratch

  init() throws { scratch = try Scratch() }

  @Test func `standard output is one line, the 32 raw bytes in base64, and the secret is private`() throws {
    let tool = Tool("keygen", "-o", scratch["key"])
    #expect(tool.status == .good)
    #expect(tool.errors == [])
    #expect(tool.output.count == 1)
    let line = try #require(tool.output.first)
    #expect(Base64.decode(line)?.count == 32)
    #expect(scratch.mode("key") == 0o600)
    #expect(!(try scratch.read("key").contains(line)))
    var warnings: [String] = []
    #expect(try Ed25519SecretKey(path: scratch["key"], warnings: &warnings).publicKey.text == line)
    #expect(warnings == [])
  }

  @Test func `two keys are two keys`() {
    let first = Tool("keygen", "-o", scratch["first"])
    let second = Tool("keygen", "-o", scratch["second"])
    #expect(first.output != second.output)
  }

  @Test func `an existing file is kept`() throws {
    try scratch.write("key", "precious")
    let tool = Tool("keygen", "-o", scratch["key"])
    #expect(tool.status == .failed)
    #expect(tool.output == [])
    let path = scratch["key"]
    #expect(tool.errors == ["pinfold: cannot create \"\(path)\": a file of that name exists, and keys are kept"])
    #expect(try scratch.read("key") == "precious")
  }

  @Test func `a directory that is missing is told with its path`() {
    let tool = Tool("keygen", "-o", scratch["missing/key"])
    #expect(tool.status == .failed)
    #expect(tool.output == [])
    #expect(tool.errors.count == 1)
    #expect(tool.errors.first?.contains(scratch["missing/key"]) == true)
    #expect(tool.errors.first?.hasSuffix("No such file or directory") == true)
  }

  @Test func `without a file name nothing is made`() {
    let tool = Tool("keygen")
    #expect(tool.status == .usage)
    #expect(tool.errors == [#"pinfold: keygen: -o FILE is missing (see "pinfold keygen --help")"#])
  }
}
