/// A dictionary of bounded size that forgets what was not used for long.
///
/// Two generations: what is used moves to the young one; when that has reached half of the limit it becomes the old
/// one, and the one that was old is gone. So the most recently used half of the limit always stays, every call is O(1),
/// and an entry costs no more than in a dictionary.
struct FadingTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private let half: Int
  private var young: [Key: Value] = [:]
  private var old: [Key: Value] = [:]

  /// Holds at most `limit` entries, at least two.
  init(limit: Int) { half = max(1, limit / 2) }

  var count: Int { young.count + old.count }

  /// Changes the value of the key, which is used now; `fresh` stands in where there is none.
  mutating func update<Result>(
    _ key: Key, fresh: @autoclosure () -> Value, _ body: (inout Value) -> Result
  ) -> Result {
    if let place = young.index(forKey: key) { return body(&young.values[place]) }
    var value = old.removeValue(forKey: key) ?? fresh()
    if young.count >= half {
      old = young
      young = [:]
    }
    let result = body(&value)
    young[key] = value
    return result
  }

  /// The value, without using it.
  func value(for key: Key) -> Value? { young[key] ?? old[key] }

  mutating func remove(_ key: Key) {
    young[key] = nil
    old[key] = nil
  }

  /// Drops the entries that are so.
  mutating func removeAll(where isSo: (Key) -> Bool) {
    young = young.filter { !isSo($0.key) }
    old = old.filter { !isSo($0.key) }
  }

  mutating func removeAll() {
    young = [:]
    old = [:]
  }

  /// All entries, in no order.
  var entries: some Sequence<(key: Key, value: Value)> {
    [young, old].lazy.joined().map { (key: $0.key, value: $0.value) }
  }
}
