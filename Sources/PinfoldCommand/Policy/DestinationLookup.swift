import PinfoldConfig
import PinfoldModel
import PinfoldPolicy

/// What port and address make of a decision, for `explain`. Asked last: a rule, a builtin pin or a paired device may
/// open both.
struct DestinationLookup {
  private let configuration: Configuration

  init(_ configuration: Configuration) { self.configuration = configuration }

  /// Blocks what `run` refuses before or instead of dialling, and says why. No resolver is asked: of a name without a
  /// fixed address only the port is known.
  func amend(_ decision: inout Decision, _ steps: inout [String]) {
    guard decision.portAllowed else {
      steps.append("port \(decision.authority.port) is not in destinations.ports and no rule opens it: refused")
      return
    }
    if case .block = decision.action { return }
    guard let place = place(of: decision.authority) else { return }
    let verdict = configuration.destinationGuard.verdict(
      place.address, port: place.port, pinned: decision.isPinned, ownListeners: ownListeners)
    guard case .denied(let why) = verdict else { return }
    decision.action = .block(.destinationDenied)
    decision.state = .blocked
    steps.append("\(why): refused")
  }

  /// Where the authority is dialled, as far as it is known without a resolver.
  private func place(of authority: Authority) -> SocketAddress? {
    if let fixed = configuration.destinations.resolve[authority] { return fixed }
    guard case .address(let address) = authority.host else { return nil }
    return SocketAddress(address, port: authority.port)
  }

  private var ownListeners: [SocketAddress] {
    configuration.listen.compactMap { if case .socket(let address) = $0 { address } else { nil } }
      + [configuration.admin]
  }
}
