import FoundationEssentials
import PinfoldCrypto
import PinfoldModel
import PinfoldPolicy
import Testing

@testable import PinfoldSupply

@Suite struct TrustBookTests {
  private static let now = Timestamp(seconds: 1_000_000)
  private static let device = Authority(host: .address(.v4(0xc0a8_012a)), port: 8443)
  private static let other = Authority(host: .name("printer.local"), port: 443)

  private static func pin(_ byte: UInt8) -> Pin { .publicKey(Digest256([32 of UInt8](repeating: byte))) }

  private final class Place {
    let path: String
    let key: SealingKey

    init() throws {
      path = FileManager.default.temporaryDirectory.appending(path: "pinfold-trust-\(UUID().uuidString)").path
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
      key = try SealingKey()
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func cache(limit: Int? = nil) throws -> SealedCache {
      try SealedCache(directory: "\(path)/cache", key: key, countLimit: limit)
    }

    var files: [String] { (try? FileManager.default.contentsOfDirectory(atPath: "\(path)/cache")) ?? [] }

    /// Puts a link that leads to itself in the folder's place, which root cannot list either; `reveal` puts it back.
    func hide() throws {
      try FileManager.default.moveItem(atPath: "\(path)/cache", toPath: "\(path)/hidden")
      try FileManager.default.createSymbolicLink(atPath: "\(path)/cache", withDestinationPath: "\(path)/cache")
    }

    func reveal() throws {
      try FileManager.default.removeItem(atPath: "\(path)/cache")
      try FileManager.default.moveItem(atPath: "\(path)/hidden", toPath: "\(path)/cache")
    }

    func change(_ change: (inout Data) -> Void) throws {
      for file in files {
        var data = try #require(FileManager.default.contents(atPath: "\(path)/cache/\(file)"))
        change(&data)
        try data.write(to: URL(filePath: "\(path)/cache/\(file)"))
      }
    }
  }

