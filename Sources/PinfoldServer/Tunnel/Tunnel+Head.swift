import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldWire

extension Tunnel {
  /// Time a client has for its CONNECT head: a program writes it at once.
  private static let headDuration = Duration.seconds(10)

  /// Reads the CONNECT head, and what came behind it; `nil` when the tunnel is over already.
  func readHead(_ account: inout TunnelAccount) async -> (ConnectRequest, early: [UInt8])? {
    let deadline = worker.loop.deadline(after: Self.headDuration)
    var reader = ConnectHeadReader()
    while true {
      let event: ConnectHeadReader.Event?
      do {
        event = try await client.receive(max: Inspection.readSize, deadline: deadline) {
          $0.isEmpty ? nil : reader.receive($0)
        }
      } catch {
        if error == .timedOut, reader.hasBegun {
          await refuse(.headTimedOut, &account)
        } else {
          account.isSilent = true
        }
        return nil
      }
      switch event {
      case nil:
        account.isSilent = true
        return nil
      case .incomplete: continue
      case .refused(let refusal):
        await refuse(.head(refusal), &account)
        return nil
      case .request(let request):
        return (request, Array(reader.surplus))
      }
    }
  }

  /// What can be said of a tunnel before anything is dialled.
  func admit(_ decision: Decision, _ rules: Rules) throws(TunnelFailure) {
    if worker.isDraining { throw .draining }
    if let peer = client.peerAddress, !rules.clients.allows(peer.address) { throw .clientDenied }
    if case .block(let reason) = decision.action { throw .policy(reason.allows ? .internalError : reason) }
    try admit(asking: decision, rules)
  }

  /// What can be said of a tunnel before a pin service is asked because of it.
  func admit(asking decision: Decision, _ rules: Rules) throws(TunnelFailure) {
    if worker.isDraining { throw .draining }
    if let peer = client.peerAddress, !rules.clients.allows(peer.address) { throw .clientDenied }
    guard decision.portAllowed else { throw .portDenied }
    guard worker.hasRoom(rules) else { throw .tunnelLimit(retryAfterSeconds: 1) }
  }
}
