import PinfoldConfig
import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldTelemetry
import PinfoldWire

/// One CONNECT tunnel, from its first byte to its account. Read `serve` from top to bottom: it is the whole story.
///
/// Its steps are inlined into `run`, for the reason told at `StreamSocket.wait`.
struct Tunnel {
  let worker: Worker
  let client: StreamSocket
  /// What the connection counts as when it begins.
  let place: TunnelPlace

  /// Serves the tunnel. Never throws: whatever goes wrong ends in a refusal, a count and a line.
  ///
  /// Returns when relaying begins, so that a tunnel that lives long costs no task; its account is closed then by the
  /// relay's end.
  func run() async {
    var account = TunnelAccount(id: worker.requestIDs.make(), client: client.peerAddress, started: worker.loop.now)
    account.place = place
    let isRelaying = await serve(&account)
    if !isRelaying { worker.close(account, client) }
  }

  @inline(__always)
  private func serve(_ account: inout TunnelAccount) async -> Bool {
    guard let asked = await readHead(&account) else { return false }
    account.authority = asked.authority
    if case .newcomer = account.place { worker.move(&account, to: .none) }

    let user: String?
    let opening: Opening
    do throws(TunnelFailure) {
      // By the rules in force when it asks: a client may have connected long before.
      user = try await identify(asked, worker.rules.current, &account)
      account.user = user
      // From here on it takes one of the places that `limits.tunnels` bounds.
      worker.move(&account, to: .tunnel)
      opening = try await open(asked.authority, user, &account)
    } catch {
      await refuse(error, &account)
      return false
    }
    account.upstream = opening.upstream.peerAddress

    let admission: Inspection.Admission
    do throws(Refusal) {
      admission = try await inspect(opening, user, asked.early, &account)
    } catch {
      await refuse(error, &account)
      return false
    }
    account.verdict = admission.verdict
    account.judged = worker.loop.now
    worker.count(account)
    worker.audit.record(account)
    return await relay(admission, opening.rules, &account)
  }

  /// Everything between the 200 and an allow. The upstream is closed when this throws.
  @inline(__always)
  private func inspect(
    _ opening: Opening, _ user: String?, _ early: [UInt8], _ account: inout TunnelAccount
  ) async throws(Refusal) -> Inspection.Admission {
    let (rules, decision, upstream) = (opening.rules, opening.decision, opening.upstream)
    let deadline = worker.loop.deadline(after: .seconds(rules.configuration.limits.handshakeSeconds))
    do {
      try await client.send(ProxyReply.established, deadline: deadline)
    } catch {
      upstream.close()
      throw Refusal(client: error)
    }
    if decision.action == .tunnel {
      return Inspection.Admission(verdict: decision.judgeUnseen(), upstream: upstream, up: early)
    }
    guard let address = upstream.peerAddress else {
      upstream.close()
      throw Refusal(.internalError, "the upstream has no address")
    }
    var inspection = Inspection(
      worker: worker, rules: rules, user: user, decision: decision, client: client, address: address,
      upstream: upstream,
      deadline: deadline, surplus: early)
    defer {
      account.greeted = inspection.greeted
      account.probe = inspection.probe
      account.decision = inspection.decision
    }
    do throws(Refusal) {
      return try await inspection.run()
    } catch {
      account.alertVersion = inspection.alertVersion
      inspection.upstream.close()
      throw error
    }
  }

  /// Passes on what was held back, then everything else until both sides are done. False when it ended before that.
  @inline(__always)
  private func relay(_ admission: Inspection.Admission, _ rules: Rules, _ account: inout TunnelAccount) async -> Bool {
    let upstream = admission.upstream
    account.up = UInt64(admission.alreadyUp + admission.up.count)
    account.down = UInt64(admission.alreadyDown + admission.down.count)
    let idle = Duration.seconds(rules.configuration.limits.idleSeconds)
    do {
      let deadline = worker.loop.deadline(after: idle)
      if !admission.down.isEmpty { try await client.send(admission.down, deadline: deadline) }
      if !admission.up.isEmpty { try await upstream.send(admission.up, deadline: deadline, inTunnelOf: client) }
    } catch {
      upstream.close()
      return false
    }
    if let lesson = admission.lesson {
      let watchEnd = worker.loop.deadline(after: .seconds(rules.configuration.limits.handshakeSeconds))
      var watched = WatchedRelay(
        lesson, client: client, upstream: upstream, ledger: worker.ledger, deadline: watchEnd, idle: idle)
      let isWhole = await watched.run()
      account.up += watched.up
      account.down += watched.down
      guard isWhole else { return false }
    }
    Relay.start(client: client, upstream: upstream, idle: idle) { [worker, client, account] result in
      var account = account
      account.up += result.bytesUp
      account.down += result.bytesDown
      worker.close(account, client)
    }
    return true
  }
}
