import Glibc

/// Ports of 127.0.0.1.
enum LocalPort {
  /// Throws when somebody listens on the port already, or it may not be used. Proxy workers share their port by
  /// SO_REUSEPORT, so that without this question a second Pinfold of the same user would silently get half of the
  /// first one's connections.
  static func demandFree(_ port: UInt16, option: String) throws(NetworkFailure) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw NetworkFailure(code: errno) }
    defer { close(descriptor) }
    var on: Int32 = 1
    // Connections that linger from an earlier run do not count; only listeners do.
    unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let isBound = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    guard !isBound else { return }
    let words = FileFailure.text(errno)
    throw NetworkFailure(message: "port \(port) of 127.0.0.1 cannot be used: \(words); choose another with \(option)")
  }
}
