package import PinfoldPolicy

/// A number of places, each taken under a key on a client's account. One client has no more of them than it leaves free:
/// alone half of them, and whoever has none finds one until many clients have shared them out.
package struct FairPlaces<Key: Hashable & Sendable>: Sendable {
  private let limit: Int
  private var clients: [Key: ClientIdentity?] = [:]
  private var counts: [ClientIdentity: Int] = [:]

  /// `limit`: how many there are.
  package init(limit: Int) { self.limit = limit }

  /// How many nobody has.
  package var free: Int { max(0, limit - clients.count) }

  /// Whether somebody has the place of this key.
  package func contains(_ key: Key) -> Bool { clients.keys.contains(key) }

  /// Whether this client may take one more. `nil` is Pinfold itself, which may as long as there is any.
  package func admits(_ client: ClientIdentity?) -> Bool {
    guard let client else { return free > 0 }
    return counts[client, default: 0] < free
  }

  /// Takes a place, for which `admits` was asked; a key has one place at a time.
  package mutating func take(_ key: Key, for client: ClientIdentity?) {
    giveBack(key)
    clients.updateValue(client, forKey: key)
    if let client { counts[client, default: 0] += 1 }
  }

  /// Gives a key's place back; one that is not taken is free already.
  package mutating func giveBack(_ key: Key) {
    guard let client = clients.removeValue(forKey: key) ?? nil, let count = counts[client] else { return }
    counts[client] = count > 1 ? count - 1 : nil
  }
}
