import PinfoldModel
import Testing

@testable import PinfoldServer

@Suite struct UpstreamMemoryTests {
  private static func authority(_ number: Int) throws -> Authority { try #require(Authority("h\(number).test:443")) }

  @Test("Nothing is known of a host at first") func unknown() throws {
    #expect(!UpstreamMemory().answersOlder(try Self.authority(1)))
  }

  @Test("The last answer counts") func lastAnswerCounts() throws {
    let memory = UpstreamMemory()
    let host = try Self.authority(1)
    memory.note(host, answeredTLS13: false)
    #expect(memory.answersOlder(host))
    memory.note(host, answeredTLS13: true)
    #expect(!memory.answersOlder(host))
  }

  @Test("Hosts without end do not fill the memory") func bounded() throws {
    let memory = UpstreamMemory()
    for number in 0..<10_000 { memory.note(try Self.authority(number), answeredTLS13: false) }
    let kept = try (0..<10_000).count { memory.answersOlder(try Self.authority($0)) }
    #expect(kept > 0)
    #expect(kept <= 4096)
  }
}
