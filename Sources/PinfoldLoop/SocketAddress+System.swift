internal import CLinux
package import PinfoldModel

extension SocketAddress {
  /// From the shim's form; `nil` for UNIX and unnamed sockets.
  init?(_ raw: pinfold_address) {
    switch raw.family {
    case 4: self.init(.v4(raw.v4), port: raw.port)
    case 6: self.init(.v6(high: raw.high, low: raw.low), port: raw.port)
    default: return nil
    }
  }

  /// The shim's form.
  var raw: pinfold_address {
    switch address {
    case .v4(let value): pinfold_address(high: 0, low: 0, v4: value, port: port, family: 4)
    case .v6(let high, let low): pinfold_address(high: high, low: low, v4: 0, port: port, family: 6)
    }
  }
}

/// Where a listener listens or a stream connects to.
package enum Endpoint: Hashable, Sendable {
  /// An IP address and a port; port 0 lets the system choose when listening.
  case tcp(SocketAddress)
  /// A UNIX socket's path, 1–107 bytes.
  case unix(String)

  /// Reads `1.2.3.4:443`, `[::1]:443` or `unix:/path`; `nil` for anything else.
  package init?(_ text: String) {
    if text.hasPrefix("unix:") {
      let path = String(text.dropFirst(5))
      guard (1...107).contains(path.utf8.count), !path.utf8.contains(0) else { return nil }
      self = .unix(path)
    } else {
      guard let address = SocketAddress(text) else { return nil }
      self = .tcp(address)
    }
  }

  /// As `init` reads it.
  package var text: String {
    switch self {
    case .tcp(let address): address.text
    case .unix(let path): "unix:\(path)"
    }
  }
}
