import PinfoldModel
import Testing

@testable import PinfoldServer

@Suite struct UpstreamMemoryTests {
  private static func authority(_ number: Int) throws -> Authority { try #require(Authority("h\(number).test:443")) }

  @Test("Nothing is known of a host at first") func unknown() throws {
    let memory = UpstreamMemory()
    #expect(!memory.answersOlder(try Self.authority(1), verifyOnly: true))
    #expect(!memory.servesTwo(try Self.authority(1)))
  }

  @Test("The last answer counts", arguments: [Reason.pinMatch, .chainVerified]) func lastAnswerCounts(reason: Reason)
    throws
  {
    let memory = UpstreamMemory()
    let host = try Self.authority(1)
    memory.noteOlder(host, reason)
    #expect(memory.answersOlder(host, verifyOnly: true))
    memory.forget(host)
    #expect(!memory.answersOlder(host, verifyOnly: true))
    #expect(!memory.answersOlder(host, verifyOnly: false))
    memory.noteOlder(host, reason)
    #expect(memory.answersOlder(host, verifyOnly: true))
  }

  /// Would catch an attacker with a valid certificate who teaches, where no pins count, what is believed where they do.
  @Test("Only a pinned key tells of an upstream with pins") func reasons() throws {
    let memory = UpstreamMemory()
    for (number, reason) in Reason.allCases.enumerated() { memory.noteOlder(try Self.authority(number), reason) }
    for (number, reason) in Reason.allCases.enumerated() {
      let host = try Self.authority(number)
      #expect(memory.answersOlder(host, verifyOnly: false) == (reason == .pinMatch))
      #expect(memory.answersOlder(host, verifyOnly: true) == (reason == .pinMatch || reason == .chainVerified))
    }
  }

  /// Would catch a flood of hosts after which a host in use counts as never seen.
  @Test("Hosts without end do not fill the memory, nor push out what is asked for") func bounded() throws {
    let memory = UpstreamMemory()
    let used = try Self.authority(0)
    memory.noteServesTwo(used)
    for number in 0..<10_000 {
      let host = try Self.authority(number)
      memory.noteOlder(host, .pinMatch)
      memory.noteServesTwo(host)
      if number.isMultiple(of: 1000) { #expect(memory.servesTwo(used)) }
    }
    let kept = try (0..<10_000).count { memory.answersOlder(try Self.authority($0), verifyOnly: false) }
    #expect(kept == 4096)
    #expect(memory.servesTwo(used))
  }
}
