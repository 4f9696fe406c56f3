internal import CLinux
package import PinfoldModel

extension StreamSocket {
  /// Connects to one address (connect(2) without waiting, then an edge and SO_ERROR).
  ///
  /// - Parameter other: a socket whose peer going away ends the wait.
  /// - Throws: `.refused`, `.timedOut`, `.unreachable`, `.descriptorsExhausted`, `.hungUp`, `.cancelled` or another
  ///   system error. The socket is closed then.
  package static func connect(
    to endpoint: Endpoint, loop: EventLoop, deadline: Deadline, watching other: StreamSocket? = nil
  ) async throws(IOError) -> StreamSocket {
    let socket = try start(endpoint, loop: loop)
    do {
      try await socket.finishConnecting(deadline, watching: other)
      return socket
    } catch {
      socket.close()
      throw error
    }
  }

  /// Begins to connect; `mayWrite` is false as long as the outcome is open.
  static func start(_ endpoint: Endpoint, loop: EventLoop) throws(IOError) -> StreamSocket {
    loop.preconditionOnLoop()
    let opened: Int
    let result: Int
    let peer: SocketAddress?
    switch endpoint {
    case .tcp(let address):
      opened = pinfold_socket(address.raw.family)
      guard opened >= 0 else { throw IOError(opened) }
      result = pinfold_connect(Int32(opened), address.raw)
      peer = address
    case .unix(let path):
      opened = pinfold_socket(1)
      guard opened >= 0 else { throw IOError(opened) }
      result = unsafe pinfold_connect_unix(Int32(opened), path)
      peer = nil
    }
    let socket = StreamSocket(taking: Int32(opened), peerAddress: peer, loop: loop)
    guard result == 0 || result == -Int(EINPROGRESS) else {
      socket.close()
      throw IOError(result)
    }
    socket.mayWrite = result == 0
    return socket
  }

  /// Waits for the outcome of `start`.
  func finishConnecting(_ deadline: Deadline, watching other: StreamSocket?) async throws(IOError) {
    while !mayWrite { try await wait(for: .write, deadline, watching: other) }
    if let error = connectError { throw error }
  }

  /// How connecting failed, `nil` if it succeeded. To be asked once, when there is an outcome (SO_ERROR, socket(7)).
  var connectError: IOError? {
    let error = pinfold_socket_error(descriptor)
    return error == 0 ? nil : IOError(-Int(error))
  }

  /// The peer's address where it is one of this machine's own, `nil` where the connection leads elsewhere: what dials
  /// an address of its own comes from the same one (RFC 6724 §5 rule 1; for IPv4 Linux's local routes name it), unless
  /// that is a loopback address.
  package var ownPeer: IPAddress? {
    guard let peer = peerAddress?.address, localAddress?.address.unmapped == peer.unmapped else { return nil }
    return peer
  }
}
