import PinfoldLoop

/// Connections of one worker whose CONNECT head has not been read, in the order in which they came. A program writes its
/// head at once: when there are too many, those that have dawdled longest make room.
///
/// A machine without I/O. Every call is O(1), taken over all of them.
struct Newcomers<Client> {
  /// Nanoseconds within which nobody has dawdled.
  static var grace: UInt64 { 1_000_000_000 }

  private var waiting: [UInt64: (client: Client, since: Deadline)] = [:]
  /// The ticket of the next one to come.
  private var next: UInt64 = 0
  /// No ticket below this one is waiting.
  private var oldest: UInt64 = 0

  /// Takes one in; the answer is its ticket.
  mutating func enter(_ client: Client, now: Deadline) -> UInt64 {
    defer { next += 1 }
    waiting[next] = (client, now)
    return next
  }

  /// Lets go of the one with this ticket. Returns whether it was still waiting.
  mutating func leave(_ ticket: UInt64) -> Bool { waiting.removeValue(forKey: ticket) != nil }

  /// Takes out the one that has waited longest, if that is longer than the grace.
  mutating func removeDawdler(now: Deadline) -> Client? {
    while oldest < next {
      if let (client, since) = waiting[oldest] {
        guard now.nanoseconds >= since.nanoseconds &+ Self.grace else { return nil }
        waiting[oldest] = nil
        return client
      }
      oldest += 1
    }
    return nil
  }
}
