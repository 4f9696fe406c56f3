import PinfoldModel
import Testing

@testable import PinfoldServer

@Suite struct UpstreamMemoryTests {
  private static func authority(_ number: Int) throws -> Authority { try #require(Authority("h\(number).test:443")) }

  @Test(arguments: [UpstreamMemory.Ground.pins, .chain])
  func `nothing is known of a host at first`(_ ground: UpstreamMemory.Ground) throws {
    let memory = UpstreamMemory()
    #expect(!memory.answersOlder(try Self.authority(1), ground))
    #expect(!memory.servesTwo(try Self.authority(1), ground))
  }

  /// Would catch an attacker who has the app's connection go alone again and again, by a server of the key's owner that
  /// does not speak TLS 1.3.
  @Test func `who answered in TLS 1.3 once is never an older upstream again`() throws {
    let memory = UpstreamMemory()
    let (first, second) = (try Self.authority(1), try Self.authority(2))
    memory.noteOlder(first, by: .pinMatch)
    #expect(memory.answersOlder(first, .pins))
    for host in [first, second] {
      memory.noteTLS13(host, .pins)
      #expect(!memory.answersOlder(host, .pins))
      memory.noteOlder(host, by: .pinMatch)
      #expect(!memory.answersOlder(host, .pins))
    }
  }

  /// Would catch an attacker with a valid certificate who teaches, where no pins count, what is believed where they do.
  @Test func `each ground is taught by its own verdict only`() throws {
    let memory = UpstreamMemory()
    for (number, reason) in Reason.allCases.enumerated() { memory.noteOlder(try Self.authority(number), by: reason) }
    for (number, reason) in Reason.allCases.enumerated() {
      let host = try Self.authority(number)
      #expect(memory.answersOlder(host, .pins) == (reason == .pinMatch))
      #expect(memory.answersOlder(host, .chain) == (reason == .chainVerified))
    }
    memory.noteServesTwo(try Self.authority(0), .chain)
    #expect(!memory.servesTwo(try Self.authority(0), .pins))
  }

  /// Would catch a flood of hosts after which a host in use, or any that is pinned, counts as never seen.
  @Test func `hosts without end do not fill the memory, nor push out what is asked for or pinned`() throws {
    let memory = UpstreamMemory()
    let used = try Self.authority(0)
    memory.noteServesTwo(used, .chain)
    memory.noteServesTwo(used, .pins)
    for number in 0..<10_000 {
      let host = try Self.authority(number)
      memory.noteOlder(host, by: .chainVerified)
      memory.noteServesTwo(host, .chain)
      if number.isMultiple(of: 1000) { #expect(memory.servesTwo(used, .chain)) }
    }
    let kept = try (0..<10_000).count { memory.answersOlder(try Self.authority($0), .chain) }
    #expect(kept == 4096)
    #expect(memory.servesTwo(used, .chain) && memory.servesTwo(used, .pins))
  }

  /// Would catch a flood after which a host that serves two connections is dealt with as one that serves one.
  @Test func `where a host was forgotten, one that nobody knows may serve two`() throws {
    let memory = UpstreamMemory()
    let stranger = try Self.authority(50_000)
    for number in 0..<4096 { memory.noteServesTwo(try Self.authority(number), .pins) }
    #expect(!memory.servesTwo(stranger, .pins))
    memory.noteServesTwo(try Self.authority(4096), .pins)
    let forgotten = try Self.authority(0)
    #expect(memory.servesTwo(stranger, .pins) && memory.servesTwo(forgotten, .pins))
    #expect(!memory.servesTwo(stranger, .chain))
  }
}
