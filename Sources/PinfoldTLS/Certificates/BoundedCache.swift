/// A map that keeps what was used lately: two generations of at most `capacity` entries each. A hit in the old one
/// moves to the young one; when that is full it becomes the old one, and what nobody asked for since is gone.
///
/// Constant time per operation, without the links a true LRU list needs.
struct BoundedCache<Key: Hashable, Value> {
  private var young: [Key: Value] = [:]
  private var old: [Key: Value] = [:]
  let capacity: Int

  /// Holds at most twice `capacity` entries; `capacity` is at least one.
  init(capacity: Int) { self.capacity = max(1, capacity) }

  var count: Int { young.count + old.count }

  mutating func value(for key: Key) -> Value? {
    if let value = young[key] { return value }
    guard let value = old.removeValue(forKey: key) else { return nil }
    insert(value, for: key)
    return value
  }

  mutating func insert(_ value: Value, for key: Key) {
    if young.count >= capacity, young[key] == nil {
      old = young
      young = [:]
    }
    old[key] = nil
    young[key] = value
  }

  mutating func remove(_ key: Key) {
    young[key] = nil
    old[key] = nil
  }
}
