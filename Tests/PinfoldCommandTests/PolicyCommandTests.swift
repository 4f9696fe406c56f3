import Glibc
import PinfoldModel
import Testing

@testable import PinfoldCommand

/// A directory with a signing key, and what operators do with it.
struct PolicyFolder {
  static let pin = "sha256/" + String(repeating: "ab", count: 32)
  static let otherPin = "sha256/" + String(repeating: "cd", count: 32)

  let scratch: Scratch
  /// The public half of `signing.key`.
  let publicKey: String

  init() throws {
    scratch = try Scratch()
    publicKey = try #require(Tool("keygen", "-o", scratch["signing.key"]).output.first)
  }

  /// A policy with two rules that is valid for a day around now, but for what the arguments say.
  static func policy(
    version: Int = 7, issued: Int64 = -3600, expires: Int64 = 86_400,
    hosts: String = """
    "api.example.com": { pins: ["\(pin)", "\(otherPin)"] },
    "*.example.org": { pins: { primary: "\(pin)", backup: "\(otherPin)" }, mode: "report" },
    """
  ) -> String {
    let now = WallClock.now.seconds
    return """
      { version: \(version), issued_at: "\(Timestamp(seconds: now + issued).text)",
        expires_at: "\(Timestamp(seconds: now + expires).text)", ssl_pinning_config: { hosts: { \(hosts) } } }
      """
  }

  /// Signs `policy` as `policy.signed.json`.
  @discardableResult func sign(_ policy: String = Self.policy()) throws -> Tool {
    try scratch.write("policy.json5", policy)
    return Tool(
      "sign", "-k", scratch["signing.key"], scratch["policy.json5"], "-o", scratch["policy.signed.json"])
  }

  func verify(_ key: String? = nil) -> Tool {
    Tool("verify", "-p", key ?? publicKey, scratch["policy.signed.json"])
  }

  /// Writes a configuration that trusts the key, and returns its path.
  func configure(_ more: String = "") throws -> String {
    try scratch.write(
      "pinfold.json5",
      """
      { state_dir: "state",
        policy: { bundles: ["policy.signed.json"], trusted_keys: ["\(publicKey)"] }, \(more) }
      """)
  }
}

@Suite struct SignAndVerifyTests {
  let place: PolicyFolder

  init() throws { place = try PolicyFolder() }

  private func keyID(_ key: String) throws -> String {
    let listing = try ChildProcess(
      "/bin/sh", ["-c", "printf %s \"$1\" | base64 -d | sha256sum | cut -c 1-16", "sh", key])
    return listing.output.split(separator: "\n").first.map(String.init) ?? ""
  }

  @Test func `what sign writes, verify takes, and both say the same`() throws {
    let signed = try place.sign()
    #expect(signed.status == .good)
    let verified = place.verify()
    #expect(verified.status == .good)
    #expect(verified.errors == [])
    #expect(verified.output == signed.output)
    #expect(verified.output.first == "keyid: \(try keyID(place.publicKey))")
    #expect(verified.output.contains("version: 7"))
    #expect(verified.output.contains("hosts: 2"))
    #expect(verified.output.count == 5)
    #expect(place.scratch.mode("policy.signed.json") == 0o644)
  }

  @Test func `a loosening rule is warned of when it is signed`() throws {
    let signed = try place.sign()
    #expect(signed.errors.contains { $0.hasPrefix("pinfold: warning: *.example.org: mode: \"report\"") })
  }

  @Test func `another key's signature is refused`() throws {
    try place.sign()
    let stranger = Tool("keygen", "-o", place.scratch["stranger.key"]).output[0]
    let verified = place.verify(stranger)
    #expect(verified.status == .failed)
    #expect(verified.output == [])
    #expect(verified.errors.first?.contains("0 of 1 required signatures hold") == true)
  }

  @Test func `every key that is given must have signed`() throws {
    try place.sign()
    let other = Tool("keygen", "-o", place.scratch["other.key"]).output[0]
    let file = place.scratch["policy.signed.json"]
    #expect(Tool("verify", "-p", place.publicKey, "-p", other, file).status == .failed)
    let both = Tool(
      "sign", "-k", place.scratch["signing.key"], "-k", place.scratch["other.key"], place.scratch["policy.json5"],
      "-o", file)
    #expect(both.status == .good)
    let verified = Tool("verify", "-p", place.publicKey, "-p", other, file)
    #expect(verified.status == .good)
    #expect(verified.output.count { $0.hasPrefix("keyid: ") } == 2)
    #expect(Tool("verify", "-p", other, file).status == .good)
  }

  @Test func `a changed byte of the payload is refused`() throws {
    try place.sign()
    let text = try place.scratch.read("policy.signed.json")
    let payload = try #require(text.firstRange(of: #""payload":""#)).upperBound
    var changed = text
    changed.replaceSubrange(payload...payload, with: text[payload] == "e" ? "f" : "e")
    try place.scratch.write("policy.signed.json", changed)
    #expect(place.verify().status == .failed)
  }

