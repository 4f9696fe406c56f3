import Glibc
import PinfoldLoop
import PinfoldModel
import Synchronization

/// Where this process listens. Tunnels do not lead there: one that did would feed the proxy with itself.
final class OwnListeners: Sendable {
  private let addresses = Mutex<[SocketAddress]>([])

  func add(_ endpoints: [Endpoint]) {
    addresses.withLock { addresses in
      for case .tcp(let address) in endpoints { addresses.append(address) }
    }
  }

  var all: [SocketAddress] { addresses.withLock { $0 } }
}

/// The addresses of this machine's interfaces (getifaddrs(3)), read once: a listener on a wildcard address answers on
/// each of them.
enum NetworkInterfaces {
  static func addresses() -> Set<IPAddress> {
    var list: UnsafeMutablePointer<ifaddrs>?
    guard unsafe getifaddrs(&list) == 0 else { return [] }
    defer { unsafe freeifaddrs(list) }
    var result: Set<IPAddress> = []
    var next = unsafe list
    while let entry = unsafe next?.pointee {
      if let address = unsafe address(entry.ifa_addr) { result.insert(address) }
      unsafe next = entry.ifa_next
    }
    return result
  }

  private static func address(_ pointer: UnsafeMutablePointer<sockaddr>?) -> IPAddress? {
    guard let pointer = unsafe pointer else { return nil }
    switch unsafe Int32(pointer.pointee.sa_family) {
    case AF_INET:
      return unsafe pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
        unsafe .v4(UInt32(bigEndian: $0.pointee.sin_addr.s_addr))
      }
    case AF_INET6:
      return unsafe pointer.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
        var bytes = unsafe $0.pointee.sin6_addr
        return unsafe withUnsafeBytes(of: &bytes) { unsafe IPAddress(bytes: Array($0)) }
      }
    default: return nil
    }
  }
}
