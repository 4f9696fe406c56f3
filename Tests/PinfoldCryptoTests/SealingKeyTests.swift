import PinfoldModel
import Testing

@testable import PinfoldCrypto

@Suite struct DerivedHashTests {
  @Test func `a hash derived from a key is the key's own, the number's own, and always the same`() throws {
    let key = try SealingKey()
    let value = try key.derivedHash(number: 1).digest([1, 2, 3])
    #expect(try key.derivedHash(number: 1).digest([1, 2, 3]) == value)
    #expect(try key.derivedHash(number: 2).digest([1, 2, 3]) != value)
    #expect(try SealingKey().derivedHash(number: 1).digest([1, 2, 3]) != value)
    #expect(SHA256.digest([1, 2, 3]) != value)
  }
}

@Suite struct SealingKeyTests {
  private let context = Array("pins/api.example.com".utf8)

  @Test(arguments: [0, 1, 63, 64, 65, 100_000]) func `what was sealed opens again`(count: Int) throws {
    let key = try SealingKey()
    let plain = [UInt8](repeating: 0x5a, count: count)
    let sealed = try key.seal(plain, context: context)
    #expect(sealed.count == count + SealingKey.overhead)
    #expect(try key.open(sealed, context: context) == plain)
  }

  @Test func `nothing altered, shortened or extended opens`() throws {
    let key = try SealingKey()
    let sealed = try key.seal([1, 2, 3], context: context)
    for index in sealed.indices {
      var altered = sealed
      altered[index] ^= 1
      #expect(throws: CryptoError.sealBroken) { try key.open(altered, context: context) }
      #expect(throws: CryptoError.sealBroken) { try key.open(Array(sealed.prefix(index)), context: context) }
    }
    #expect(throws: CryptoError.sealBroken) { try key.open((sealed + [0]), context: context) }
  }

  @Test func `another key or another context does not open`() throws {
    let key = try SealingKey()
    let sealed = try key.seal([1, 2, 3], context: context)
    #expect(throws: CryptoError.sealBroken) { try SealingKey().open(sealed, context: context) }
    #expect(throws: CryptoError.sealBroken) { try key.open(sealed, context: context + [0]) }
    #expect(throws: CryptoError.sealBroken) { try key.open(sealed, context: []) }
  }

  @Test func `sealing twice gives different bytes`() throws {
    let key = try SealingKey()
    #expect(try key.seal([1], context: []) != key.seal([1], context: []))
  }

  @Test func `the key file is made once and used again`() throws {
    let scratch = try Scratch()
    var warnings: [String] = []
    let first = try SealingKey.loadOrCreate(path: scratch.file("seal.key"), warnings: &warnings)
    let second = try SealingKey.loadOrCreate(path: scratch.file("seal.key"), warnings: &warnings)
    #expect(try second.open(first.seal([9], context: context), context: context) == [9])
    #expect(try scratch.mode("seal.key") == 0o600)
    #expect(warnings.isEmpty)
  }

  @Test func `a damaged key file is an error and stays as it is`() throws {
    let scratch = try Scratch()
    let path = try scratch.put("seal.key", "damaged")
    var warnings: [String] = []
    #expect(throws: CryptoError.self) { try SealingKey.loadOrCreate(path: path, warnings: &warnings) }
    #expect(try PrivateFile.read(path, limit: 99).bytes == Array("damaged".utf8))
  }
}
