import Glibc

/// The addresses of the machine that the tests run on.
enum OwnAddress {
  /// An IPv4 address that is not loopback's, as text; `nil` where there is none.
  static let outside: String? = {
    var list: UnsafeMutablePointer<ifaddrs>?
    guard unsafe getifaddrs(&list) == 0 else { return nil }
    defer { unsafe freeifaddrs(list) }
    var next = unsafe list
    while let entry = unsafe next?.pointee {
      defer { unsafe next = entry.ifa_next }
      guard let address = unsafe entry.ifa_addr, unsafe Int32(address.pointee.sa_family) == AF_INET else { continue }
      let number = unsafe address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
        unsafe UInt32(bigEndian: $0.pointee.sin_addr.s_addr)
      }
      if number >> 24 != 127 { return [24, 16, 8, 0].map { "\(number >> $0 & 255)" }.joined(separator: ".") }
    }
    return nil
  }()
}
