import PinfoldCrypto
import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldWire

extension Tunnel {
  /// Time a client has for its CONNECT head: a program writes it at once.
  private static let headDuration = Duration.seconds(10)

  /// What a client asked for.
  struct Asked {
    let authority: Authority
    /// `nil` when there are none, or none that can be read.
    let credentials: BasicCredentials?
    /// What came behind the head.
    let early: [UInt8]
  }

  /// Reads the CONNECT head, and what came behind it; `nil` when the tunnel is over already.
  @inline(__always)
  func readHead(_ account: inout TunnelAccount) async -> Asked? {
    let deadline = worker.loop.deadline(after: Self.headDuration)
    var reader = ConnectHeadReader(erasingBy: erase)
    while true {
      let event: ConnectHeadReader.Event?
      do {
        event = try await client.receive(max: Inspection.readSize, deadline: deadline) {
          $0.isEmpty ? nil : reader.receive($0)
        }
      } catch {
        let hasBegun = reader.hasBegun
        forget(&reader)
        if error == .timedOut, hasBegun {
          await refuse(.headTimedOut, &account)
        } else {
          account.isSilent = true
        }
        return nil
      }
      switch event {
      case nil:
        forget(&reader)
        account.isSilent = true
        return nil
      case .incomplete: continue
      case .refused(let refusal):
        forget(&reader)
        await refuse(.head(refusal), &account)
        return nil
      case .request(let request):
        return asked(request, &reader)
      }
    }
  }

  /// Takes the credentials out of the head and leaves none behind.
  private func asked(_ request: ConnectRequest, _ reader: inout ConnectHeadReader) -> Asked {
    let early = Array(reader.surplus)
    guard let place = request.proxyAuthorization else {
      return Asked(authority: request.authority, credentials: nil, early: early)
    }
    let credentials = BasicCredentials(reader.bytes(in: place))
    forget(&reader)
    return Asked(authority: request.authority, credentials: credentials, early: early)
  }

  /// Leaves nothing behind of a head in which credentials may stand.
  private func forget(_ reader: inout ConnectHeadReader) {
    reader.erase()
    worker.loop.eraseScratch()
  }

  /// Whether this client is served at all: by its address, then by its credentials. Returns the user's name, `nil` where
  /// nobody is asked for one. Before this is known, nothing is said about any host.
  @inline(__always)
  func identify(
    _ asked: Asked, _ rules: Rules, _ account: inout TunnelAccount
  ) async throws(TunnelFailure) -> String? {
    defer { asked.credentials?.erase(erase) }
    if worker.isDraining { throw .draining }
    guard rules.serves(client.peerAddress) else { throw .clientDenied }
    guard let list = rules.credentials else { return nil }
    do throws(TunnelFailure) {
      return try await worker.services.gatekeeper.admit(
        asked.credentials, from: client.peerAddress?.address, list, for: client, on: worker.loop)
    } catch {
      if error == .credentialsNeeded, asked.credentials != nil, client.hasHungUp {
        account.obstacle = "the client went away before its password was answered"
      }
      throw error
    }
  }

  /// What can be said of a tunnel before anything is dialled.
  func admit(_ decision: Decision, _ rules: Rules) throws(TunnelFailure) {
    if case .block(let reason) = decision.action { throw .policy(reason.allows ? .internalError : reason) }
    try admit(asking: decision, rules)
  }

  /// What can be said of a tunnel before a pin service is asked because of it.
  func admit(asking decision: Decision, _ rules: Rules) throws(TunnelFailure) {
    if worker.isDraining { throw .draining }
    guard decision.portAllowed else { throw .portDenied }
    guard worker.hasRoom(rules) else { throw .tunnelLimit(retryAfterSeconds: 1) }
  }
}
