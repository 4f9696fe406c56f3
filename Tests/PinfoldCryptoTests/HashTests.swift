import PinfoldModel
import Testing

@testable import PinfoldCrypto

@Suite struct HashTests {
  @Test(arguments: [
    ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
    (
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
    ),
  ]) func `SHA-256 meets the examples of FIPS 180`(text: String, hex: String) {
    #expect(SHA256.digest(Array(text.utf8)).hex == hex)
  }

  @Test func `pieces hash like the whole, however they are cut`() {
    let bytes = (0..<200).map { UInt8($0) }
    for cut in 0...bytes.count {
      var hash = SHA256()
      hash.update(bytes.span.extracting(..<cut))
      hash.update(bytes.span.extracting(cut...))
      #expect(hash.finish() == SHA256.digest(bytes))
    }
  }

  @Test func `a copied hash goes its own way`() {
    var first = SHA256()
    first.update([1].span)
    var second = first
    second.update([2].span)
    #expect(first.finish() == SHA256.digest([1]))
    #expect(second.finish() == SHA256.digest([1, 2]))
  }

  @Test func `a keyed hash depends on its key and its input`() throws {
    let one = try #require(KeyedHash(key: SecretBytes(copying: [UInt8](repeating: 1, count: 32))))
    let same = try #require(KeyedHash(key: SecretBytes(copying: [UInt8](repeating: 1, count: 32))))
    let other = try KeyedHash()
    #expect(one.pseudonym("192.0.2.1") == same.pseudonym("192.0.2.1"))
    #expect(one.pseudonym("192.0.2.1") != one.pseudonym("192.0.2.2"))
    #expect(one.pseudonym("192.0.2.1") != other.pseudonym("192.0.2.1"))
    #expect(one.pseudonym("").count == 16)
  }

  @Test func `a keyed hash agrees with keyed BLAKE2b-256 elsewhere`() throws {
    // python3 -c 'import hashlib; print(hashlib.blake2b(b"abc", digest_size=32, key=bytes(range(32))).hexdigest())'
    let hash = try #require(KeyedHash(key: SecretBytes(copying: (0..<32).map { UInt8($0) })))
    #expect(
      hash.digest(Array("abc".utf8)).hex == "d63a32d3e44738d7907f964316c241adaba0abfeabc32349677578a15a203f7f")
  }

  @Test func `a key of another length makes no keyed hash`() throws {
    #expect(KeyedHash(key: try SecretBytes(randomCount: 16)) == nil)
  }

  @Test(
    arguments: [
      ([], [], true), ([1, 2], [1, 2], true), ([1, 2], [1, 3], false), ([1, 2], [2, 2], false), ([1], [1, 0], false),
      ([], [0], false),
    ] as [([UInt8], [UInt8], Bool)])
  func `constant-time comparison tells equal from different`(left: [UInt8], right: [UInt8], equal: Bool) {
    #expect(constantTimeEqual(left, right) == equal)
  }

  @Test func `random bytes have the length asked for and do not repeat`() throws {
    #expect(try Random.bytes(0).isEmpty)
    #expect(try Random.bytes(-1).isEmpty)
    #expect(try Random.bytes(32).count == 32)
    #expect(try Random.bytes(32) != Random.bytes(32))
    for bound in [0, 1, 2, 7] as [UInt32] { #expect(try Random.below(bound) < max(bound, 1)) }
  }

  @Test func `a secret never shows itself`() throws {
    let secret = try SecretBytes(copying: [0x41, 0x42])
    #expect("\(secret)" == "(2 secret bytes)")
    #expect(secret.withBytes { $0[1] } == 0x42)
  }

  @Test func `many threads may set the library up at once`() async throws {
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<16 {
        group.addTask {
          try Sodium.start()
          return try Random.bytes(16).count
        }
      }
      for try await count in group { #expect(count == 16) }
    }
  }
}
