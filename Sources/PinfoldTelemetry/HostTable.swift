import Synchronization

/// The hosts that have a `host` label of their own: the first `limit` ones, for the life of the process, so that
/// neither clients nor policies can make the metrics grow without bound.
final class HostTable: Sendable {
  /// The names once there is no room for another: read without a lock.
  private final class Full: Sendable {
    let names: Set<String>
    init(_ names: Set<String>) { self.names = names }
  }

  private let limit: Int
  private let names = Mutex<Set<String>>([])
  private let full = AtomicLazyReference<Full>()

  init(limit: Int) { self.limit = limit }

  /// Whether `name` has its own label, given to it now if there is room.
  func admits(_ name: String) -> Bool {
    if let full = full.load() { return full.names.contains(name) }
    return names.withLock { names in
      if names.contains(name) { return true }
      guard names.count < limit else { return false }
      names.insert(name)
      if names.count == limit { _ = full.storeIfNil(Full(names)) }
      return true
    }
  }

  /// All labelled hosts in order.
  var sorted: [String] { names.withLock { $0 }.sorted() }
}
