import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply
import Synchronization

/// Whose turn it is to be fetched. On the supply loop.
///
/// One client has no more fetches under way than it leaves free: hosts that nobody knows, each of which costs the whole
/// time of a service that is silent, keep nobody else from his pins.
extension PinSupply {
  /// What is to be done with an errand now.
  private enum Turn {
    /// It is fetched, on this client's account.
    case now(ClientIdentity?)
    /// It waits until others are done.
    case later
    /// Nobody wants it any more.
    case never
  }

  /// Ends an errand at once by what the cache has, or gives it its turn, now or later.
  func arrive(_ errand: Errand) {
    loop.preconditionOnLoop()
    do throws(CacheError) { try load(errand) } catch {
      fail(errand, PinFetchFailure(.cache(error.description), at: errand.service.label))
      return land(errand.host)
    }
    if errand.isForTunnel, isFresh(errand) { return land(errand.host) }
    queue.append(errand)
    giveTurn(queue.count - 1)
  }

  /// Gives a host that waits its turn, if somebody who has come to wait for it may have one.
  func reconsider(_ host: HostName) {
    loop.preconditionOnLoop()
    if let index = queue.firstIndex(where: { $0.host == host }) { giveTurn(index) }
  }

  /// How many refreshes may begin.
  var roomForRefreshes: Int { running.free - queue.count { !$0.isForTunnel } }

  /// Returns whether the errand left the queue.
  @discardableResult private func giveTurn(_ index: Int) -> Bool {
    switch turn(of: queue[index]) {
    case .now(let client): start(queue.remove(at: index), client)
    case .later: return false
    case .never: land(queue.remove(at: index).host)
    }
    return true
  }

  private func turn(of errand: Errand) -> Turn {
    if running.contains(errand.host) { return .later }
    guard errand.isForTunnel else { return running.admits(nil) ? .now(nil) : .later }
    let clients = state.withLock { state in Set((state.waiting[errand.host] ?? [:]).values.map(\.client)) }
    // Whoever asked first and waits behind his other hosts must not keep the next one from this host.
    if let client = clients.first(where: running.admits) { return .now(client) }
    return clients.isEmpty ? .never : .later
  }

  private func start(_ errand: Errand, _ client: ClientIdentity?) {
    running.take(errand.host, for: client)
    loop.spawn { [self] in
      await run(errand)
      running.giveBack(errand.host)
      var index = 0
      while index < queue.count, running.free > 0 {
        if !giveTurn(index) { index += 1 }
      }
    }
  }
}
