/// An IP address with a port: where a connection goes or comes from.
package struct SocketAddress: Hashable, Sendable {
  /// The address, IPv4-mapped forms kept as they came.
  package var address: IPAddress
  /// The port in host byte order.
  package var port: UInt16

  /// Joins an address and a port.
  package init(_ address: IPAddress, port: UInt16) {
    self.address = address
    self.port = port
  }

  /// Reads `1.2.3.4:443` or `[::1]:443`.
  package init?(_ text: some StringProtocol) {
    guard let authority = Authority(text), case .address(let address) = authority.host else { return nil }
    self.init(address, port: authority.port)
  }

  /// `1.2.3.4:443` or `[::1]:443`.
  package var text: String { Authority(host: .address(address), port: port).text }
}
