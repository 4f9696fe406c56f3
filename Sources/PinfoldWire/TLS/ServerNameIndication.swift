package import PinfoldModel

/// What a ClientHello says about the host it wants (RFC 6066 §3).
package enum ServerNameIndication: Equatable, Sendable {
  /// There is no server_name extension.
  case missing
  /// One host name, in normal form. An IP literal, which RFC 6066 forbids, arrives here too: it can only equal itself.
  case host(HostName)
  /// Bytes that are no host name. They equal no host, themselves included.
  case unreadable

  /// Whether the name is this host. A missing name is not.
  package func names(_ host: HostName) -> Bool { self == .host(host) }
}
