package import PinfoldLoop
package import PinfoldModel
import Synchronization

extension BundleFetcher {
  /// One URL with what came of it.
  package typealias Fetched = (url: HTTPURL, answer: Result<Answer, HTTPFetchError>)

  /// Fetches each URL once, one after the other, each for at most `seconds`. Blocks the calling thread: for commands.
  ///
  /// Throws when no event loop can be had.
  package static func fetchOnce(
    _ urls: [HTTPURL], security: any TLSSessionSource, limit: Int, seconds: Int
  ) throws(IOError) -> [Fetched] {
    let loop = try EventLoop()
    let basket = Basket()
    loop.spawn {
      for url in urls { basket.add((url, await fetch(url, on: loop, security, limit, seconds))) }
      loop.stop()
    }
    loop.run()
    return basket.all
  }

  /// Has a resolver and a client of its own, which end before the loop does.
  private static func fetch(
    _ url: HTTPURL, on loop: EventLoop, _ security: any TLSSessionSource, _ limit: Int, _ seconds: Int
  ) async -> Result<Answer, HTTPFetchError> {
    do throws(IOError) {
      let client = HTTPClient(loop: loop, resolver: try Resolver(loop: loop))
      let fetcher = BundleFetcher(client: client, security: security, limit: limit)
      do throws(HTTPFetchError) {
        return .success(try await fetcher.fetch(url, etag: nil, deadline: loop.deadline(after: .seconds(seconds))))
      } catch {
        return .failure(error)
      }
    } catch {
      return .failure(.connect(error))
    }
  }
}

/// Carries what the loop's task found to the thread that waits for it.
private final class Basket: Sendable {
  private let list = Mutex<[BundleFetcher.Fetched]>([])

  func add(_ fetched: BundleFetcher.Fetched) { list.withLock { $0.append(fetched) } }
  var all: [BundleFetcher.Fetched] { list.withLock { $0 } }
}
