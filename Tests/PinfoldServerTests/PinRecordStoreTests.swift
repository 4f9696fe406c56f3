import Foundation
import PinfoldCrypto
import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldTelemetry
import Testing

@testable import PinfoldServer
@testable import PinfoldSupply

/// The cache of pin records when it is full.
@Suite struct PinRecordStoreTests {
  private static let limit = 8

  /// A store over a small cache.
  private final class Shelf {
    let path: String
    let cache: SealedCache
    let store: PinRecordStore

    init(signers: [PinSigner]) throws {
      path = FileManager.default.temporaryDirectory.appending(path: "pinfold-shelf-\(UUID().uuidString)").path
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
      cache = try SealedCache(directory: "\(path)/cache", key: SealingKey(), countLimit: limit)
      // Its loop never runs: what is written waits for `flush`.
      store = PinRecordStore(
        cache: cache, locked: nil, loop: try EventLoop(), log: try Logger(level: .error, format: .json),
        signers: { signers })
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func put(_ place: PinPlace, newest: Int64?) {
      store.write(
        CachedPins(newest: newest.map { Timestamp(seconds: $0) }, at: Timestamp(seconds: newest ?? 0)), place)
      store.flush()
    }

    func newest(_ place: PinPlace) throws -> Int64? { try store.read(place)?.newest?.seconds }
    func has(_ place: PinPlace) throws -> Bool { try store.read(place) != nil }
  }

  private static let signer = PinSigner(key: [1])
  private static let former = PinSigner(key: [2])

  private static func place(_ number: Int, _ signer: PinSigner = signer) throws -> PinPlace {
    PinPlace(signer, try HostPattern("h\(number).example.com"))
  }

  /// Would catch a client that asks for more hosts than are kept, after which an older record of any host is accepted.
  @Test("How new a record was is not forgotten for others that come later") func marks() throws {
    let shelf = try Shelf(signers: [Self.signer])
    for number in 0..<3 * Self.limit { shelf.put(try Self.place(number), newest: 100) }
    for number in 0..<Self.limit { #expect(try shelf.newest(Self.place(number)) == 100, "\(number)") }
    #expect(try !shelf.has(Self.place(Self.limit)))
    // What is there already is kept up to date.
    shelf.put(try Self.place(3), newest: 200)
    #expect(try shelf.newest(Self.place(3)) == 200)
  }

  @Test("A record without a date, or by a key that is trusted no more, makes room") func spare() throws {
    for isDated in [true, false] {
      let shelf = try Shelf(signers: [Self.signer])
      for number in 0..<Self.limit - 1 { shelf.put(try Self.place(number), newest: 100) }
      let spare = try isDated ? Self.place(90, Self.former) : Self.place(90)
      shelf.put(spare, newest: isDated ? 100 : nil)
      shelf.put(try Self.place(91), newest: 100)
      #expect(try shelf.newest(Self.place(91)) == 100 && !shelf.has(spare))
      for number in 0..<Self.limit - 1 { #expect(try shelf.newest(Self.place(number)) == 100, "\(number)") }
    }
  }
}