  @Test(arguments: [(-7200, -3600, "expired"), (3600, 7200, "still to come")])
  func `a policy out of its time is signed but not verified`(issued: Int, expires: Int, word: String) throws {
    #expect(try place.sign(PolicyFolder.policy(issued: Int64(issued), expires: Int64(expires))).status == .good)
    let verified = place.verify()
    #expect(verified.status == .failed)
    #expect(verified.output.contains("version: 7"))
    #expect(verified.errors.first?.contains(word) == true)
  }

  @Test func `an expired policy is warned of when it is signed`() throws {
    let signed = try place.sign(PolicyFolder.policy(issued: -7200, expires: -3600))
    #expect(signed.errors.contains { $0.hasPrefix("pinfold: warning: this policy expired at ") })
  }

  @Test func `an invalid policy is not signed, each mistake has its line, and the old bundle stays`() throws {
    try place.sign()
    let before = try place.scratch.read("policy.signed.json")
    let hosts = #""a..example.com": { pins: ["sha256/AAAA"] }, "b.example.com": { pinz: [] }"#
    let signed = try place.sign(PolicyFolder.policy(hosts: hosts))
    #expect(signed.status == .failed)
    #expect(signed.output == [])
    #expect(signed.errors.count >= 2)
    #expect(signed.errors.allSatisfy { $0.hasPrefix("pinfold: \(place.scratch["policy.json5"]):") })
    #expect(try place.scratch.read("policy.signed.json") == before)
  }

  @Test func `one key twice is a mistake, not two signatures`() throws {
    try place.scratch.write("policy.json5", PolicyFolder.policy())
    let key = place.scratch["signing.key"]
    let signed = Tool(
      "sign", "-k", key, "-k", key, place.scratch["policy.json5"], "-o", place.scratch["policy.signed.json"])
    #expect(signed.status == .failed)
    #expect(signed.errors == ["pinfold: \(key): the same key is given twice; a key signs once"])
    #expect(!place.scratch.names.contains("policy.signed.json"))
  }

  /// Would catch a secret key that is lost to its own signature.
  @Test func `sign replaces none of the files it reads`() throws {
    try place.scratch.write("policy.json5", PolicyFolder.policy())
    let (key, policy) = (place.scratch["signing.key"], place.scratch["policy.json5"])
    #expect(unsafe symlink(key, place.scratch["link"]) == 0)
    for output in [key, policy, place.scratch["link"]] {
      let before = try place.scratch.names.map { try place.scratch.read($0) }
      let signed = Tool("sign", "-k", key, policy, "-o", output)
      #expect(signed.status == .failed)
      #expect(signed.output == [])
      #expect(signed.errors.first?.hasPrefix("pinfold: -o \"\(output)\" would replace ") == true)
      #expect(try place.scratch.names.map { try place.scratch.read($0) } == before)
    }
  }

  @Test func `files that are missing are named`() throws {
    let policy = try place.scratch.write("policy.json5", PolicyFolder.policy())
    let (key, none, out) = (place.scratch["signing.key"], place.scratch["none"], place.scratch["out"])
    let noKey = Tool("sign", "-k", none, policy, "-o", out)
    #expect(noKey.status == .failed)
    #expect(noKey.errors.first?.contains(none) == true)
    let noPolicy = Tool("sign", "-k", key, none, "-o", out)
    #expect(noPolicy.errors == ["pinfold: cannot read \"\(none)\": No such file or directory"])
    let noBundle = Tool("verify", "-p", place.publicKey, none)
    #expect(noBundle.errors == ["pinfold: cannot read \"\(none)\": No such file or directory"])
    #expect(!place.scratch.names.contains("out"))
  }

  @Test(arguments: [
    (["sign", "p.json5", "-o", "x"], "sign: -k FILE is missing"),
    (["sign", "-k", "k", "p.json5"], "sign: -o OUT is missing"),
    (["sign", "-k", "k", "-o", "x"], "sign: POLICY is missing"), (["verify", "x"], "verify: -p PUBKEY is missing"),
  ])
  func `what is missing is named`(words: [String], message: String) {
    let tool = Tool(words)
    #expect(tool.status == .usage)
    #expect(tool.errors == ["pinfold: \(message) (see \"pinfold \(words[0]) --help\")"])
  }

  @Test func `a public key that is none is usage, and says what one looks like`() {
    let tool = Tool("verify", "-p", "AAAA", "file")
    #expect(tool.status == .usage)
    #expect(tool.errors.first?.hasPrefix(#"pinfold: verify: -p "AAAA": 3 bytes: "#) == true)
  }
}
