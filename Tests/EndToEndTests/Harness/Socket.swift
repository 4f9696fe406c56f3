import Glibc

/// A blocking TCP socket on 127.0.0.1 whose every wait is bounded; closed with its owner.
final class Socket: Sendable {
  private let descriptor: Int32

  private init(_ descriptor: Int32) { self.descriptor = descriptor }
  deinit { close(descriptor) }

  private static func make() throws -> Socket {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw HarnessError("socket: error \(errno)") }
    return Socket(descriptor)
  }

  private static func loopback(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return address
  }

  private static let addressLength = socklen_t(MemoryLayout<sockaddr_in>.size)

  private func set(_ option: Int32, level: Int32 = SOL_SOCKET, _ value: Int32) {
    var value = value
    unsafe setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
  }

  /// How long one receive, send, connect or accept may take.
  func setTimeout(seconds: Double) {
    var time = timeval(tv_sec: Int(seconds), tv_usec: Int((seconds - seconds.rounded(.down)) * 1e6))
    let length = socklen_t(MemoryLayout<timeval>.size)
    unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, length)
    unsafe setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, length)
  }

  /// Connects; `nil` when nobody listens. `source` is the last number of the own address, 127.0.0.…
  static func connect(to port: UInt16, from source: UInt8 = 1, timeout: Double = 10) throws -> Socket? {
    let socket = try make()
    socket.setTimeout(seconds: timeout)
    socket.set(TCP_NODELAY, level: Int32(IPPROTO_TCP), 1)
    if source != 1 {
      var own = loopback(0)
      own.sin_addr.s_addr = (UInt32(0x7f00_0000) | UInt32(source)).bigEndian
      let bound = unsafe withUnsafePointer(to: &own) { pointer in
        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          unsafe bind(socket.descriptor, $0, addressLength)
        }
      }
      guard bound == 0 else { throw HarnessError("bind to 127.0.0.\(source): error \(errno)") }
    }
    var address = loopback(port)
    let result = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe Glibc.connect(socket.descriptor, $0, addressLength)
      }
    }
    return result == 0 ? socket : nil
  }

  /// Listens on the port; `nil` when it is taken.
  static func listen(on port: UInt16, backlog: Int32 = 64) throws -> Socket? {
    let socket = try make()
    socket.set(SO_REUSEADDR, 1)
    var address = loopback(port)
    let result = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe bind(socket.descriptor, $0, addressLength)
      }
    }
    guard result == 0, Glibc.listen(socket.descriptor, backlog) == 0 else { return nil }
    return socket
  }

  /// The next connection; `nil` when none comes in time or the listener was shut down.
  func accept(timeout: Double) -> Socket? {
    setTimeout(seconds: timeout)
    let accepted = Glibc.accept(descriptor, nil, nil)
    guard accepted >= 0 else { return nil }
    _ = fcntl(accepted, F_SETFD, FD_CLOEXEC)
    let socket = Socket(accepted)
    socket.set(TCP_NODELAY, level: Int32(IPPROTO_TCP), 1)
    socket.setTimeout(seconds: 10)
    return socket
  }

  /// The port on this side; 0 when the system does not say.
  var localPort: UInt16 {
    var (address, length) = (sockaddr_in(), Self.addressLength)
    let result = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe getsockname(descriptor, $0, &length) }
    }
    return result == 0 ? UInt16(bigEndian: address.sin_port) : 0
  }

  /// What one receive brought.
  enum Received: Equatable {
    case bytes([UInt8])
    case end
    case reset
    case timeout
  }

  func receive(atMost count: Int = 65536) -> Received {
    var buffer = [UInt8](repeating: 0, count: count)
    let result = unsafe buffer.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
    if result > 0 { return .bytes(Array(buffer[..<result])) }
    if result == 0 { return .end }
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? .timeout : .reset
  }

  /// Sends everything; false when the peer is gone or does not read.
  @discardableResult func send(_ bytes: [UInt8]) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      let sent = unsafe rest.withUnsafeBytes {
        unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard sent > 0 else { return false }
      rest = rest.dropFirst(sent)
    }
    return true
  }

  /// Ends the direction to the peer.
  func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// Ends both directions and wakes whoever waits on this socket.
  func shutDown() { shutdown(descriptor, Int32(SHUT_RDWR)) }

  /// Breaks the connection off with a reset, as connecting to no address does (connect(2), AF_UNSPEC).
  func abort() {
    var address = sockaddr()
    address.sa_family = sa_family_t(AF_UNSPEC)
    _ = unsafe Glibc.connect(descriptor, &address, socklen_t(MemoryLayout<sockaddr>.size))
  }
}

/// Ports nobody listens on.
enum FreePort {
  /// A port below the range that outgoing connections are given, so that none of those can take it meanwhile.
  static func next() throws -> UInt16 {
    for _ in 0..<200 {
      let port = UInt16.random(in: 20000..<32000)
      if try Socket.listen(on: port) != nil { return port }
    }
    throw HarnessError("no free port on 127.0.0.1")
  }

  /// Whether nobody listens on any of them.
  static func areFree(_ ports: UInt16...) -> Bool {
    ports.allSatisfy { (try? Socket.listen(on: $0)) != nil }
  }
}
