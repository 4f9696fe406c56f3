import PinfoldModel
import PinfoldPolicy
import PinfoldSupply
import Testing

/// Of which hosts memory has all that the cache has.
@Suite struct MetHostsTests {
  private let signers: [PinSigner]

  init() throws { signers = try KeeperFixture().service.keys.signers }

  private func host(_ number: Int) throws -> HostName { try KeeperFixture.host("h\(number).example.com") }

  private func isMet(_ number: Int, _ met: MetHosts) throws -> Bool {
    !met.signers(of: try host(number), PinKeeper.patterns(for: try host(number))).isEmpty
  }

  private func meet(_ number: Int, _ signers: [PinSigner], _ met: inout MetHosts) throws {
    met.insert(try host(number), PinKeeper.patterns(for: try host(number)), signers)
  }

  @Test("A host is met for the keys it was met for, one after the other too") func keys() throws {
    let others = try KeeperFixture().service.keys.signers
    var met = MetHosts(limit: 4)
    #expect(try !isMet(0, met))
    try meet(0, signers, &met)
    let domains = PinKeeper.patterns(for: try host(0))
    #expect(try met.signers(of: host(0), domains) == signers)
    #expect(try !isMet(1, met))
    try meet(0, others, &met)
    try meet(0, signers, &met)
    #expect(try met.signers(of: host(0), domains) == signers + others)
  }

  @Test("However many hosts come, the last half of them is met and no more than all") func bound() throws {
    var met = MetHosts(limit: 8)
    for number in 0..<100 {
      try meet(number, signers, &met)
      let known = try (0...number).filter { try isMet($0, met) }
      #expect(known.count <= 8 && known.suffix(4) == Array((0...number).suffix(4)), "\(number): \(known)")
    }
  }

  @Test("A host in use stays, however many others come") func used() throws {
    var met = MetHosts(limit: 8)
    for number in 0..<100 {
      try meet(number, signers, &met)
      met.keep(try host(0))
      #expect(try isMet(0, met), "\(number)")
    }
    met.keep(try host(1))
    #expect(try !isMet(1, met))
  }

  @Test("When something of a domain leaves memory, the hosts that it speaks for have to be met again")
  func departure() throws {
    var met = MetHosts(limit: 8)
    for number in 0..<3 { try meet(number, signers, &met) }
    met.remove(try HostPattern("h1.example.com"))
    met.remove(try HostPattern("*.example.org"))
    #expect(try (0..<3).map { try isMet($0, met) } == [true, false, true])
    // To be used is not to be met.
    met.keep(try host(1))
    #expect(try !isMet(1, met))
    try meet(1, signers, &met)
    #expect(try isMet(1, met))
    met.remove(try HostPattern("*.example.com"))
    #expect(try (0..<3).map { try isMet($0, met) } == [false, false, false])
  }

  @Test("The memory of what left is bounded, and nobody is met for it") func departures() throws {
    var met = MetHosts(limit: 8)
    try meet(0, signers, &met)
    for number in 0..<8 { met.remove(try HostPattern("g\(number).example.org")) }
    #expect(try isMet(0, met))
    met.remove(try HostPattern("g8.example.org"))
    #expect(try !isMet(0, met))
  }
}