  @Test("A record reads back, and nothing else is one") func record() {
    for origin in TrustedKey.Origin.allCases {
      let key = TrustedKey(.certificate(Digest256([32 of UInt8](repeating: 7))), since: Self.now, origin: origin)
      let contents = TrustRecord.contents(key)
      #expect(TrustRecord.key(contents) == key)
      for end in 0..<contents.count { #expect(TrustRecord.key(Array(contents[..<end])) == nil) }
      #expect(TrustRecord.key(contents + [0x0a]) == nil)
    }
  }

  @Test("The first key is learnt, the second one is not, and the next start knows") func learns() throws {
    let place = try Place()
    let book = TrustBook(cache: try place.cache())
    #expect(book.learn(Self.pin(1), of: Self.device, at: Self.now) == .learnt(warning: nil))
    #expect(book.learn(Self.pin(2), of: Self.device, at: Self.now) == .known)
    #expect(book.key(of: Self.device)?.pin == Self.pin(1))
    #expect(book.key(of: Self.other) == nil)
    #expect(book.key(of: Authority(host: Self.device.host, port: 443)) == nil)
    let next = TrustBook(cache: try place.cache())
    #expect(next.load().changes.map(\.authority) == [Self.device])
    #expect(next.key(of: Self.device) == TrustedKey(Self.pin(1), since: Self.now, origin: .firstUse))
    #expect(next.load().changes == [])
  }

  /// Would catch a first use that overrules what another process paired a moment ago.
  @Test("What another process paired since counts before a first use does") func paired() throws {
    let place = try Place()
    let cache = try place.cache()
    let book = TrustBook(cache: cache)
    let paired = TrustedKey(Self.pin(9), since: Self.now, origin: .paired)
    try cache.write(.trust, TrustRecord.name(Self.device), TrustRecord.contents(paired))
    #expect(book.learn(Self.pin(1), of: Self.device, at: Self.now) == .known)
    #expect(book.key(of: Self.device) == paired)
  }

  @Test("Pairing and forgetting by another process are seen") func changes() throws {
    let place = try Place()
    let cache = try place.cache()
    let book = TrustBook(cache: cache)
    _ = book.learn(Self.pin(1), of: Self.device, at: Self.now)
    let paired = TrustedKey(Self.pin(9), since: Self.now, origin: .paired)
    try cache.write(.trust, TrustRecord.name(Self.other), TrustRecord.contents(paired))
    #expect(book.load().changes == [.init(authority: Self.other, key: paired)])
    try cache.remove(.trust, TrustRecord.name(Self.device))
    #expect(book.load().changes == [.init(authority: Self.device, key: nil)])
    #expect(book.key(of: Self.device) == nil)
    #expect(book.learn(Self.pin(2), of: Self.device, at: Self.now) == .learnt(warning: nil))
  }

  /// Would catch a flipped byte, or a directory that cannot be read, that lets the next key be learnt.
  @Test("A record that cannot be read is never forgotten, and no key is learnt over it") func broken() throws {
    let place = try Place()
    let book = TrustBook(cache: try place.cache())
    _ = book.learn(Self.pin(1), of: Self.device, at: Self.now)
    try place.change { $0[$0.count - 1] ^= 1 }
    let loaded = book.load()
    #expect(loaded.changes == [] && loaded.warnings.count == 1)
    #expect(book.key(of: Self.device)?.pin == Self.pin(1))
    let next = TrustBook(cache: try place.cache())
    #expect(next.load().warnings.count == 1)
    // Whose record it is can be told, so that it costs that host alone.
    #expect(next.isDamaged(Self.device) && !next.isDamaged(Self.other))
    guard case .refused(let problem) = next.learn(Self.pin(2), of: Self.device, at: Self.now) else {
      Issue.record("learnt over a broken record")
      return
    }
    #expect(problem.contains("pinfold trust forget 192.168.1.42:8443"))
    #expect(next.key(of: Self.device) == nil)
    #expect(next.learn(Self.pin(2), of: Self.other, at: Self.now) == .learnt(warning: nil))
  }

  /// Would catch a folder that cannot be listed, for want of a descriptor say, and is taken for an empty one.
  @Test("Where the records cannot be listed any device may have one, and what was damaged stays so") func unlisted()
    throws
  {
    let place = try Place()
    let first = TrustBook(cache: try place.cache())
    _ = first.learn(Self.pin(1), of: Self.device, at: Self.now)
    try place.hide()
    let loaded = first.load()
    #expect(loaded.changes == [] && loaded.warnings.count == 1 && first.mayFindMore)
    #expect(first.key(of: Self.device)?.pin == Self.pin(1))
    #expect(first.isDamaged(Self.other))
    guard case .refused = first.learn(Self.pin(2), of: Self.other, at: Self.now) else {
      Issue.record("learnt where another key may be trusted")
      return
    }
    let next = TrustBook(cache: try place.cache())
    #expect(next.load().warnings.contains { $0.contains("cannot be listed") })
    #expect(next.isDamaged(Self.device) && next.isDamaged(Self.other))
    try place.reveal()
    try place.change { $0[$0.count - 1] ^= 1 }
    _ = next.load()
    #expect(!next.mayFindMore && next.isDamaged(Self.device) && !next.isDamaged(Self.other))
    try place.hide()
    _ = next.load()
    #expect(next.isDamaged(Self.device) && next.isDamaged(Self.other))
  }

  /// Would catch a folder that was moved, or whose volume is gone for a moment, and is taken for one without records.
  @Test("Where the folder of the records is gone nothing is forgotten, and no key is learnt") func gone() throws {
    let place = try Place()
    let book = TrustBook(cache: try place.cache())
    _ = book.learn(Self.pin(1), of: Self.device, at: Self.now)
    _ = book.load()
    try FileManager.default.moveItem(atPath: "\(place.path)/cache", toPath: "\(place.path)/hidden")
    let loaded = book.load()
    #expect(loaded.changes == [] && loaded.warnings.count == 1 && book.mayFindMore)
    #expect(book.key(of: Self.device)?.pin == Self.pin(1))
    #expect(book.isDamaged(Self.other))
    guard case .refused = book.learn(Self.pin(2), of: Self.other, at: Self.now) else {
      Issue.record("learnt where another key may be trusted")
      return
    }
    try FileManager.default.moveItem(atPath: "\(place.path)/hidden", toPath: "\(place.path)/cache")
    #expect(book.load().changes == [] && !book.mayFindMore && !book.isDamaged(Self.other))
    #expect(book.key(of: Self.device)?.pin == Self.pin(1))
    // A folder without records is one in which they were forgotten.
    for file in place.files { try FileManager.default.removeItem(atPath: "\(place.path)/cache/\(file)") }
    #expect(book.load().changes == [.init(authority: Self.device, key: nil)])
  }

  @Test("A record that the system does not give is looked for again") func unread() throws {
    let place = try Place()
    let cache = try place.cache()
    _ = TrustBook(cache: cache).learn(Self.pin(1), of: Self.device, at: Self.now)
    let file = "\(place.path)/cache/\(cache.file(.trust, TrustRecord.name(Self.device)))"
    try FileManager.default.moveItem(atPath: file, toPath: "\(place.path)/hidden")
    try FileManager.default.createSymbolicLink(atPath: file, withDestinationPath: file)
    let book = TrustBook(cache: cache)
    #expect(book.load().warnings.count == 1)
    #expect(book.mayFindMore && book.isDamaged(Self.device) && !book.isDamaged(Self.other))
    try FileManager.default.removeItem(atPath: file)
    try FileManager.default.moveItem(atPath: "\(place.path)/hidden", toPath: file)
    #expect(book.load().changes.map(\.authority) == [Self.device])
    #expect(!book.mayFindMore && !book.isDamaged(Self.device))
  }

  @Test("Where nothing can be written the key holds for this process, and is kept as soon as it can be")
  func unwritable() throws {
    let place = try Place()
    try "".write(toFile: "\(place.path)/cache", atomically: true, encoding: .utf8)
    let book = TrustBook(cache: try place.cache())
    guard case .learnt(.some) = book.learn(Self.pin(1), of: Self.device, at: Self.now) else {
      Issue.record("no warning")
      return
    }
    #expect(book.learn(Self.pin(2), of: Self.device, at: Self.now) == .known)
    #expect(book.load().changes == [])
    #expect(book.key(of: Self.device)?.pin == Self.pin(1))
    try FileManager.default.removeItem(atPath: "\(place.path)/cache")
    #expect(book.load().changes == [])
    #expect(place.files.count == 1)
    #expect(book.load().changes == [])
    #expect(book.key(of: Self.device)?.pin == Self.pin(1))
  }

  @Test("Without a cache trust lasts as long as the process, and says so") func none() throws {
    let book = TrustBook(cache: nil)
    guard case .learnt(.some) = book.learn(Self.pin(1), of: Self.device, at: Self.now) else {
      Issue.record("no warning")
      return
    }
    #expect(book.load().changes == [] && book.load().warnings == [])
    #expect(book.key(of: Self.device)?.pin == Self.pin(1))
  }
}
