import Foundation
import PinfoldCrypto
import PinfoldModel
import Testing

@testable import PinfoldSupply

/// A cache in a directory of one test's own.
final class CacheFixture {
  let path: String
  let key: SealingKey

  init() throws {
    path = FileManager.default.temporaryDirectory.appending(path: "pinfold-\(UUID().uuidString)").path
    key = try SealingKey()
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
  }

  deinit {
    try? FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: directory)
    try? FileManager.default.removeItem(atPath: path)
  }

  var directory: String { path + "/cache" }

  func cache(countLimit: Int? = nil) throws -> SealedCache {
    try SealedCache(directory: directory, key: key, countLimit: countLimit)
  }
  var files: [String] { get throws { try FileManager.default.contentsOfDirectory(atPath: directory).sorted() } }
  func bytes(_ file: String) throws -> [UInt8] { Array(try Data(contentsOf: URL(filePath: "\(directory)/\(file)"))) }
  func put(_ file: String, _ bytes: [UInt8]) throws { try Data(bytes).write(to: URL(filePath: "\(directory)/\(file)")) }

  /// The file that `write` makes, which is the only one that is new.
  func file(_ cache: SealedCache, _ kind: CacheKind, _ name: String, _ contents: [UInt8]) throws -> String {
    let before = Set((try? files) ?? [])
    try cache.write(kind, name, contents)
    return try #require(Set(files).subtracting(before).first)
  }
}

@Suite struct SealedCacheTests {
  private let host = "api.example.com:443"

  @Test("A record comes back as it was written, from the same cache and after a restart", arguments: CacheKind.allCases)
  func roundTrip(_ kind: CacheKind) throws {
    let fixture = try CacheFixture()
    let cache = try fixture.cache()
    #expect(try cache.read(kind, host) == nil)
    for contents in [[], [7], [UInt8](repeating: 9, count: 505), [UInt8](repeating: 8, count: 10_000)] {
      try cache.write(kind, host, contents)
      #expect(try cache.read(kind, host) == contents)
      #expect(try fixture.cache().read(kind, host) == contents)
    }
    #expect(try fixture.files.count == 1)
  }

  @Test("The same name is another record in each kind") func kindsAreApart() throws {
    let fixture = try CacheFixture()
    let cache = try fixture.cache()
    for (number, kind) in CacheKind.allCases.enumerated() { try cache.write(kind, host, [UInt8(number)]) }
    for (number, kind) in CacheKind.allCases.enumerated() { #expect(try cache.read(kind, host) == [UInt8(number)]) }
    try cache.remove(.pins, host)
    #expect(try cache.read(.pins, host) == nil)
    #expect(try cache.read(.trust, host) == [2])
    try cache.remove(.pins, host)
  }

  @Test("Neither names of files nor their bytes show a host") func nothingInTheClear() throws {
    let fixture = try CacheFixture()
    let cache = try fixture.cache()
    let file = try fixture.file(cache, .trust, host, Array("api.example.com api.example.com".utf8))
    #expect(file.wholeMatch(of: /trust-[0-9a-f]{64}/) != nil)
    let text = String(decoding: try fixture.bytes(file), as: UTF8.self)
    #expect(!text.contains("example") && !text.contains("api"))
    // The name of the file is no plain hash that anybody could try hosts with.
    let plain = SHA256.digest(Array("trust/\(host)".utf8)).hex
    #expect(!file.contains(plain.prefix(16)))
    let other = try SealedCache(directory: fixture.directory, key: SealingKey())
    #expect(try other.read(.trust, host) == nil)
  }

  @Test("Records of different lengths have files of the same size", arguments: [0, 1, 100, 400])
  func padding(_ count: Int) throws {
    let fixture = try CacheFixture()
    let file = try fixture.file(fixture.cache(), .pins, host, [UInt8](repeating: 1, count: count))
    #expect(try fixture.bytes(file).count == SealedRecord.firstLine.count + SealingKey.overhead + 512)
  }

  @Test("Directory and files are the owner's alone") func modes() throws {
    let fixture = try CacheFixture()
    let file = try fixture.file(fixture.cache(), .pins, host, [1])
    let manager = FileManager.default
    #expect(try manager.attributesOfItem(atPath: fixture.directory)[.posixPermissions] as? Int == 0o700)
    #expect(
      try manager.attributesOfItem(atPath: "\(fixture.directory)/\(file)")[.posixPermissions] as? Int == 0o600)
  }

