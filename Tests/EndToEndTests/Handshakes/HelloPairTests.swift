import Foundation
import Synchronization
import Testing

extension Handshakes {
  /// What an attacker could see of a pair by how its two hellos go out.
  ///
  /// Guards: that a hello which is not taken in at once shows by the other connection whose it is.
  @Suite struct HelloPairTests {
    /// A hello of 60 KB that offers TLS 1.3 with one X25519 share, and can have a twin.
    private static var large: ClientHello {
      var hello = ClientHello()
      hello.suites = [0x1301, 0x1302]
      hello.extraExtensions = [0, 43, 0, 3, 2, 3, 4]
      hello.extraExtensions += [0, 51, 0, 38, 0, 36, 0, 29, 0, 32] + (0..<32).map { _ in UInt8.random(in: 1...255) }
      hello.extraExtensions += [0, 21, 0xe6, 0] + [UInt8](repeating: 0, count: 0xe600)
      return hello
    }

    /// Sends `count` large hellos to an upstream that says nothing, and begins to read after half a second.
    private static func send(_ count: Int, isNarrow: Bool) throws -> (pairs: [[Int]], pinfold: Pinfold) {
      let ended = Atomic<Int>(0)
      let upstream = try FakeUpstream(isNarrow: isNarrow) { near in
        Thread.sleep(forTimeInterval: 0.5)
        near.readToEnd(seconds: 1)
        ended.add(1, ordering: .relaxed)
      }
      let pins = try Certificates.shared().ecdsa.pin
      let pinfold = try Pinfold(Settings.pinned(pins, port: upstream.port).with { $0.limits["handshake_seconds"] = 3 })
      var pairs: [[Int]] = []
      for number in 1...count {
        _ = try RawClient.exchange(proxy: pinfold.port, "api.pinfold.test:443", large.bytes)
        try Wait.untilTrue("the end of both connections") { ended.load(ordering: .relaxed) == 2 * number }
        pairs.append(upstream.received.suffix(2).map(\.count))
      }
      return (pairs, pinfold)
    }

    @Test func `an upstream that takes in a part of one hello is refused before it sees any other`() throws {
      let (pairs, pinfold) = try Self.send(4, isNarrow: true)
      for pair in pairs { #expect(pair.min() == 0 && 0 < pair.max() ?? 0, "\(pairs)") }
      #expect(try Set(pinfold.reasons(4)) == ["upstream_unreachable"], "\(pinfold.decisions)")
    }

    @Test func `a large hello goes out whole, and so does its twin, where the upstream takes it in`() throws {
      let (pairs, _) = try Self.send(2, isNarrow: false)
      for pair in pairs { #expect(pair == [pair[0], pair[0]] && pair[0] > 0xe600, "\(pairs)") }
    }
  }
}
