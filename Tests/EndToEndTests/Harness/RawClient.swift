/// A client that sends exactly the bytes it is told to and keeps every byte it gets.
struct RawClient: Sendable {
  let socket: Socket

  init(socket: Socket) { self.socket = socket }

  init(to port: UInt16, from source: UInt8 = 1) throws {
    guard let socket = try Socket.connect(to: port, from: source) else {
      throw HarnessError("nobody listens on \(port)")
    }
    self.socket = socket
  }

  /// The usual CONNECT head.
  static func head(_ authority: String, fields: String = "") -> String {
    "CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\(fields)\r\n"
  }

  @discardableResult func send(_ text: String) -> Bool { socket.send(Array(text.utf8)) }
  @discardableResult func send(_ bytes: [UInt8]) -> Bool { socket.send(bytes) }

  /// Everything until the peer ends or, for so many seconds, says nothing. `ended` tells which.
  func drain(seconds: Double = 8) -> (bytes: [UInt8], ended: Bool) {
    var all: [UInt8] = []
    socket.setTimeout(seconds: seconds)
    while true {
      switch socket.receive() {
      case .bytes(let bytes): all += bytes
      case .end, .reset: return (all, true)
      case .timeout: return (all, false)
      }
    }
  }

  /// At least so many bytes; throws when they do not come.
  func receive(atLeast count: Int, seconds: Double = 8) throws -> [UInt8] {
    var all: [UInt8] = []
    socket.setTimeout(seconds: seconds)
    while all.count < count {
      guard case .bytes(let bytes) = socket.receive() else {
        throw HarnessError("\(all.count) bytes instead of \(count): \(String(decoding: all, as: UTF8.self))")
      }
      all += bytes
    }
    return all
  }

  /// Sends the CONNECT head and returns the reply's, which has to come in one piece before any tunnel byte.
  func connect(_ authority: String) throws -> ProxyReply {
    send(Self.head(authority))
    var bytes: [UInt8] = []
    socket.setTimeout(seconds: 10)
    while ProxyReply(bytes).head.isEmpty {
      guard case .bytes(let more) = socket.receive() else {
        throw HarnessError("no reply to CONNECT: \(String(decoding: bytes, as: UTF8.self))")
      }
      bytes += more
    }
    return ProxyReply(bytes)
  }

  /// One whole exchange: the head, then the bytes, then everything until the proxy ends it. For refusals, and for
  /// upstreams that end by themselves.
  static func exchange(proxy: UInt16, _ authority: String, _ bytes: [UInt8], seconds: Double = 8) throws -> ProxyReply {
    let client = try RawClient(to: proxy)
    let reply = try client.connect(authority)
    guard reply.statusLine.contains(" 200") else { return reply }
    client.send(bytes)
    return ProxyReply(Array(reply.head.utf8) + reply.rest + client.drain(seconds: seconds).bytes)
  }
}
