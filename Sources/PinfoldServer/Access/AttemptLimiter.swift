import PinfoldLoop
import PinfoldModel

/// Bounds how often a client address may try credentials that are not known to be right: ten at once, then one in six
/// seconds. One client's attempts cost no other client any of its own.
///
/// A machine without I/O: an attempt is taken ahead and given back when it was right. Kept for each address is the moment
/// at which all that it took will be forgotten (the generic cell rate algorithm), for ten thousand addresses at most.
struct AttemptLimiter: Sendable {
  /// Attempts at once.
  static let burst: UInt64 = 10
  /// Nanoseconds after which one more may be made.
  static let step: UInt64 = 6_000_000_000
  private static let addressLimit = 10_000

  private var moments = RecentTable<IPAddress?, UInt64>(limit: addressLimit)

  /// Takes an attempt at `now`. Returns how many seconds later it could be made, or `nil` when it may be made now.
  mutating func take(_ client: IPAddress?, now: Deadline) -> Int? {
    let key = Self.network(of: client)
    let start = max(moments.value(for: key) ?? 0, now.nanoseconds)
    let latest = now.nanoseconds &+ Self.step * (Self.burst - 1)
    guard start <= latest else { return Int(clamping: (start - latest) / 1_000_000_000) + 1 }
    moments.set(start &+ Self.step, for: key)
    return nil
  }

  /// Gives an attempt back.
  mutating func giveBack(_ client: IPAddress?) {
    let key = Self.network(of: client)
    guard let moment = moments.value(for: key) else { return }
    moments.set(moment < Self.step ? 0 : moment - Self.step, for: key)
  }

  /// Whoever has one IPv6 address has 2⁶⁴: they count as one. Clients of a UNIX socket have no address and share one
  /// account.
  static func network(of client: IPAddress?) -> IPAddress? {
    guard case .v6(let high, _) = client?.unmapped else { return client?.unmapped }
    return .v6(high: high, low: 0)
  }
}
