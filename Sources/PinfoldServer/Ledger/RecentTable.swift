/// A dictionary of bounded size that, when full, forgets what was not used for the longest time. Every call is O(1).
struct RecentTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private struct Node: Sendable {
    var key: Key
    var value: Value
    /// Places of the neighbours by last use; `nowhere` at the ends.
    var newer: Int
    var older: Int
  }

  private static var nowhere: Int { -1 }

  private let limit: Int
  private var nodes: [Node] = []
  private var places: [Key: Int] = [:]
  private var newest = Self.nowhere
  private var oldest = Self.nowhere
  /// Whether an entry ever had to go for another.
  private(set) var hasForgotten = false

  /// Holds at most `limit` entries, at least one.
  init(limit: Int) { self.limit = max(limit, 1) }

  var count: Int { nodes.count }

  /// The value, which is the most recently used one from now on.
  mutating func value(for key: Key) -> Value? {
    guard let place = places[key] else { return nil }
    touch(place)
    return nodes[place].value
  }

  /// Puts or replaces the value, which is the most recently used one from now on.
  mutating func set(_ value: Value, for key: Key) {
    if let place = places[key] {
      nodes[place].value = value
      touch(place)
      return
    }
    let place: Int
    if nodes.count < limit {
      place = nodes.count
      nodes.append(Node(key: key, value: value, newer: Self.nowhere, older: Self.nowhere))
    } else {
      place = oldest
      hasForgotten = true
      places[nodes[place].key] = nil
      unlink(place)
      nodes[place].key = key
      nodes[place].value = value
    }
    places[key] = place
    link(place)
  }

  mutating func removeAll() { self = RecentTable(limit: limit) }

  private mutating func touch(_ place: Int) {
    guard place != newest else { return }
    unlink(place)
    link(place)
  }

  private mutating func unlink(_ place: Int) {
    let (newer, older) = (nodes[place].newer, nodes[place].older)
    if newer == Self.nowhere { newest = older } else { nodes[newer].older = older }
    if older == Self.nowhere { oldest = newer } else { nodes[older].newer = newer }
  }

  private mutating func link(_ place: Int) {
    nodes[place].newer = Self.nowhere
    nodes[place].older = newest
    if newest == Self.nowhere { oldest = place } else { nodes[newest].newer = place }
    newest = place
  }
}
