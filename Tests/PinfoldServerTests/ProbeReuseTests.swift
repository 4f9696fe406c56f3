import PinfoldLoop
import PinfoldModel
import PinfoldWire
import Testing

@testable import PinfoldServer

/// Would catch a probe's outcome that is used for another upstream, another offer, another policy, or for too long.
@Suite struct ProbeReuseTests {
  private final class Starts {
    var count = 0

    func next() -> Task<ProbeLeg.Outcome, Never> {
      count += 1
      return Task { .failed(.probeFailed, "") }
    }
  }

  private static func key(
    address: String = "127.0.0.1:443", host: String = "a.test:443", policy: UInt64 = 1, hello: [UInt8] = hello()
  ) throws -> ProbeReuse.Key {
    var reader = ClientHelloReader()
    guard case .hello(let parsed) = reader.receive(hello.span) else { throw Wrong() }
    return ProbeReuse.Key(
      address: try #require(SocketAddress(address)), authority: try #require(Authority(host)), hello: parsed,
      policyVersion: policy)
  }

  private struct Wrong: Error {}

  /// A small TLS 1.2 hello with one signature algorithm.
  private static func hello(scheme: UInt8 = 3) -> [UInt8] {
    let extensions: [UInt8] = [0, 13, 0, 4, 0, 2, 4, scheme]
    let body =
      [3, 3] + [UInt8](repeating: 7, count: 32) + [0, 0, 2, 0xc0, 0x2b, 1, 0, 0, UInt8(extensions.count)] + extensions
    return [22, 3, 1, 0, UInt8(body.count + 4), 1, 0, 0, UInt8(body.count)] + body
  }

  private static let start = Deadline(nanoseconds: 1_000_000_000)

  @Test("Tunnels that look the same share one probe while it lasts") func shared() throws {
    let reuse = ProbeReuse()
    let starts = Starts()
    for _ in 0..<3 { _ = reuse.outcome(for: try Self.key(), now: Self.start, seconds: 5, start: starts.next) }
    #expect(starts.count == 1)
  }

  @Test("It is not used again once its time is over") func expires() throws {
    let reuse = ProbeReuse()
    let starts = Starts()
    _ = reuse.outcome(for: try Self.key(), now: Self.start, seconds: 5, start: starts.next)
    let late = Self.start.advanced(by: .seconds(5))
    _ = reuse.outcome(for: try Self.key(), now: late, seconds: 5, start: starts.next)
    #expect(starts.count == 2)
  }

  @Test("A forgotten one is not used again") func forgets() throws {
    let reuse = ProbeReuse()
    let starts = Starts()
    _ = reuse.outcome(for: try Self.key(), now: Self.start, seconds: 5, start: starts.next)
    reuse.forget(try Self.key())
    _ = reuse.outcome(for: try Self.key(), now: Self.start, seconds: 5, start: starts.next)
    #expect(starts.count == 2)
  }

  @Test("Address, host, policy and offer each make a probe of its own") func keys() throws {
    let reuse = ProbeReuse()
    let starts = Starts()
    let keys = [
      try Self.key(), try Self.key(address: "127.0.0.2:443"), try Self.key(host: "b.test:443"),
      try Self.key(policy: 2), try Self.key(hello: Self.hello(scheme: 1)),
    ]
    for key in keys { _ = reuse.outcome(for: key, now: Self.start, seconds: 5, start: starts.next) }
    #expect(starts.count == keys.count)
  }
}
