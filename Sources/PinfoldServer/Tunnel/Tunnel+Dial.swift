import PinfoldConfig
import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldWire

extension Tunnel {
  /// What a tunnel is opened with: the rules in force, what they say of it, and where it leads.
  struct Opening {
    let rules: Rules
    let decision: Decision
    let upstream: StreamSocket
  }

  /// How often a tunnel is opened at most while the rules change and change again.
  private static let openingLimit = 3

  /// Decides and dials, by rules that are in force at the end of it too.
  @inline(__always)
  func open(
    _ authority: Authority, _ user: String?, _ account: inout TunnelAccount
  ) async throws(TunnelFailure) -> Opening {
    for _ in 0..<Self.openingLimit {
      let rules = worker.rules.current
      let decision = try await decide(authority, user, rules, &account)
      let upstream = try await dial(decision, rules, for: account.identity)
      if rules === worker.rules.current {
        return Opening(rules: rules, decision: decision, upstream: upstream)
      }
      upstream.close()
    }
    throw .tunnelLimit(retryAfterSeconds: 1)
  }

  /// Resolves and dials the upstream. Every resolved address passes the destination guard before it is dialled, so that
  /// no answer of a resolver leads where the host itself may not; one that turns out to be this machine's own passes it
  /// again. The connection tells, and not a list of interfaces: addresses come and go, and a sandbox may hide them.
  @inline(__always)
  func dial(
    _ decision: Decision, _ rules: Rules, for identity: ClientIdentity
  ) async throws(TunnelFailure) -> StreamSocket {
    let deadline = worker.loop.deadline(after: .seconds(rules.configuration.limits.connectSeconds))
    let fixed = rules.configuration.destinations.resolve[decision.authority]
    let addresses: [IPAddress]
    if let fixed {
      addresses = [fixed.address]
    } else {
      addresses = try await resolve(decision.authority, for: identity, deadline)
    }
    let port = fixed?.port ?? decision.authority.port
    let upstream: StreamSocket
    do {
      upstream = try await Dialer.connect(
        to: addresses, port: port, loop: worker.loop, deadline: deadline, watching: client,
        permits: { isAllowed($0, port, decision, rules) })
    } catch {
      switch error {
      case .prohibited: throw .policy(.destinationDenied)
      case .failed(.timedOut): throw .connectTimeout
      case .failed(.refused): throw .connectionRefused
      case .failed(.descriptorsExhausted): throw .tunnelLimit(retryAfterSeconds: 1)
      case .failed(.cancelled): throw .draining
      case .failed: throw .unreachable
      }
    }
    if let own = upstream.ownPeer, !isAllowed(own, port, decision, rules, isOwnAddress: true) {
      upstream.close()
      throw .policy(.destinationDenied)
    }
    return upstream
  }

  @inline(__always)
  private func resolve(
    _ authority: Authority, for identity: ClientIdentity, _ deadline: Deadline
  ) async throws(TunnelFailure) -> [IPAddress] {
    do {
      return try await worker.resolver.resolve(authority.host, for: identity, deadline: deadline, watching: client)
    } catch {
      switch error {
      case .timedOut: throw .dnsTimeout
      case .overloaded: throw .tunnelLimit(retryAfterSeconds: 1)
      case .notFound, .failed: throw .dnsError
      // As where it leaves while its upstream is dialled.
      case .departed: throw client.isCancelled ? .draining : .unreachable
      }
    }
  }

  private func isAllowed(
    _ address: IPAddress, _ port: UInt16, _ decision: Decision, _ rules: Rules, isOwnAddress: Bool = false
  ) -> Bool {
    rules.destinations.verdict(
      address, port: port, pinned: decision.isPinned, ownListeners: worker.services.ownListeners.all,
      isOwnAddress: isOwnAddress
    ).isAllowed
  }
}