  @Test("A flipped bit in any byte costs that record and no other") func flips() throws {
    let fixture = try CacheFixture()
    let cache = try fixture.cache()
    try cache.write(.pins, "other", [1, 2, 3])
    let file = try fixture.file(cache, .pins, host, [4, 5, 6])
    let whole = try fixture.bytes(file)
    for index in whole.indices {
      var broken = whole
      broken[index] ^= 1 << UInt8(index & 7)
      try fixture.put(file, broken)
      #expect(throws: CacheError.broken(path: "\(fixture.directory)/\(file)"), "byte \(index)") {
        try cache.read(.pins, host)
      }
    }
    #expect(try cache.read(.pins, "other") == [1, 2, 3])
    let (records, refusals) = cache.all(.pins)
    #expect(records == [.init(name: "other", contents: [1, 2, 3])])
    #expect(refusals.count == 1)
    try cache.write(.pins, host, [7])
    #expect(try cache.read(.pins, host) == [7])
  }

  @Test("A file cut off at any length, or with a byte more, is refused") func cuts() throws {
    let fixture = try CacheFixture()
    let cache = try fixture.cache()
    let file = try fixture.file(cache, .pins, host, [4, 5, 6])
    let whole = try fixture.bytes(file)
    for bytes in whole.indices.map({ Array(whole[..<$0]) }) + [whole + [0]] {
      try fixture.put(file, bytes)
      #expect(throws: CacheError.self, "\(bytes.count) bytes") { try cache.read(.pins, host) }
    }
  }

  @Test("A record put in another's place is refused, in another kind's too") func exchanged() throws {
    let fixture = try CacheFixture()
    let cache = try fixture.cache()
    let mine = try fixture.file(cache, .pins, host, [1])
    let other = try fixture.file(cache, .pins, "evil.example.com:443", [2])
    let trust = try fixture.file(cache, .trust, host, [3])
    try fixture.put(mine, fixture.bytes(other))
    #expect(throws: CacheError.broken(path: "\(fixture.directory)/\(mine)")) { try cache.read(.pins, host) }
    try fixture.put(mine, fixture.bytes(trust))
    #expect(throws: CacheError.broken(path: "\(fixture.directory)/\(mine)")) { try cache.read(.pins, host) }
    #expect(cache.all(.pins).records.map(\.name) == ["evil.example.com:443"])
  }

  @Test("Another key reads nothing, and says so when names are the same") func otherKey() throws {
    let fixture = try CacheFixture()
    let file = try fixture.file(fixture.cache(), .pins, host, [1])
    let other = try SealedCache(directory: fixture.directory, key: SealingKey())
    #expect(other.all(.pins).refusals == [.broken(path: "\(fixture.directory)/\(file)")])
  }

  @Test("All records of a kind are listed by name") func listing() throws {
    let fixture = try CacheFixture()
    let cache = try fixture.cache()
    for number in [3, 1, 2] { try cache.write(.trust, "host-\(number)", [UInt8(number)]) }
    try cache.write(.pins, "host-4", [4])
    try fixture.put("trust-readme", [1])
    #expect(cache.all(.trust).records.map(\.name) == ["host-1", "host-2", "host-3"])
    #expect(cache.all(.trust).refusals.isEmpty)
    #expect(cache.all(.breaker).records.isEmpty)
  }

  @Test("What is too large is refused when written and when read", arguments: [CacheKind.pins, .trust])
  func sizes(_ kind: CacheKind) throws {
    let fixture = try CacheFixture()
    let cache = try fixture.cache()
    let most = [UInt8](repeating: 1, count: kind.sizeLimit)
    let file = try fixture.file(cache, kind, host, most)
    #expect(throws: CacheError.tooLarge(kind, count: kind.sizeLimit + 1)) { try cache.write(kind, host, most + [1]) }
    #expect(try cache.read(kind, host) == most)
    try fixture.put(file, [UInt8](repeating: 1, count: kind.sizeLimit + 4096))
    #expect(throws: CacheError.broken(path: "\(fixture.directory)/\(file)")) { try cache.read(kind, host) }
    let name = String(repeating: "n", count: 1025)
    #expect(throws: CacheError.self) { try cache.write(kind, name, [1]) }
  }

  @Test("The oldest records make room for new ones where they may") func eviction() throws {
    let fixture = try CacheFixture()
    let cache = try fixture.cache(countLimit: 16)
    for number in 0..<16 {
      let file = try fixture.file(cache, .bundle, "host-\(number)", [1])
      let age = Date(timeIntervalSinceNow: Double(number) - 1000)
      try FileManager.default.setAttributes([.modificationDate: age], ofItemAtPath: "\(fixture.directory)/\(file)")
    }
    // One that is there already needs no room.
    try cache.write(.bundle, "host-3", [2])
    #expect(try fixture.files.count == 16)
    try cache.write(.bundle, "host-16", [1])
    let left = Set(cache.all(.bundle).records.map(\.name))
    #expect(left == Set((2...16).map { "host-\($0)" }))
    for number in 17..<60 { try cache.write(.bundle, "host-\(number)", [1]) }
    #expect(try fixture.files.count <= 16)
  }

  @Test(
    "Where nothing makes room a new one finds the kind full, after a restart too", arguments: [CacheKind.pins, .trust])
  func full(_ kind: CacheKind) throws {
    let fixture = try CacheFixture()
    let cache = try fixture.cache(countLimit: 4)
    for number in 0..<4 { try cache.write(kind, "host-\(number)", [1]) }
    #expect(throws: CacheError.full(kind)) { try cache.write(kind, "host-4", [1]) }
    #expect(throws: CacheError.full(kind)) { try fixture.cache(countLimit: 4).write(kind, "host-4", [1]) }
    try cache.write(kind, "host-0", [2])
    // Another kind is not concerned.
    try cache.write(.bundle, "host-4", [1])
    // What another process removed counts no more.
    try fixture.cache().remove(kind, "host-1")
    try cache.write(kind, "host-4", [1])
    #expect(cache.all(kind).records.count == 4)
  }

  /// Would catch the record of a key that is gone, which nobody reads again, in the only place that a rotation has.
  @Test("What another key sealed makes room where nothing else may", arguments: [CacheKind.rotation, .breaker])
  func orphans(_ kind: CacheKind) throws {
    let fixture = try CacheFixture()
    let before = try SealedCache(directory: fixture.directory, key: SealingKey(), countLimit: 1)
    try before.write(kind, host, [1])
    let cache = try fixture.cache(countLimit: 1)
    try cache.write(kind, host, [2])
    #expect(try cache.read(kind, host) == [2])
    #expect(throws: CacheError.full(kind)) { try cache.write(kind, "another", [3]) }
    #expect(try fixture.files.count == 1)
    // Of a device it is all that is known.
    try before.write(.trust, host, [1])
    #expect(throws: CacheError.full(.trust)) { try cache.write(.trust, host, [2]) }
  }

  @Test("Records that nobody misses make room when asked to, the oldest first and the damaged all") func spare() throws
  {
    let fixture = try CacheFixture()
    let cache = try fixture.cache(countLimit: 16)
    for number in 0..<14 { try cache.write(.pins, "host-\(number)", [UInt8(number)]) }
    let damaged = try fixture.file(cache, .pins, "host-14", [14])
    try fixture.put(damaged, [1])
    let unread = try fixture.file(cache, .pins, "host-15", [15])
    try FileManager.default.removeItem(atPath: "\(fixture.directory)/\(unread)")
    try FileManager.default.createDirectory(
      atPath: "\(fixture.directory)/\(unread)", withIntermediateDirectories: false)
    #expect(throws: CacheError.full(.pins)) { try cache.write(.pins, "host-16", [1]) }
    let count = try cache.makeRoom(.pins) { $0.contents[0] % 2 == 0 ? -Int64($0.contents[0]) : nil }
    #expect(count == 3)
    #expect(
      Set(cache.all(.pins).records.map(\.name))
        == Set((0..<14).map { "host-\($0)" }).subtracting(["host-12", "host-10"]))
    #expect(try fixture.files.contains(unread))
    try cache.write(.pins, "host-16", [1])
  }

  @Test("Leftovers of writers that did not come to an end are removed, and nothing else") func leftovers() throws {
    let fixture = try CacheFixture()
    let cache = try fixture.cache()
    cache.removeLeftovers()
    let file = try fixture.file(cache, .pins, host, [1])
    try fixture.put("\(file).0011223344556677.new", [1, 2])
    #expect(cache.all(.pins).records.count == 1)
    cache.removeLeftovers()
    #expect(try fixture.files == [file])
  }

  @Test("A directory in a record's place is that record's refusal, and a write says so") func notAFile() throws {
    let fixture = try CacheFixture()
    let cache = try fixture.cache()
    let file = try fixture.file(cache, .pins, host, [1])
    try FileManager.default.removeItem(atPath: "\(fixture.directory)/\(file)")
    try FileManager.default.createDirectory(
      atPath: "\(fixture.directory)/\(file)", withIntermediateDirectories: false)
    #expect(throws: CacheError.unreadable(.notRegular(path: "\(fixture.directory)/\(file)"))) {
      try cache.read(.pins, host)
    }
    #expect(throws: CacheError.self) { try cache.write(.pins, host, [2]) }
    #expect(try fixture.files == [file], "the temporary file was left behind")
  }

  @Test("A directory that had records and is gone is no empty one, and is not made again") func gone() throws {
    let fixture = try CacheFixture()
    let cache = try fixture.cache()
    try cache.write(.pins, host, [1])
    try FileManager.default.moveItem(atPath: fixture.directory, toPath: fixture.path + "/away")
    #expect(throws: CacheError.self) { try cache.read(.pins, host) }
    #expect(throws: CacheError.self) { try cache.survey(.trust) }
    #expect(throws: CacheError.self) { try cache.write(.trust, host, [1]) }
    #expect(!FileManager.default.fileExists(atPath: fixture.directory))
    // Whoever was not there before knows of no records.
    #expect(try fixture.cache().read(.pins, host) == nil)
    try FileManager.default.moveItem(atPath: fixture.path + "/away", toPath: fixture.directory)
    #expect(try cache.read(.pins, host) == [1])
    try cache.remove(.pins, host)
    #expect(try cache.survey(.pins).records.isEmpty)
    try FileManager.default.removeItem(atPath: fixture.directory)
    #expect(try cache.read(.pins, host) == nil, "there was none left")
    try cache.write(.pins, host, [2])
    #expect(try cache.read(.pins, host) == [2])
  }

  @Test("A directory that the system does not show is no empty one") func unlisted() throws {
    let fixture = try CacheFixture()
    let cache = try fixture.cache()
    #expect(try cache.survey(.trust).records.isEmpty, "there is none yet")
    try FileManager.default.createSymbolicLink(
      atPath: fixture.directory, withDestinationPath: fixture.directory)
    #expect(throws: CacheError.self) { try cache.survey(.trust) }
    let (records, refusals) = cache.all(.trust)
    #expect(records.isEmpty && refusals.count == 1 && refusals[0].description.contains("cannot be listed"))
    #expect(throws: CacheError.self) { try cache.read(.trust, host) }
    #expect(throws: CacheError.self) { try cache.write(.trust, host, [1]) }
    cache.removeLeftovers()
  }
}

