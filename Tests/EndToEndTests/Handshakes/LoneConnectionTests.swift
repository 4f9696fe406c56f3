import Synchronization
import Testing

extension Handshakes {
  /// What an attacker on the path could do to have the app's connection to himself, with the probe before or behind it:
  /// then no lot would have to be guessed, and the probe could be left to the genuine server.
  ///
  /// Guards: that nothing he can say himself brings Pinfold to dial a connection without its pair, and that what a lone
  /// probe found is not taken for what it was not made for.
  @Suite struct LoneConnectionTests {
    /// Where each connection goes, by the order in which they are dialled, and a proxy in front of it.
    private struct Stage {
      let genuine: Servers.Running
      let evil: Servers.Running
      let evilLog: Workspace
      let path: FakeUpstream
      let pinfold: Pinfold

      enum Fate: Sendable { case genuine, evil, silent, resumed }

      /// - Parameter fate: for the number of a connection, from 1.
      init(versions: String, _ fate: @escaping @Sendable (_ number: Int, _ path: Path) -> Fate) throws {
        let certificates = try Certificates.shared()
        genuine = try Servers.nginx(certificates.ecdsa, protocols: versions)
        evilLog = try Workspace("evil")
        evil = try Servers.nginx(
          certificates.other, protocols: "TLSv1.3", options: "access_log \(evilLog.path("requests"));")
        let (honest, own) = (genuine.port, evil.port)
        let state = Path()
        path = try FakeUpstream { near in
          let number = state.count.add(1, ordering: .relaxed).newValue
          switch fate(number, state) {
          case .silent: near.readToEnd()
          case .resumed:
            near.socket.send(LoneConnectionTests.resumption(answering: near.readRecord()))
            near.readToEnd()
          case .genuine: LoneConnectionTests.join(near, honest)
          case .evil: LoneConnectionTests.join(near, own)
          }
        }
        pinfold = try Pinfold(.pinned(certificates.ecdsa.pin, port: path.port))
      }

      var isRead: Bool { !evilLog.read("requests").isEmpty }
    }

    /// Connections dialled so far.
    private final class Path: Sendable {
      let count = Atomic<Int>(0)
    }

    private static func join(_ near: FakeUpstream.Connection, _ port: UInt16) {
      guard let far = try? Socket.connect(to: port) else { return }
      Tap.join(near.socket, far, Tap.Connection())
    }

    /// What the server of a resumed TLS 1.2 session would say: anybody can, since only the client finds the Finished wrong.
    private static func resumption(answering hello: [UInt8]) -> [UInt8] {
      guard hello.count > 76 else { return [] }
      let session = Array(hello[43...(43 + Int(hello[43]))])
      let random = [UInt8](repeating: 9, count: 32)
      let body = [3, 3] + random + session + [0xc0, 0x2c, 0, 0, 5, 0xff, 1, 0, 1, 0]
      let serverHello = [2, 0, 0, UInt8(body.count)] + body
      return [22, 3, 3, 0, UInt8(serverHello.count)] + serverHello + [20, 3, 3, 0, 1, 1]
        + [22, 3, 3, 0, 40] + [UInt8](repeating: 7, count: 40)
    }

    @Test("A made-up resumption and a stalled probe leave no lone connection to intercept") func resumption() throws {
      let stage = try Stage(versions: "TLSv1.2 TLSv1.3") { number, _ in
        switch number {
        case 1, 2: .resumed
        case 3: .silent
        case 4: .genuine
        default: .evil
        }
      }
      let fetched = try Client.curl.fetch(proxy: stage.pinfold.port)
      #expect(!fetched.succeeded && !stage.isRead)
      #expect(try stage.pinfold.reasons() == ["probe_failed"], "\(stage.pinfold.decisions)")
    }

    @Test("Where the key's owner speaks TLS 1.2 only, nobody else's TLS 1.3 is vouched for by a probe") func older()
      throws
    {
      let stage = try Stage(versions: "TLSv1.2") { number, _ in number == 3 ? .evil : .genuine }
      #expect(try Client.curl.fetch(proxy: stage.pinfold.port).succeeded)
      let fetched = try Client.curl.fetch(proxy: stage.pinfold.port)
      #expect(!fetched.succeeded && !stage.isRead)
      #expect(try stage.pinfold.reasons(2) == ["pin_match", "probe_failed"], "\(stage.pinfold.decisions)")
    }

    /// The second client's first connection is answered only once its pair has been dialled too.
    @Test("A TLS 1.2 answer to who asked for no more does not leave the next client without a pair") func capped()
      throws
    {
      let stage = try Stage(versions: "TLSv1.2 TLSv1.3") { number, path in
        guard number == 2 else { return .genuine }
        let isPaired: Void? = try? Wait.untilTrue("the other connection of the pair", seconds: 3) {
          path.count.load(ordering: .relaxed) >= 3
        }
        return isPaired == nil ? .silent : .genuine
      }
      #expect(try Client.curl.fetch(proxy: stage.pinfold.port, options: ["--tls-max", "1.2"]).succeeded)
      let second = try Client.curl.fetch(proxy: stage.pinfold.port)
      #expect(second.succeeded, "\(second)")
      #expect(try stage.pinfold.reasons(2) == ["pin_match", "pin_match"], "\(stage.pinfold.decisions)")
    }
  }
}
