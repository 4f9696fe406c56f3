import PinfoldLoop
import PinfoldModel
import Testing

@Suite struct StreamSocketTests {
  @Test func `bytes come back from an echo over TCP`() async throws {
    try await onLoop { loop in
      let accepted = try Accepted(loop)
      let client = try await StreamSocket.connect(to: accepted.endpoint, loop: loop, deadline: loop.soon)
      let server = try await accepted.next()
      try await client.send(Array("hello".utf8), deadline: loop.soon)
      let heard = try await server.receive(max: 100, deadline: loop.soon)
      #expect(heard == Array("hello".utf8))
      try await server.send(heard, deadline: loop.soon)
      #expect(try await client.receive(max: 100, deadline: loop.soon) { $0.count } == 5)
      client.shutdownWrite()
      #expect(try await server.receive(max: 100, deadline: loop.soon).isEmpty)
      #expect(server.peerAddress == client.localAddress)
    }
  }
}
