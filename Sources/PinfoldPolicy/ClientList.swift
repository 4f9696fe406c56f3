package import PinfoldModel

/// `access.clients`: who may use the proxy, by address.
package struct ClientList: Sendable {
  private let blocks: [AddressBlock]

  /// Admits the addresses of these blocks, and no other.
  package init(_ blocks: [AddressBlock]) { self.blocks = blocks }

  /// Whether the address may use the proxy. Clients of a Unix socket have no address: the socket's permissions
  /// decide, and nobody asks here.
  package func allows(_ client: IPAddress) -> Bool { blocks.contains { $0.contains(client) } }
}
