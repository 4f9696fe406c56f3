import PinfoldLoop
import PinfoldModel
import PinfoldWire

extension Tunnel {
  /// Time a refused client has to read its answer.
  private static let lingerDuration = Duration.seconds(1)
  /// Bytes of a refused client that are read away, so that unread ones do not turn the answer into a reset.
  private static let lingerBytes = 65_536

  /// What the line of `clientDenied` says.
  static let notListed = "the address is not in access.clients"

  /// Before the 200: an HTTP answer.
  func refuse(_ failure: TunnelFailure, _ account: inout TunnelAccount) async {
    let reply = ProxyReply(failure)
    let detail =
      switch failure {
      case .credentialsNeeded: "no credentials, or wrong ones"
      case .clientLimit: "too many wrong credentials"
      case .clientDenied: Self.notListed
      default: failure.reason.rawValue == reply.details ? "" : reply.details
      }
    account.verdict = Verdict(failure.reason, detail: account.obstacle ?? detail)
    worker.count(refusedBeforeTunnel: failure.reason)
    freePlace(&account)
    await worker.audit.commit(account, on: worker.loop)
    await say(reply.bytes)
  }

  /// Behind the 200: a fatal alert in the clear, the upstream's own where it sent one.
  func refuse(_ refusal: Refusal, _ account: inout TunnelAccount) async {
    account.verdict = refusal.verdict
    account.judged = worker.loop.now
    worker.count(account)
    freePlace(&account)
    await worker.audit.commit(account, on: worker.loop)
    let alert = TLSAlert.fatal(TLSAlert.accessDenied, version: account.alertVersion)
    await say(refusal.alert.isEmpty ? alert : refusal.alert)
  }

  /// Whoever is slow to read a refusal keeps nobody out.
  private func freePlace(_ account: inout TunnelAccount) {
    switch account.place {
    case .tunnel, .newcomer: worker.move(&account, to: .none)
    case .stranger, .none: break
    }
  }

  /// Sends the last words, and reads on until the client has them or its time is up: bytes that lie unread at a close
  /// would turn it into a reset, and the answer might be lost.
  private func say(_ bytes: [UInt8]) async {
    let deadline = worker.loop.deadline(after: Self.lingerDuration)
    do {
      try await client.send(bytes, deadline: deadline)
      client.shutdownWrite()
      var left = Self.lingerBytes
      while left > 0 {
        let count = try await client.discard(max: left, deadline: deadline)
        if count == 0 { break }
        left -= count
      }
    } catch {
      // Whoever does not listen to a refusal is refused all the same.
    }
    client.close()
  }
}
