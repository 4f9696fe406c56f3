import Testing

@testable import PinfoldCrypto

@Suite struct PasswordHashTests {
  /// Of "right", made by a C program with crypto_pwhash_str_alg(3).
  private static let known =
    "$argon2id$v=19$m=8,t=1,p=1$BIURYVVIYXS9YYSBJCLi2g$ZDSEsZCUnHrVX2jRmUXifoUdgRkCIAoFrL7novrh558"

  private static func secret(_ text: String) throws -> SecretBytes { try SecretBytes(copying: Array(text.utf8)) }

  @Test func `a password matches its own hash and no other does`() throws {
    let hash = try PasswordHash(of: Self.secret("open sesame"))
    #expect(hash.text.hasPrefix("$argon2id$v=19$m=65536,t=2,p=1$"))
    #expect(try hash.matches(Self.secret("open sesame")))
    for other in ["open sesam", "open sesame ", "Open sesame", "", "open sesame\0"] {
      #expect(try !hash.matches(Self.secret(other)), "\(other)")
    }
    let again = try PasswordHash(of: Self.secret("open sesame"))
    #expect(again != hash, "without a salt")
    #expect(PasswordHash(hash.text) == hash)
  }

  @Test func `a hash that libsodium wrote for another program is read`() throws {
    let hash = try #require(PasswordHash(Self.known))
    #expect(try hash.matches(Self.secret("right")))
    #expect(try !hash.matches(Self.secret("wrong")))
  }

  @Test func `a decoy has the same costs and matches nothing`() throws {
    let hash = try PasswordHash(of: Self.secret("x"))
    let decoy = try hash.decoy()
    #expect(decoy.costs == hash.costs)
    #expect(decoy.text.utf8.count == hash.text.utf8.count)
    #expect(decoy.text != hash.text)
    #expect(try !decoy.matches(Self.secret("x")))
  }

  private static let salt = "c29tZXNhbHRzb21lc2FsdA"
  private static let tag = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

  @Test(arguments: [
    "m=8,t=1,p=1", "m=65536,t=2,p=1", "m=1048576,t=4,p=1", "m=1048576,t=16,p=1",
  ])
  func `costs within the bounds are taken`(costs: String) {
    #expect(PasswordHash("$argon2id$v=19$\(costs)$\(Self.salt)$\(Self.tag)") != nil)
  }

  /// Would catch a file that makes one verification take all memory, or a spelling that libsodium reads otherwise.
  @Test(arguments: [
    "", "$", "secret", "$argon2id$", "$argon2i$v=19$m=8,t=1,p=1$\(salt)$\(tag)",
    "$argon2d$v=19$m=8,t=1,p=1$\(salt)$\(tag)", "$argon2id$v=16$m=8,t=1,p=1$\(salt)$\(tag)",
    "$argon2id$m=8,t=1,p=1$\(salt)$\(tag)", "$argon2id$v=19$m=7,t=1,p=1$\(salt)$\(tag)",
    "$argon2id$v=19$m=1048577,t=1,p=1$\(salt)$\(tag)", "$argon2id$v=19$m=4294967296,t=1,p=1$\(salt)$\(tag)",
    "$argon2id$v=19$m=8,t=0,p=1$\(salt)$\(tag)", "$argon2id$v=19$m=8,t=17,p=1$\(salt)$\(tag)",
    "$argon2id$v=19$m=8,t=1,p=2$\(salt)$\(tag)", "$argon2id$v=19$m=+8,t=1,p=1$\(salt)$\(tag)",
    "$argon2id$v=19$m=08,t=1,p=1$\(salt)$\(tag)", "$argon2id$v=19$t=1,m=8,p=1$\(salt)$\(tag)",
    "$argon2id$v=19$m=8,t=1,p=1,x=1$\(salt)$\(tag)", "$argon2id$v=19$m=8,t=1,p=1$$\(tag)",
    "$argon2id$v=19$m=8,t=1,p=1$c2FsdA$\(tag)", "$argon2id$v=19$m=8,t=1,p=1$\(salt)$",
    "$argon2id$v=19$m=8,t=1,p=1$\(salt)$AAAA", "$argon2id$v=19$m=8,t=1,p=1$\(salt)$\(tag)=",
    "$argon2id$v=19$m=8,t=1,p=1$\(salt)$\(tag)$", "$argon2id$v=19$m=8,t=1,p=1$\(salt)$\(tag) ",
    "$argon2id$v=19$m=8,t=1,p=1$\(salt)$\(tag)\n", " $argon2id$v=19$m=8,t=1,p=1$\(salt)$\(tag)",
    "$argon2id$v=19$m=8,t=1,p=1$\(salt)$" + String(repeating: "A", count: 88),
  ])
  func `everything else is no hash`(text: String) {
    #expect(PasswordHash(text) == nil, "\(text)")
  }

  @Test func `secrets are erased in place`() {
    var bytes: [UInt8] = [1, 2, 3]
    erase(&bytes)
    #expect(bytes == [0, 0, 0])
    var none: [UInt8] = []
    erase(&none)
    #expect(none == [])
  }

  @Test func `a hash key is made once and read again`() throws {
    let place = try Scratch()
    var warnings: [String] = []
    let first = try KeyedHash.loadOrCreate(path: place.file("hash.key"), warnings: &warnings)
    let second = try KeyedHash.loadOrCreate(path: place.file("hash.key"), warnings: &warnings)
    #expect(first.pseudonym("a") == second.pseudonym("a"))
    #expect(warnings == [])
  }
}
