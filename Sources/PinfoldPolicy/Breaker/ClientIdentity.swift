package import PinfoldModel

/// Who uses the proxy, as far as one client is kept from deciding for another: the user it proved to be, else the
/// address it came from.
package enum ClientIdentity: Hashable, Sendable {
  /// A user of `access.credentials_file`.
  case user(String)
  /// The address of a client that nobody asked for credentials; IPv4-mapped ones as IPv4.
  case address(IPAddress)
  /// All clients of a Unix socket together: they have no address.
  case local

  /// The user, else the address, else `local`.
  package init(user: String?, address: IPAddress?) {
    if let user {
      self = .user(user)
    } else if let address {
      self = .address(address.unmapped)
    } else {
      self = .local
    }
  }
}
