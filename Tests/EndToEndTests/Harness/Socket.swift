import Glibc
import Synchronization

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

  /// Listens on the port; `nil` when it is taken. On a narrow one the peer's system takes in little before somebody reads:
  /// some 20 KB of a TCP connection with small segments and a small window.
  static func listen(on port: UInt16, backlog: Int32 = 64, isNarrow: Bool = false) throws -> Socket? {
    guard let socket = try bound(to: port) else { return nil }
    if isNarrow {
      socket.set(TCP_MAXSEG, level: Int32(IPPROTO_TCP), 88)
      socket.set(SO_RCVBUF, 1)
    }
    guard Glibc.listen(socket.descriptor, backlog) == 0 else { return nil }
    return socket
  }

  /// Bound to the port and not listening; `nil` when somebody listens there.
  fileprivate static func bound(to port: UInt16) throws -> Socket? {
    let socket = try make()
    socket.set(SO_REUSEADDR, 1)
    var address = loopback(port)
    let result = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe bind(socket.descriptor, $0, addressLength)
      }
    }
    return result == 0 ? socket : nil
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
  var localPort: UInt16 { unsafe port { unsafe getsockname(descriptor, $0, $1) } }

  /// The port on the other side; 0 when the system does not say.
  var remotePort: UInt16 { unsafe port { unsafe getpeername(descriptor, $0, $1) } }

  private func port(
    _ ask: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
  ) -> UInt16 {
    var (address, length) = (sockaddr_in(), Self.addressLength)
    let result = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { unsafe ask($0, &length) }
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
  /// Below the range that outgoing connections are given, so that none of those can take one meanwhile.
  private static let range: Range<UInt16> = 20000..<32000
  private static let last = Mutex(UInt16.random(in: range))

  /// A port that comes again only after all the others: what one test was given, no other takes meanwhile.
  ///
  /// It is tried without listening. A child that is being started holds a copy of every descriptor until it runs its own
  /// program (close-on-exec), and the copy of a listening one would keep the port taken; with SO_REUSEADDR that of a
  /// bound one does not (socket(7)).
  static func next() throws -> UInt16 {
    for _ in range {
      let port = last.withLock { last in
        last = last + 1 < range.upperBound ? last + 1 : range.lowerBound
        return last
      }
      if try Socket.bound(to: port) != nil { return port }
    }
    throw HarnessError("no free port on 127.0.0.1")
  }

  /// Whether nobody listens on any of them.
  static func areFree(_ ports: UInt16...) -> Bool {
    ports.allSatisfy { (try? Socket.bound(to: $0)) != nil }
  }
}
