package import PinfoldModel

/// What counts as a device of the local network: hosts that no public authority vouches for, and that are not reached
/// over the internet.
package enum LocalNetwork {
  /// Whether the host is one by its name: a private, link-local or loopback address (RFC 1918, RFC 3927, RFC 4193,
  /// RFC 4291), a name below `.local` (RFC 6762) or `.home.arpa` (RFC 8375), or a single label.
  package static func contains(_ host: HostName) -> Bool {
    switch host {
    case .address(let address): contains(address)
    case .name(let name): !name.contains(".") || name.hasSuffix(".local") || name.hasSuffix(".home.arpa")
    }
  }

  /// Whether the address is one.
  package static func contains(_ address: IPAddress) -> Bool {
    switch AddressClass(address) {
    case .privateUse, .linkLocal, .loopback: true
    default: false
    }
  }
}
