import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply

/// A worker's look-ups of names, shared out over its clients: one of them, asking for names that nobody answers for, has
/// no more than it leaves free.
///
/// Bound to its resolver's loop, and used on its thread.
final class FairResolver {
  private let resolver: Resolver
  private var places: FairPlaces<UInt64>
  private var ticket: UInt64 = 0

  init(_ resolver: Resolver, limit: Int = Resolver.maximalCount) {
    self.resolver = resolver
    places = FairPlaces(limit: limit)
  }

  /// The addresses of a host on this client's account, as `Resolver.resolve`; `.overloaded` where it has its share.
  @inline(__always)
  func resolve(
    _ host: HostName, for client: ClientIdentity, deadline: Deadline, watching socket: StreamSocket? = nil
  ) async throws(ResolveError) -> [IPAddress] {
    if case .address(let address) = host { return [address] }
    guard places.admits(client) else { throw .overloaded }
    ticket += 1
    let place = ticket
    places.take(place, for: client)
    defer { places.giveBack(place) }
    return try await resolver.resolve(host, deadline: deadline, watching: socket)
  }
}
