import PinfoldModel
import Testing

@testable import PinfoldTLS

/// What is found again, and that nothing else is.
struct LeafMemoryTests {
  private let now = Timestamp(seconds: 1_800_000_000)

  private func leaf(_ name: String, names: Int = 1) throws -> [UInt8] {
    let hosts = (0..<names).map { HostName.name("host-\($0).of-a-certificate-with-many-names.example.com") }
    let authority = try DemoAuthority(commonName: "Root", now: now)
    return try authority.issue(.init(commonName: name, hosts: hosts, now: now)).chain[0].der()
  }

  @Test func `The same bytes are the same leaf with the same key`() throws {
    let memory = LeafMemory()
    let der = try leaf("one")
    let first = try memory.leaf(der)
    let again = try memory.leaf(der)
    #expect(first.certificate === again.certificate && first.key === again.key)
    #expect(first.key.digest == first.certificate.keyDigest)
    #expect(try first.certificate.der() == der)
    let other = try memory.leaf(try leaf("one"))
    #expect(other.certificate !== first.certificate && other.key.digest != first.key.digest)
    #expect(memory.count == 2)
  }

  @Test func `What cannot be read is not remembered, however often it comes`() throws {
    let memory = LeafMemory()
    let der = try leaf("one")
    for bytes in [[], [0x30], Array(der.dropLast()), der + [0]] {
      for _ in 0..<2 { #expect(throws: TLSError.self) { try memory.leaf(bytes) } }
    }
    #expect(throws: TLSError.self) { try memory.leaf([UInt8](repeating: 0x30, count: Certificate.byteLimit + 1)) }
    #expect(memory.count == 0)
  }

  @Test func `A large leaf is read and not kept`() throws {
    let memory = LeafMemory()
    let der = try leaf("large", names: 200)
    try #require(der.count > LeafMemory.sizeLimit)
    let first = try memory.leaf(der)
    #expect(try memory.leaf(der).certificate !== first.certificate)
    #expect(memory.count == 0)
  }

  @Test func `No more are kept than there is room for`() throws {
    let memory = LeafMemory(capacity: 2)
    for number in 0..<7 { _ = try memory.leaf(try leaf("number \(number)")) }
    #expect(memory.count <= 4)
  }

  @Test func `Chains and handshakes share a leaf, so that its key is warmed up by both`() throws {
    let host = HostName.name("api.example.com")
    let root = try DemoAuthority(commonName: "Root", now: now)
    let sent = try root.issue(.init(commonName: "leaf", hosts: [host], now: now)).chain.map { try $0.der() }
    let verifier = ChainVerifier(trusting: try TrustStore([root.certificate]))
    let seen = try verifier.leaves.leaf(sent[0])
    #expect(try verifier.judge(certificates: sent, host: host, now: now).leafKey === seen.key)
  }
}
