package import PinfoldConfig
import PinfoldLoop
import PinfoldModel
package import PinfoldPolicy
package import PinfoldSupply
package import PinfoldTLS

/// Everything that is in force at one moment: configuration, policy, trusted authorities. Immutable; a reload makes
/// another one and swaps it whole, so that no tunnel ever sees half of a change.
package final class Rules: Sendable {
  /// The configuration as read.
  package let configuration: Configuration
  /// The policy the tunnels are decided by.
  package let policy: PolicySnapshot
  /// Judges chains by the authorities in force.
  package let verifier: ChainVerifier
  /// What chains are verified by.
  let trust: TrustMark
  /// The pin services of the configuration.
  package let pinServices: PinServices
  let destinations: DestinationGuard
  let clients: ClientList
  /// Who may use the proxy, by name and password; `nil` where nobody is asked.
  let credentials: CredentialList?
  /// Tunnels at a time over all workers.
  let tunnelLimit: Int
  /// Connections at a time, over all workers, whose head has not been read and that may dawdle over it.
  let newcomerLimit: Int

  /// A time that has passed for certain: a clock that was set back revives nothing that expired.
  let clockFloor: ClockFloor

  /// Rules that trust `authorities` for chains, which have this mark.
  init(
    configuration: Configuration, policy: PolicySnapshot, trusting authorities: TrustStore, mark: TrustMark,
    pinServices: PinServices = .none, clockFloor: ClockFloor = ClockFloor(), credentials: CredentialList? = nil
  ) {
    self.credentials = credentials
    self.clockFloor = clockFloor
    self.pinServices = pinServices
    self.configuration = configuration
    self.policy = policy
    trust = mark
    verifier = ChainVerifier(trusting: authorities)
    destinations = configuration.destinationGuard
    clients = configuration.clientList
    (tunnelLimit, newcomerLimit) = Self.limits(configuration)
  }

  /// The same rules under another policy. What chains were judged before is not forgotten.
  init(_ rules: Rules, policy: PolicySnapshot) {
    self.policy = policy
    clockFloor = rules.clockFloor
    configuration = rules.configuration
    verifier = rules.verifier
    trust = rules.trust
    pinServices = rules.pinServices
    credentials = rules.credentials
    destinations = rules.destinations
    clients = rules.clients
    tunnelLimit = rules.tunnelLimit
    newcomerLimit = rules.newcomerLimit
  }

  /// The time by which everything is judged: the clock's, or the one that has passed for certain if that is later.
  var now: Timestamp { max(.now, clockFloor.time) }

  /// What the policy says of this authority now, for this user of the proxy.
  func decide(_ authority: Authority, user: String? = nil) -> Decision {
    policy.decide(authority, at: now, user: user)
  }

  /// Whether a client at this address is served; one of a UNIX socket has none and is.
  func serves(_ client: SocketAddress?) -> Bool { client.map { clients.allows($0.address) } ?? true }

  /// `limits.tunnels`, or what the limit of open descriptors allows when each tunnel takes two, a connection whose head
  /// has not been read takes one, and some are kept for everything else.
  private static func limits(_ configuration: Configuration) -> (tunnels: Int, newcomers: Int) {
    let limit = Descriptors.limit
    let descriptors = limit - min(reservedDescriptors, limit / 4)
    let newcomers = min(max(descriptors / 8, 16), 4096)
    let configured = configuration.limits.tunnels
    return (configured == 0 ? max(1, (descriptors - newcomers) / 2) : configured, newcomers)
  }

  /// Descriptors for listeners, loops, the admin port, files, the probes of tunnels that are opening, and clients that
  /// are not served; a quarter of all where there are few.
  private static let reservedDescriptors = 128 + Worker.strangerLimit
}
