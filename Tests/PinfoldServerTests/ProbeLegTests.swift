import Foundation
import PinfoldCrypto
import PinfoldLoop
import PinfoldModel
import PinfoldTLS
import PinfoldWire
import Testing

@testable import PinfoldServer

/// Would catch a probe's connection that an attacker can tell from the app's by when it is read.
@Suite struct ProbeLegTests {
  private struct Wrong: Error {}

  /// A leg with a twin of a captured hello, and the upstream's end of its connection.
  private static func make(_ loop: EventLoop) async throws -> (leg: ProbeLeg, far: StreamSocket) {
    let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Fixtures/Handshakes/tls13-curl-nginx/client.bin")
    let bytes = [UInt8](try Data(contentsOf: file))
    var reader = ClientHelloReader()
    guard case .hello(let hello) = reader.receive(bytes.span) else { throw Wrong() }
    let (far, near) = try await SocketPair.make(loop)
    let handshake = ProbeHandshake.twin(try TwinSession(of: hello, now: Timestamp(seconds: 1_795_219_200)))
    let deadline = loop.deadline(after: .seconds(20))
    return (ProbeLeg(handshake, over: near, loop: loop, deadline: deadline, leavesEarly: false), far)
  }

  /// A fatal handshake_failure (RFC 8446 §6).
  private static let alert: [UInt8] = [21, 3, 3, 0, 2, 2, 40]

  @Test func `nothing is read between its hello and the app's`() async throws {
    try await onLoop { loop in
      let (leg, far) = try await Self.make(loop)
      #expect(try leg.sendHello())
      let deadline = loop.deadline(after: .seconds(20))
      #expect(try await far.receive(max: 16_384, deadline: deadline).first == 22)
      try await far.send(Self.alert, deadline: deadline)
      await loop.sleep(for: .milliseconds(50))
      #expect(leg.heardAt == nil && !leg.isOver)
      leg.goOn()
      guard case .failed(.probeFailed, let detail) = await leg.outcome(patience: .seconds(20)) else { throw Wrong() }
      #expect(detail.contains("alert 40"), "\(detail)")
      #expect(leg.heardAt != nil)
      leg.abandon()
      far.close()
    }
  }

  /// A HelloRetryRequest for P-384 (RFC 8446 §4.1.4), which the hello offers no share of, to a hello with this session id.
  private static func retry(_ sessionID: ArraySlice<UInt8>) -> [UInt8] {
    let random = SHA256.digest(Array("HelloRetryRequest".utf8)).bytes
    let extensions: [UInt8] = [0, 43, 0, 2, 3, 4, 0, 51, 0, 2, 0, 24]
    let body: [UInt8] =
      [3, 3] + random + [UInt8(sessionID.count)] + sessionID + [0x13, 1, 0, 0, UInt8(extensions.count)] + extensions
    return [22, 3, 3, 0, UInt8(body.count + 4), 2, 0, 0, UInt8(body.count)] + body
  }

  /// Would catch one read more of the probe's connection than of the app's, which the upstream sees by an acknowledgement.
  @Test func `nothing is read behind a request once the app's connection has its own`() async throws {
    try await onLoop { loop in
      for _ in 0..<20 {
        let (leg, far) = try await Self.make(loop)
        #expect(try leg.sendHello())
        let deadline = loop.deadline(after: .seconds(20))
        let hello = try await far.receive(max: 16_384, deadline: deadline)
        leg.goOn()
        // What follows the request comes while the leg is about to read again, and so does the app's request.
        leg.onProgress = {
          guard leg.hasRetried else { return }
          leg.onProgress = nil
          Task(executorPreference: loop) {
            let sent = try? far.trySend([20, 3, 3].span)
            #expect(sent == 3)
            leg.holdStill()
          }
        }
        try await far.send(Self.retry(hello[44..<(44 + Int(hello[43]))]), deadline: deadline)
        while !leg.hasRetried { await loop.sleep(for: .milliseconds(1)) }
        await loop.sleep(for: .milliseconds(5))
        #expect(try leg.socket.tryReceive(max: 100) == [20, 3, 3])
        leg.drop()
        far.close()
      }
    }
  }

  @Test func `nobody beside it sends the hello when it is waited for`() async throws {
    try await onLoop { loop in
      let (leg, far) = try await Self.make(loop)
      try await far.send(Self.alert, deadline: loop.deadline(after: .seconds(20)))
      guard case .failed(.probeFailed, _) = await leg.outcome(patience: .seconds(20)) else { throw Wrong() }
      #expect(try leg.sendHello())
      #expect(try await far.receive(max: 16_384, deadline: loop.deadline(after: .seconds(20))).first == 22)
      leg.abandon()
      // One hello, and the leave.
      #expect(try await far.receive(max: 16_384, deadline: loop.deadline(after: .seconds(20))).isEmpty)
      far.close()
    }
  }
}
