import Foundation
import Synchronization

/// An attacker who only looks: an upstream that notes when the hellos of each pair of connections come, and ends the pair
/// when it has seen what it wanted. Which hello is the app's it is told by its random; to find that out from times alone
/// is what the test tries. Tunnels have to come one after another.
final class PairWatcher: Sendable {
  /// What one tunnel's two connections showed.
  struct Pair: Sendable {
    let isAppFirst: Bool
    let isAppDialledFirst: Bool
    /// Microseconds between the two hellos.
    let gap: Double
  }

  private struct Arrival {
    let isApps: Bool
    let isDialledFirst: Bool
    let time: ContinuousClock.Instant
  }

  private struct Book {
    var arrivals: [[Arrival]] = []
  }

  private final class Shared: Sendable {
    let book = Mutex(Book())
  }

  private let listener: Listener
  private let shared: Shared
  var port: UInt16 { listener.port }

  /// - Parameter retry: a HelloRetryRequest record to answer the first hellos with; the second ones are watched then.
  init(app: Capture, retry: [UInt8]? = nil) throws {
    let shared = Shared()
    self.shared = shared
    listener = try Listener(numbered: { socket, place in
      let number = place - 1
      shared.book.withLock { book in
        while book.arrivals.count <= number / 2 { book.arrivals.append([]) }
      }
      var bytes: [UInt8] = []
      func readMore() -> Bool {
        guard case .bytes(let more) = socket.receive() else { return false }
        bytes += more
        return true
      }
      var time = ContinuousClock.now
      while TLSRecords.firstLength(bytes).map({ bytes.count < $0 }) ?? true {
        guard readMore() else { return socket.shutDown() }
        time = .now
      }
      if let retry {
        // The session id stands at the same place in both (RFC 8446 §4.1.2, §4.1.3).
        socket.send(Array(retry[..<44] + bytes[44..<76] + retry[76...]))
        guard readMore() else { return socket.shutDown() }
        time = .now
      }
      let isApps = bytes[11..<43] == app.client[11..<43]
      let arrival = Arrival(isApps: isApps, isDialledFirst: number.isMultiple(of: 2), time: time)
      shared.book.withLock { $0.arrivals[number / 2].append(arrival) }
      _ = try? Wait.untilTrue("the other hello", seconds: 3) {
        shared.book.withLock { $0.arrivals[number / 2].count == 2 }
      }
      socket.shutDown()
    })
  }

  /// The pairs seen so far of which both hellos came.
  var pairs: [Pair] {
    shared.book.withLock(\.arrivals).compactMap { both in
      guard both.count == 2, let app = both.first(where: \.isApps), let other = both.first(where: { !$0.isApps }) else {
        return nil
      }
      let gap = app.time - other.time
      let microseconds = Double(gap.components.seconds) * 1e6 + Double(gap.components.attoseconds) / 1e12
      return Pair(
        isAppFirst: microseconds < 0, isAppDialledFirst: app.isDialledFirst, gap: abs(microseconds))
    }
  }
}