/// Where the key comes from.
@Suite struct CacheKeyTests {
  @Test("The key is made on first start, owner's alone, and found again") func made() throws {
    let fixture = try CacheFixture()
    let state = fixture.path + "/state"
    var warnings: [String] = []
    let first = try SealedCache(stateDirectory: state, keyFile: nil, warnings: &warnings)
    try first.write(.pins, "a", [1])
    #expect(
      try FileManager.default.attributesOfItem(atPath: state + "/cache.key")[.posixPermissions] as? Int == 0o600)
    let again = try SealedCache(stateDirectory: state, keyFile: nil, warnings: &warnings)
    #expect(try again.read(.pins, "a") == [1])
    #expect(warnings.isEmpty)
  }

  @Test("A key kept elsewhere stays there, and the state directory alone opens nothing") func elsewhere() throws {
    let fixture = try CacheFixture()
    let state = fixture.path + "/state"
    var warnings: [String] = []
    let keyFile = fixture.path + "/elsewhere.key"
    try SealedCache(stateDirectory: state, keyFile: keyFile, warnings: &warnings).write(.pins, "a", [1])
    #expect(try FileManager.default.contentsOfDirectory(atPath: state) == ["cache"])
    #expect(try SealedCache(stateDirectory: state, keyFile: keyFile, warnings: &warnings).read(.pins, "a") == [1])
    #expect(try SealedCache(stateDirectory: state, keyFile: nil, warnings: &warnings).read(.pins, "a") == nil)
  }

  @Test("A key that others may read is a warning") func open() throws {
    let fixture = try CacheFixture()
    var warnings: [String] = []
    _ = try SealedCache(stateDirectory: fixture.path, keyFile: nil, warnings: &warnings)
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: fixture.path + "/cache.key")
    _ = try SealedCache(stateDirectory: fixture.path, keyFile: nil, warnings: &warnings)
    #expect(warnings.count == 1 && warnings[0].contains("chmod 600"))
  }

  @Test("A damaged key file, or no place for one, is an error and changes nothing") func damaged() throws {
    let fixture = try CacheFixture()
    var warnings: [String] = []
    let path = fixture.path + "/cache.key"
    try Data("pinfold-sealing-key v1\nnonsense\n".utf8).write(to: URL(filePath: path))
    #expect(throws: CryptoError.self) {
      try SealedCache(stateDirectory: fixture.path, keyFile: nil, warnings: &warnings)
    }
    #expect(try String(contentsOfFile: path, encoding: .utf8).contains("nonsense"))
    #expect(throws: CryptoError.self) {
      try SealedCache(stateDirectory: "/proc/none", keyFile: nil, warnings: &warnings)
    }
  }
}
