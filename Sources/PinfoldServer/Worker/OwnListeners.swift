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
