import Glibc
import PinfoldModel

/// A connection for commands that ask one thing and end: blocking, with one deadline for all of it.
struct TCPConnection: ~Copyable {
  private let descriptor: Int32
  private let deadline: ContinuousClock.Instant

  /// Connects to the first address, as getaddrinfo(3) knows them, that answers. The deadline, for everything done with this connection, lies
  /// `seconds` ahead; only the resolver has a time-out of its own. `permits` is asked about each resolved address.
  init(
    to target: Authority, seconds: Int, permits: (IPAddress) -> Bool = { _ in true }
  ) throws(NetworkFailure) {
    deadline = .now + .seconds(seconds)
    descriptor = try Self.connect(host: target.host.text, port: target.port, deadline, permits)
  }

  deinit { close(descriptor) }

  /// Sends all of it.
  borrowing func send(_ bytes: [UInt8]) throws(NetworkFailure) {
    var rest = bytes[...]
    while !rest.isEmpty {
      try Self.wait(descriptor, POLLOUT, deadline)
      let count = unsafe rest.withUnsafeBytes {
        unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      if count < 0, errno == EINTR || errno == EAGAIN { continue }
      guard count > 0 else { throw NetworkFailure(code: errno) }
      rest = rest.dropFirst(count)
    }
  }

  /// What has arrived, at most 16 KiB and at least a byte; nothing at the end of the stream.
  borrowing func receive() throws(NetworkFailure) -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 16_384)
    while true {
      try Self.wait(descriptor, POLLIN, deadline)
      let count = unsafe buffer.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
      if count < 0, errno == EINTR || errno == EAGAIN { continue }
      guard count >= 0 else { throw NetworkFailure(code: errno) }
      return Array(buffer[..<count])
    }
  }

  private static func connect(
    host: String, port: UInt16, _ deadline: ContinuousClock.Instant, _ permits: (IPAddress) -> Bool
  ) throws(NetworkFailure) -> Int32 {
    var hints = unsafe addrinfo()
    unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    let code = unsafe getaddrinfo(host, String(port), &hints, &list)
    guard code == 0 else { throw NetworkFailure(message: unsafe String(cString: gai_strerror(code))) }
    defer { unsafe freeaddrinfo(list) }
    var failure = NetworkFailure(message: "the name has no address")
    var next = unsafe list
    while let entry = unsafe next {
      unsafe next = entry.pointee.ai_next
      guard let address = unsafe entry.pointee.ai_addr else { continue }
      guard let ip = unsafe ipAddress(address), permits(ip) else {
        failure = NetworkFailure(message: "its address may not be connected to")
        continue
      }
      do throws(NetworkFailure) {
        return try unsafe connect(address, entry.pointee.ai_addrlen, family: entry.pointee.ai_family, deadline)
      } catch {
        failure = error
      }
    }
    throw failure
  }

  private static func ipAddress(_ address: UnsafeMutablePointer<sockaddr>) -> IPAddress? {
    switch unsafe Int32(address.pointee.sa_family) {
    case AF_INET:
      return unsafe address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
        unsafe .v4(UInt32(bigEndian: $0.pointee.sin_addr.s_addr))
      }
    case AF_INET6:
      return unsafe address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
        var bytes = unsafe $0.pointee.sin6_addr
        return unsafe withUnsafeBytes(of: &bytes) { unsafe IPAddress(bytes: Array($0)) }
      }
    default: return nil
    }
  }

  private static func connect(
    _ address: UnsafePointer<sockaddr>, _ length: socklen_t, family: Int32, _ deadline: ContinuousClock.Instant
  ) throws(NetworkFailure) -> Int32 {
    let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
    let descriptor = socket(family, kind, 0)
    guard descriptor >= 0 else { throw NetworkFailure(code: errno) }
    do throws(NetworkFailure) {
      guard unsafe Glibc.connect(descriptor, address, length) != 0 else { return descriptor }
      guard errno == EINPROGRESS else { throw NetworkFailure(code: errno) }
      try wait(descriptor, POLLOUT, deadline)
      var code: Int32 = 0
      var size = socklen_t(MemoryLayout<Int32>.size)
      guard unsafe getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) == 0, code == 0 else {
        throw NetworkFailure(code: code)
      }
      return descriptor
    } catch {
      close(descriptor)
      throw error
    }
  }

  private static func wait(
    _ descriptor: Int32, _ events: Int32, _ deadline: ContinuousClock.Instant
  ) throws(NetworkFailure) {
    while true {
      let left = deadline - .now
      guard left > .zero else { throw NetworkFailure(message: "no answer in time") }
      var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
      let (seconds, attoseconds) = left.components
      let milliseconds = min(seconds, 3600) * 1000 + attoseconds / 1_000_000_000_000_000
      if unsafe poll(&entry, 1, Int32(milliseconds) + 1) > 0 { return }
    }
  }
}

/// A connection that did not come to be, or broke.
struct NetworkFailure: Error, Equatable, CustomStringConvertible {
  let message: String
  var description: String { message }

  init(message: String) { self.message = message }

  /// `code` is an errno, taken before anything else could change it.
  init(code: Int32) { message = FileFailure.text(code) }
}
