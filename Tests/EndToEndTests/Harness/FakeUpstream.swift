import Synchronization

/// A server that plays a script instead of TLS, and writes down what it was sent.
final class FakeUpstream: Sendable {
  private let listener: Listener
  private let log: Log
  var port: UInt16 { listener.port }
  var connectionCount: Int { listener.connectionCount }

  private final class Log: Sendable {
    let received = Mutex<[Recording]>([])
  }

  /// One accepted connection, as the script sees it.
  struct Connection: Sendable {
    let socket: Socket
    fileprivate let recording: Recording

    /// Reads on until the first record is whole; what was read. Short when the peer ended.
    @discardableResult func readRecord() -> [UInt8] {
      while TLSRecords.firstLength(recording.all).map({ recording.count < $0 }) ?? true {
        guard case .bytes(let bytes) = socket.receive() else { break }
        recording.append(bytes)
      }
      return recording.all
    }

    /// Reads and keeps until the peer ends or so many seconds pass in silence.
    func readToEnd(seconds: Double = 5) {
      socket.setTimeout(seconds: seconds)
      while case .bytes(let bytes) = socket.receive() { recording.append(bytes) }
    }
  }

  /// The connection is closed when the script returns.
  init(isNarrow: Bool = false, _ script: @escaping @Sendable (Connection) -> Void) throws {
    let log = Log()
    self.log = log
    listener = try Listener(isNarrow: isNarrow) { socket in
      let recording = Recording()
      log.received.withLock { $0.append(recording) }
      script(Connection(socket: socket, recording: recording))
      socket.shutDown()
    }
  }

  /// What each connection was sent, in the order they came.
  var received: [[UInt8]] { log.received.withLock { $0.map(\.all) } }

  func stop() { listener.stop() }
}

/// Just enough of the record layer (RFC 8446 §5.1) to know where a record ends.
enum TLSRecords {
  /// The length of the first record with its header; `nil` before the header is there.
  static func firstLength(_ bytes: [UInt8]) -> Int? {
    bytes.count < 5 ? nil : 5 + (Int(bytes[3]) << 8 | Int(bytes[4]))
  }

  /// The content types of the records in the bytes, and whether the last one is whole.
  static func types(_ bytes: [UInt8]) -> (types: [UInt8], areWhole: Bool) {
    var rest = bytes[...]
    var types: [UInt8] = []
    while let length = firstLength(Array(rest)) {
      types.append(rest[rest.startIndex])
      guard rest.count >= length else { return (types, false) }
      rest = rest.dropFirst(length)
    }
    return (types, rest.isEmpty)
  }
}

extension TLSRecords {
  /// The same handshake bytes in one record.
  static func joined(_ bytes: [UInt8]) -> [UInt8] {
    var rest = bytes[...]
    var body: [UInt8] = []
    while let length = firstLength(Array(rest.prefix(5))), rest.count >= length {
      body += rest.dropFirst(5).prefix(length - 5)
      rest = rest.dropFirst(length)
    }
    return [22, 3, 1, UInt8(body.count >> 8), UInt8(body.count & 255)] + body
  }
}
