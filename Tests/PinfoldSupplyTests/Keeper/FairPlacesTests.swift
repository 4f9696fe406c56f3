import PinfoldModel
import PinfoldPolicy
import Testing

@testable import PinfoldSupply

/// Places that one client cannot have all of.
@Suite struct FairPlacesTests {
  private static func client(_ number: Int) -> ClientIdentity { .user("user\(number)") }

  /// Takes as many places as the client may have, and answers how many these were.
  private static func fill(_ places: inout FairPlaces<Int>, _ client: ClientIdentity?, from key: Int) -> Int {
    var count = 0
    while count < 10_000, places.admits(client) {
      places.take(key + count, for: client)
      count += 1
    }
    return count
  }

  @Test(
    "One client alone has half of them at most", arguments: [(0, 0), (1, 1), (2, 1), (3, 2), (32, 16), (1024, 512)])
  func alone(limit: Int, expected: Int) {
    var places = FairPlaces<Int>(limit: limit)
    #expect(Self.fill(&places, Self.client(0), from: 0) == expected)
    #expect(places.free == limit - expected)
  }

  /// Would catch one client that keeps all others out.
  @Test("However greedy the others are, the next client finds places, until many have shared them out") func newcomers()
  {
    var places = FairPlaces<Int>(limit: 32)
    let counts = (0..<8).map { Self.fill(&places, Self.client($0), from: 1000 * $0) }
    #expect(counts == [16, 8, 4, 2, 1, 1, 0, 0])
    #expect(places.free == 0)
  }

  @Test("Pinfold itself takes any place that is free") func itself() {
    var places = FairPlaces<Int>(limit: 32)
    #expect(Self.fill(&places, Self.client(0), from: 0) == 16)
    #expect(Self.fill(&places, nil, from: 100) == 16)
    #expect(!places.admits(Self.client(1)) && !places.admits(nil))
  }

  @Test("What is given back may be taken again, by whoever has fewer") func giveBack() {
    var places = FairPlaces<Int>(limit: 4)
    #expect(Self.fill(&places, Self.client(0), from: 0) == 2)
    #expect(Self.fill(&places, Self.client(1), from: 10) == 1)
    places.giveBack(0)
    #expect(places.contains(1) && !places.contains(0) && places.free == 2)
    places.take(11, for: Self.client(1))
    #expect(!places.admits(Self.client(1)) && !places.admits(Self.client(0)) && places.admits(nil))
    for key in [1, 10, 11, 11, 99] { places.giveBack(key) }
    #expect(places.free == 4)
    #expect(Self.fill(&places, Self.client(1), from: 0) == 2)
  }

  @Test("A key has one place, on the account that took it last") func sameKey() {
    var places = FairPlaces<Int>(limit: 8)
    for _ in 0..<20 { places.take(1, for: Self.client(0)) }
    places.take(1, for: nil)
    #expect(places.free == 7)
    #expect(Self.fill(&places, Self.client(0), from: 10) == 4)
  }

  @Test("Through any course of taking and giving back, who has nothing is let in while there is room") func anyCourse()
  {
    var random = SplitMix(7)
    var places = FairPlaces<Int>(limit: 20)
    var held: [Int: Int] = [:]
    for _ in 0..<20_000 {
      let key = Int(random.next() % 60)
      let number = Int(random.next() % 5)
      if random.next() % 3 == 0 {
        places.giveBack(key)
        held[key] = nil
      } else if held[key] == nil, places.admits(Self.client(number)) {
        let count = held.values.count { $0 == number }
        #expect(count < 20 - held.count)
        places.take(key, for: Self.client(number))
        held[key] = number
      }
      #expect(places.free == 20 - held.count)
      #expect(places.admits(Self.client(99)) == (places.free > 0))
      #expect(places.contains(key) == (held[key] != nil))
    }
  }

  /// The same course each time.
  private struct SplitMix: RandomNumberGenerator {
    var state: UInt64
    init(_ seed: UInt64) { state = seed }
    mutating func next() -> UInt64 {
      state &+= 0x9e37_79b9_7f4a_7c15
      var value = (state ^ state >> 30) &* 0xbf58_476d_1ce4_e5b9
      value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
      return value ^ value >> 31
    }
  }
}
