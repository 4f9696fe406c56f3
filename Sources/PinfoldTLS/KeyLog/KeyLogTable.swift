package import PinfoldModel

/// Secrets that were logged and not asked for yet, by client random. Bounded in number and in time; what leaves it is
/// zeroed unless somebody else holds it.
///
/// Not Sendable: for one thread, or under the caller's lock.
package struct KeyLogTable {
  /// Different secrets kept for one random. An honest application writes one; a forged line in front of it must not be
  /// able to hide it.
  package static let candidateLimit = 4

  private struct Entry {
    var secrets: [SecretBytes]
    let until: Timestamp
  }

  private let capacity: Int
  private let lifetime: Int64
  private var entries: [[UInt8]: Entry] = [:]
  /// Randoms in the order they came, the oldest first; some may be gone from `entries`.
  private var order: [[UInt8]] = []

  /// - Parameters:
  ///   - capacity: handshakes under way at most; the oldest makes room.
  ///   - lifetime: seconds a secret is kept, the handshake's deadline.
  package init(capacity: Int = 4096, lifetime: Int64 = 30) {
    self.capacity = max(1, capacity)
    self.lifetime = lifetime
  }

  /// Handshakes a secret waits for.
  package var count: Int { entries.count }

  /// Keeps a line. One that was seen before, and a fifth for one random, is dropped.
  package mutating func insert(_ line: KeyLogLine, now: Timestamp) {
    expire(now: now)
    if var entry = entries[line.clientRandom] {
      guard entry.secrets.count < Self.candidateLimit, !entry.secrets.contains(where: { $0.matches(line.secret) })
      else {
        return
      }
      entry.secrets.append(line.secret)
      entries[line.clientRandom] = entry
      return
    }
    while entries.count >= capacity { dropOldest() }
    entries[line.clientRandom] = Entry(secrets: [line.secret], until: Timestamp(seconds: now.seconds + lifetime))
    order.append(line.clientRandom)
  }

  /// What was logged for this random, in order; the handshake that asks owns it from here on.
  package mutating func take(_ clientRandom: [UInt8], now: Timestamp) -> [SecretBytes] {
    expire(now: now)
    return entries.removeValue(forKey: clientRandom)?.secrets ?? []
  }

  /// Drops what is too old.
  package mutating func expire(now: Timestamp) {
    while let oldest = order.first {
      if let entry = entries[oldest], entry.until > now { break }
      dropOldest()
    }
    // Taken entries leave their place in the order behind; it is swept once they are many.
    if order.count > 2 * capacity { order.removeAll { entries[$0] == nil } }
  }

  private mutating func dropOldest() {
    guard !order.isEmpty else { return }
    entries[order.removeFirst()] = nil
  }
}
