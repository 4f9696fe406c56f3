import Foundation
import Synchronization

/// A relay that changes nothing and writes down both directions: between client and proxy, so that a test can say
/// which bytes the client was given, or between proxy and upstream, for what was sent before the verdict.
final class Tap: Sendable {
  /// One connection through the tap.
  struct Connection: Sendable {
    /// From the side that connected.
    let forward = Recording()
    /// From the side that was connected to.
    let backward = Recording()
  }

  private let listener: Listener
  private let log: Log
  var port: UInt16 { listener.port }

  private final class Log: Sendable {
    let connections = Mutex<[Connection]>([])
  }

  /// Connections go to the targets in turn.
  init(to targets: UInt16...) throws {
    let log = Log()
    self.log = log
    listener = try Listener { near in
      let connection = Connection()
      let number = log.connections.withLock { connections in
        connections.append(connection)
        return connections.count - 1
      }
      guard let far = try? Socket.connect(to: targets[number % targets.count]) else { return near.shutDown() }
      Self.join(near, far, connection)
    }
  }

  /// Carries bytes both ways until both sides are done, writing them down.
  static func join(_ near: Socket, _ far: Socket, _ connection: Connection) {
    Thread.detachNewThread { Self.pump(from: far, to: near, connection.backward) }
    Self.pump(from: near, to: far, connection.forward)
  }

  private static func pump(from source: Socket, to sink: Socket, _ recording: Recording) {
    source.setTimeout(seconds: 30)
    loop: while true {
      switch source.receive() {
      case .bytes(let bytes):
        recording.append(bytes)
        if !sink.send(bytes) { break loop }
      case .end: return sink.endSending()
      case .reset, .timeout: break loop
      }
    }
    source.shutDown()
    sink.shutDown()
  }

  /// Every connection so far, oldest first.
  var connections: [Connection] { log.connections.withLock { $0 } }
}

/// What a client got from the proxy, taken apart at the end of the reply head.
struct ProxyReply: Equatable {
  /// Up to and with the empty line; empty when the line never came.
  let head: String
  /// What followed.
  let rest: [UInt8]

  init(_ bytes: [UInt8]) {
    let end = bytes.indices.first { $0 + 4 <= bytes.count && bytes[$0..<$0 + 4].elementsEqual([13, 10, 13, 10]) }
    head = end.map { String(decoding: bytes[..<($0 + 4)], as: UTF8.self) } ?? ""
    rest = end.map { Array(bytes[($0 + 4)...]) } ?? bytes
  }

  var statusLine: String { head.split(separator: "\r\n").first.map(String.init) ?? "" }

  /// The value of a header field, however its name is written.
  func field(_ name: String) -> String? {
    for line in head.split(separator: "\r\n").dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1)
      if parts.count == 2, parts[0].lowercased() == name.lowercased() {
        return parts[1].trimmingCharacters(in: .whitespaces)
      }
    }
    return nil
  }

  /// Whether behind the 200 head nothing came but, at most, the fatal alert access_denied in the clear: the shape
  /// of every refusal. Any byte of the upstream's flight would show here. A HelloRetryRequest, which carries no key,
  /// may come before where `allowsRetry`, with the ChangeCipherSpec that goes along with it.
  func isSilentRefusal(allowsRetry: Bool) -> Bool {
    guard statusLine.contains(" 200") else { return false }
    var rest = rest[...]
    if allowsRetry, let length = TLSRecords.firstLength(Array(rest)), rest.dropFirst(11).starts(with: Self.retryRandom)
    {
      rest = rest.dropFirst(length)
      if rest.starts(with: [20, 3, 3, 0, 1, 1]) { rest = rest.dropFirst(6) }
    }
    return rest.isEmpty
      || (rest.count == 7 && rest.starts(with: [21, 3]) && rest.dropFirst(3).elementsEqual([0, 2, 2, 49]))
  }

  /// The refusal without a HelloRetryRequest.
  var isSilentRefusal: Bool { isSilentRefusal(allowsRetry: false) }

  /// The random by which a ServerHello is a HelloRetryRequest: SHA-256 of those words (RFC 8446 §4.1.3).
  private static let retryRandom: [UInt8] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11,
    0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
  ]
}
