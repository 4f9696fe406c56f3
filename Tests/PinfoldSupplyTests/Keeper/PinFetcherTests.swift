import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply
import Testing

/// How a service's URLs are tried, with answers from memory.
@Suite struct PinFetcherTests {
  private final class Script: PinTransport {
    typealias Answer = Result<HTTPReply, HTTPFetchError>
    var answers: [Answer]
    var asked: [(url: String, deadline: Deadline, limit: Int)] = []
    /// Seconds that each answer takes.
    let seconds: UInt64
    var clock: UInt64 = 1_000_000_000_000

    init(_ answers: [Answer], seconds: UInt64 = 0) {
      self.answers = answers
      self.seconds = seconds
    }

    func get(
      _ url: HTTPURL, limit: Int, deadline: Deadline, security: (any TLSSessionSource)?
    ) async throws(HTTPFetchError) -> HTTPReply {
      asked.append((url.text, deadline, limit))
      clock += seconds * 1_000_000_000
      return try answers.removeFirst().get()
    }
  }

  private static let urls = ["http://a.example/v1/pins", "http://b.example/v1/pins?x=1", "http://c.example"]

  private struct Outcome {
    var result: Result<HeldPins, PinFetchFailure>
    var tried: [String]
    var script: Script
  }

  private func run(
    _ fixture: KeeperFixture, _ answers: [Script.Answer], seconds: UInt64 = 0,
    objection: (PinRecord) -> PinFetchFault? = { _ in nil }
  ) async throws -> Outcome {
    let script = Script(answers, seconds: seconds)
    var tried: [String] = []
    let result = await PinFetcher(transport: script).fetch(
      try KeeperFixture.host(), fixture.service, now: { (fixture.start, Deadline(nanoseconds: script.clock)) },
      objection: objection,
      note: { url, attempt in
        if case .fault(let fault) = attempt {
          tried.append("\(url.origin) \(fault.step)")
        } else {
          tried.append(url.origin)
        }
      })
    return Outcome(result: result, tried: tried, script: script)
  }

  private func ok(_ bytes: [UInt8]) -> Script.Answer { .success(HTTPReply(status: 200, fields: [], body: bytes)) }

  @Test("The first URL that gives a record ends it") func first() async throws {
    let fixture = try KeeperFixture(urls: Self.urls)
    let outcome = try await run(fixture, [ok(fixture.bytes())])
    #expect(try outcome.result.get().record.pins == [.publicKey(KeeperFixture.digest(0xab))])
    #expect(outcome.tried == ["http://a.example"])
    #expect(outcome.script.asked.map(\.url) == ["http://a.example/v1/pins?domain=api.example.com"])
    #expect(outcome.script.asked[0].limit == 65_536)
  }

  @Test("Each URL is tried in turn, and every step that failed is told") func failOver() async throws {
    let fixture = try KeeperFixture(urls: Self.urls)
    let outcome = try await run(
      fixture,
      [
        .failure(.connect(.refused)), .success(HTTPReply(status: 302, fields: [], body: fixture.bytes())),
        ok(fixture.bytes("b.example.com")),
      ])
    #expect(outcome.tried == ["http://a.example connect", "http://b.example status", "http://c.example domain"])
    #expect(outcome.script.asked[1].url == "http://b.example/v1/pins?x=1&domain=api.example.com")
    guard case .failure(let failure) = outcome.result else { return #expect(Bool(false)) }
    #expect(failure.step == "domain")
    #expect(failure.description.hasPrefix("http://a.example: connect: "))
    #expect(failure.description.contains("; http://b.example: status: status 302; http://c.example: domain: "))
  }

  @Test("A record there is an objection to is passed over") func objection() async throws {
    let fixture = try KeeperFixture(urls: Self.urls)
    let outcome = try await run(fixture, [ok(fixture.bytes()), ok(fixture.bytes(at: 10))]) { record in
      record.created == fixture.start ? .rollback(created: record.created, highest: record.created) : nil
    }
    #expect(outcome.tried == ["http://a.example rollback", "http://b.example"])
    #expect(try outcome.result.get().record.created == fixture.moment(10).wall)
  }

  @Test("Ten seconds are for all URLs together, an even share of what is left for each") func shares() async throws {
    let fixture = try KeeperFixture(urls: Self.urls)
    let outcome = try await run(
      fixture, [.failure(.timedOut(.reply)), .failure(.timedOut(.connect)), .failure(.timedOut(.connect))], seconds: 2)
    let start: UInt64 = 1_000_000_000_000
    let ends = outcome.script.asked.map { ($0.deadline.nanoseconds - start) / 1_000_000 }
    #expect(ends == [3333, 6000, 10_000])
    #expect(outcome.tried.map { $0.split(separator: " ")[1] } == ["reply", "connect", "connect"])
  }
}
