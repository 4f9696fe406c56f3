import Foundation
import Testing

extension Handshakes {
  /// When the two hellos of a pair leave says nothing of which one is the app's.
  ///
  /// Guards: the two draws and the pause of Inspection+Hello, for both hellos of a retried handshake. Before they were
  /// there an app's second hello always went first. Bounds are five standard deviations, or a probability of one in a
  /// million.
  @Suite struct TimingTests {
    private func watch(_ capture: Capture, tunnels: Int, retries: Bool) throws -> [PairWatcher.Pair] {
      let retry = retries ? Array(capture.server[..<(capture.facts.helloRetry?.end ?? 0)]) : nil
      let watcher = try PairWatcher(app: capture, retry: retry)
      let pinfold = try Pinfold(.pinned(Certificates.shared().ecdsa.pin, port: watcher.port))
      let firstEnd = capture.facts.clientHello?.end ?? 0
      for _ in 0..<tunnels {
        let client = try RawClient(to: pinfold.port)
        _ = try client.connect("\(Capture.host):443")
        client.send(Array(capture.client[..<firstEnd]))
        if let retry {
          _ = try client.receive(atLeast: retry.count)
          client.send(Array(capture.client[firstEnd..<capture.helloEnd]))
        }
        _ = client.drain()
      }
      return watcher.pairs
    }

    /// The largest distance between two samples' distribution functions (Kolmogorov and Smirnov).
    private func distance(_ one: [Double], _ other: [Double]) -> Double {
      let one = one.sorted()
      let other = other.sorted()
      var largest = 0.0
      for value in one + other {
        let share = Double(one.count { $0 <= value }) / Double(one.count)
        let otherShare = Double(other.count { $0 <= value }) / Double(other.count)
        largest = max(largest, abs(share - otherShare))
      }
      return largest
    }

    @Test(
      "Order and distance of a pair's hellos do not depend on which is the app's",
      arguments: [("tls13-curl-nginx", 400, false), ("tls13-curl-nginx-hrr", 200, true)])
    func drawn(name: String, tunnels: Int, retries: Bool) throws {
      let pairs = try watch(Capture.named(name), tunnels: tunnels, retries: retries)
      // A pair may be torn apart by this machine's load; most are not.
      #expect(pairs.count > tunnels * 9 / 10, "\(pairs.count) pairs")
      let half = Double(pairs.count) / 2
      let bound = 2.5 * Double(pairs.count).squareRoot()
      let appFirst = pairs.filter(\.isAppFirst)
      let twinFirst = pairs.filter { !$0.isAppFirst }
      #expect(abs(Double(appFirst.count) - half) < bound, "\(appFirst.count) of \(pairs.count) apps first")
      let dialledFirst = pairs.count { $0.isAppDialledFirst }
      #expect(abs(Double(dialledFirst) - half) < bound, "\(dialledFirst) of \(pairs.count) apps dialled first")
      let both = pairs.count { $0.isAppDialledFirst == $0.isAppFirst }
      #expect(abs(Double(both) - half) < bound, "\(both) of \(pairs.count) first in both or in neither")
      let gaps = (appFirst.map(\.gap), twinFirst.map(\.gap))
      // The quantile of 1e-6 for samples of these sizes.
      let sizes = (Double(gaps.0.count), Double(gaps.1.count))
      let critical = 2.7 * ((sizes.0 + sizes.1) / (sizes.0 * sizes.1)).squareRoot()
      #expect(distance(gaps.0, gaps.1) < critical, "\(distance(gaps.0, gaps.1)) of \(critical)")
      let all = pairs.map(\.gap).sorted()
      let tenths = [1, 5, 9].map { Int(all[all.count * $0 / 10]) }
      print("[\(name)] app first \(appFirst.count), distance \(distance(gaps.0, gaps.1)), µs at tenths \(tenths)")
      #expect(tenths[2] - tenths[0] > 300, "no pause to speak of: \(tenths)")
    }
  }
}
