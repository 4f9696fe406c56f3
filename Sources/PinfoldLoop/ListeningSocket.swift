internal import CLinux
internal import PinfoldModel

/// A bound and listening socket, not yet attached to a loop. Owns its descriptor, and the file of a UNIX socket, which
/// it removes when it goes, unless another file has the path by then.
package struct ListeningSocket: ~Copyable, Sendable {
  /// Connections the kernel may hold for us (listen(2)); the system bounds it by net.core.somaxconn.
  package static let backlog: Int32 = 4096

  let descriptor: Int32
  /// Where it really listens: the port the system chose, if 0 was asked for.
  package let endpoint: Endpoint
  /// The file of a UNIX socket.
  private let file: pinfold_file

  /// Binds and listens.
  ///
  /// TCP listeners share their port (SO_REUSEPORT), so that every worker has one of its own. The first of them is made
  /// with `sharing: false`: it makes sure that nobody else listens there, since sharing with another process would
  /// silently give it half of the tunnels. A UNIX socket's path that
  /// is taken is freed first if it is a socket at which nobody answers, and never if it is anything else.
  /// - Throws: `.addressInUse`, `.descriptorsExhausted`, and otherwise the system's error.
  package init(_ endpoint: Endpoint, backlog: Int32 = ListeningSocket.backlog, sharing: Bool = true) throws(IOError) {
    let opened: Int
    switch endpoint {
    case .tcp(let address): opened = pinfold_socket(address.raw.family)
    case .unix: opened = pinfold_socket(1)
    }
    guard opened >= 0 else { throw IOError(making: opened) }
    let descriptor = Int32(opened)
    do {
      if !sharing, case .tcp(let address) = endpoint { try Self.requireUnused(address) }
      self.endpoint = try Self.bind(descriptor, endpoint, backlog)
      if case .unix(let path) = endpoint {
        unsafe file = pinfold_look_at_file(path)
      } else {
        file = pinfold_file()
      }
    } catch {
      pinfold_close(descriptor)
      throw error
    }
    self.descriptor = descriptor
  }

  deinit {
    // Before the close: as long as somebody listens, no other process takes the path for its own.
    if case .unix(let path) = endpoint {
      let there = unsafe pinfold_look_at_file(path)
      if there.inode == file.inode, there.device == file.device { unsafe _ = pinfold_unlink(path) }
    }
    pinfold_close(descriptor)
  }

  private static func bind(_ descriptor: Int32, _ endpoint: Endpoint, _ backlog: Int32) throws(IOError) -> Endpoint {
    switch endpoint {
    case .tcp(let address):
      try check(pinfold_reuse(descriptor, 1))
      try check(pinfold_bind(descriptor, address.raw))
      try check(pinfold_listen(descriptor, backlog))
      return .tcp(SocketAddress(pinfold_local_address(descriptor)) ?? address)
    case .unix(let path):
      try removeStale(path)
      try check(unsafe pinfold_bind_unix(descriptor, path))
      try check(pinfold_listen(descriptor, backlog))
      return endpoint
    }
  }

  /// Binding without SO_REUSEPORT fails where anybody listens, with it or without.
  private static func requireUnused(_ address: SocketAddress) throws(IOError) {
    let probe = pinfold_socket(address.raw.family)
    guard probe >= 0 else { throw IOError(making: probe) }
    defer { pinfold_close(Int32(probe)) }
    try check(pinfold_reuse(Int32(probe), 0))
    try check(pinfold_bind(Int32(probe), address.raw))
  }

  private static func check(_ result: Int) throws(IOError) {
    if result < 0 { throw IOError(making: result) }
  }

  /// Somebody may still be starting up behind a socket file; only one that refuses connections is stale.
  private static func removeStale(_ path: String) throws(IOError) {
    guard unsafe pinfold_is_socket(path) == 1 else { return }
    let probe = pinfold_socket(1)
    guard probe >= 0 else { throw IOError(making: probe) }
    defer { pinfold_close(Int32(probe)) }
    if unsafe pinfold_connect_unix(Int32(probe), path) == -Int(ECONNREFUSED) {
      try check(unsafe pinfold_unlink(path))
    }
  }
}
