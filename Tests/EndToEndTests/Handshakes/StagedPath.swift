import Foundation
import Synchronization
import Testing

/// A path to a genuine server on which an attacker, who has a server of his own, decides where each connection goes, and a
/// proxy in front of it.
struct StagedPath {
  enum Fate: Sendable {
    case genuine, evil
    /// Another server of the key's owner, who does not speak TLS 1.3 there.
    case older
    /// Nothing is answered.
    case silent
    /// A session of TLS 1.2 is resumed, as far as anybody can who owns no key.
    case resumed
    /// A second hello is asked for, and nothing more is said.
    case retry
    /// The same, and the connection ends.
    case retryAndEnd
    /// The genuine server's whole flight comes, and the connection ends.
    case flightAndEnd
    /// The same with another last byte, and nothing more is said.
    case forgedFlight
    /// The genuine server's flight comes, then 100,000 bytes more, and what of them lies unread is written down.
    case flood
  }

  /// One connection, by the order in which they are dialled, from 1, and the random of its hello.
  struct Dial: Sendable {
    let number: Int
    let random: [UInt8]
    /// Connections dialled so far.
    let count: @Sendable () -> Int
  }

  private final class Count: Sendable {
    let value = Atomic<Int>(0)
    let floods = Atomic<Int>(0)
    let unread = Atomic<Int>(0)
  }

  let genuine: Servers.Running
  let pinfold: Pinfold
  private let older: Servers.Running
  private let evil: Servers.Running
  private let evilLog: Workspace
  private let path: FakeUpstream
  private let count: Count

  /// - Parameter versions: those of the genuine server.
  init(
    versions: String, change: (inout Settings) -> Void = { _ in }, _ fate: @escaping @Sendable (Dial) -> Fate
  ) throws {
    let certificates = try Certificates.shared()
    genuine = try Servers.nginx(certificates.ecdsa, protocols: versions)
    older = try Servers.nginx(certificates.ecdsa, protocols: "TLSv1.2")
    evilLog = try Workspace("evil")
    evil = try Servers.nginx(
      certificates.other, protocols: "TLSv1.3", options: "access_log \(evilLog.path("requests"));")
    let (honest, old, own) = (genuine.port, older.port, evil.port)
    let count = Count()
    self.count = count
    path = try FakeUpstream { near in
      let number = count.value.add(1, ordering: .relaxed).newValue
      let hello = near.readRecord()
      guard hello.count > 76 else { return }
      let dial = Dial(number: number, random: Array(hello[11..<43])) { count.value.load(ordering: .relaxed) }
      switch fate(dial) {
      case .silent: near.readToEnd()
      case .resumed:
        near.socket.send(Self.resumption(answering: hello))
        near.readToEnd()
      case .retry:
        near.socket.send(Self.retry(answering: hello))
        near.readToEnd()
      case .retryAndEnd:
        near.socket.send(Self.retry(answering: hello))
        near.socket.endSending()
        near.readToEnd()
      case .flightAndEnd:
        Self.passFlight(near, hello, honest)
        near.socket.endSending()
        near.readToEnd()
      case .forgedFlight:
        Self.passFlight(near, hello, honest, isForged: true)
        near.readToEnd()
      case .flood:
        // A pair lasts four times as long as the first answer took.
        Thread.sleep(forTimeInterval: 0.2)
        Self.passFlight(near, hello, honest)
        for _ in 0..<6 { near.socket.send([23, 3, 3, 0x40, 0] + [UInt8](repeating: 7, count: 16_384)) }
        count.floods.add(1, ordering: .relaxed)
        let isRead: Void? = try? Wait.untilTrue("being read", seconds: 0.5) {
          Interceptor.bytesUnread(behind: near.socket.localPort, from: near.socket.remotePort) == 0
        }
        if isRead == nil { count.unread.add(1, ordering: .relaxed) }
        near.readToEnd()
      case .genuine: Self.join(near, hello, honest)
      case .older: Self.join(near, hello, old)
      case .evil: Self.join(near, hello, own)
      }
    }
    pinfold = try Pinfold(Settings.pinned(certificates.ecdsa.pin, port: path.port).with(change))
  }

  /// Whether the attacker's server got a request.
  var isRead: Bool { !evilLog.read("requests").isEmpty }

  /// Connections dialled so far.
  var connections: Int { path.connectionCount }

  /// Connections that were flooded.
  var floods: Int { count.floods.load(ordering: .relaxed) }

  /// Those of them on which bytes lay unread.
  var unread: Int { count.unread.load(ordering: .relaxed) }

  /// Passes on what the server says to this hello, and then no more.
  private static func passFlight(
    _ near: FakeUpstream.Connection, _ hello: [UInt8], _ port: UInt16, isForged: Bool = false
  ) {
    guard let far = try? Socket.connect(to: port), far.send(hello) else { return }
    far.setTimeout(seconds: 0.04)
    var flight: [UInt8] = []
    while case .bytes(let bytes) = far.receive() { flight += bytes }
    if isForged, let last = flight.popLast() { flight.append(last ^ 1) }
    near.socket.send(flight)
  }

  private static func join(_ near: FakeUpstream.Connection, _ hello: [UInt8], _ port: UInt16) {
    guard let far = try? Socket.connect(to: port) else { return }
    far.send(hello)
    Tap.join(near.socket, far, Tap.Connection())
  }

  /// What the server of a resumed TLS 1.2 session would say: anybody can, since only the client finds the Finished wrong.
  static func resumption(answering hello: [UInt8]) -> [UInt8] {
    let random = [UInt8](repeating: 9, count: 32)
    return serverHello(random, hello, suite: [0xc0, 0x2c], extensions: [0xff, 1, 0, 1, 0]) + [20, 3, 3, 0, 1, 1]
      + [22, 3, 3, 0, 40] + [UInt8](repeating: 7, count: 40)
  }

  /// A HelloRetryRequest (RFC 8446 §4.1.4) for secp384r1, which clients offer and send no share of.
  private static func retry(answering hello: [UInt8]) -> [UInt8] {
    // SHA-256 of "HelloRetryRequest".
    let random: [UInt8] = [
      0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11,
      0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
    ]
    return serverHello(
      random, hello, suite: [0x13, 1], extensions: [0, 43, 0, 2, 3, 4, 0, 51, 0, 2, 0, 0x18])
  }

  private static func serverHello(
    _ random: [UInt8], _ hello: [UInt8], suite: [UInt8], extensions: [UInt8]
  ) -> [UInt8] {
    let session = Array(hello[43...(43 + Int(hello[43]))])
    let body = [3, 3] + random + session + suite + [0, 0, UInt8(extensions.count)] + extensions
    let message = [2, 0, 0, UInt8(body.count)] + body
    return [22, 3, 3, 0, UInt8(message.count)] + message
  }
}
