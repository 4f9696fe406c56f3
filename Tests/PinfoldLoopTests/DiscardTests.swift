import Testing

@testable import PinfoldLoop

@Suite struct DiscardTests {
  private static let secret = Array("Proxy-Authorization: Basic YWxpY2U6czNjcjN0".utf8)

  private static func scratchHoldsSecret(_ loop: EventLoop) -> Bool {
    unsafe Array(loop.scratch[..<secret.count]) == secret
  }

  @Test func `what is read away does not stay in memory`() async throws {
    try await onLoop { loop in
      let (client, server) = try await Acceptor(loop).pair(loop)
      try await client.send(Self.secret, deadline: loop.soon)
      #expect(try await server.receive(max: 9, deadline: loop.soon) { $0.count } == 9)
      server.discard()
      #expect(try server.tryReceive(max: 9) == nil)
      #expect(!Self.scratchHoldsSecret(loop))
      try await client.send(Self.secret, deadline: loop.soon)
      #expect(try await server.discard(max: 9, deadline: loop.soon) == 9)
      #expect(try await server.discard(max: 100, deadline: loop.soon) == Self.secret.count - 9)
      #expect(!Self.scratchHoldsSecret(loop))
      client.shutdownWrite()
      #expect(try await server.discard(max: 100, deadline: loop.soon) == 0)
      server.discard()
    }
  }
}
