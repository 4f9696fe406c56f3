import PinfoldLoop
import PinfoldModel
import PinfoldSupply

/// Asks the servers of bundles again and again, each on its own clock, and hands on what they say.
///
/// `@unchecked Sendable`, as is a poll: touched on the reload loop's thread only, which every door checks.
final class BundlePoller: @unchecked Sendable {
  /// Decides about what was fetched; on the reload loop's thread.
  protocol Judge: AnyObject, Sendable {
    /// What the last body of a URL was called.
    func etag(of url: HTTPURL) -> String?
    /// Takes what a server said, or why it said nothing.
    func take(_ result: Result<BundleFetcher.Answer, HTTPFetchError>, from url: HTTPURL)
  }

  /// One URL's turn, and the next one. `@unchecked Sendable`: as above.
  private final class Poll: @unchecked Sendable {
    let url: HTTPURL
    var failures = 0
    var task: Task<Void, Never>?
    var timer: LoopTimer?

    init(_ url: HTTPURL) { self.url = url }

    func stop() {
      task?.cancel()
      timer?.cancel()
    }
  }

  private let loop: EventLoop
  private var plan: RefreshPlan?
  private var client: HTTPClient?
  private var polls: [Poll] = []

  init(loop: EventLoop) { self.loop = loop }

  /// Goes by this plan from now on: every URL is asked at once.
  func follow(_ plan: RefreshPlan?, _ judge: any Judge) {
    loop.preconditionOnLoop()
    for poll in polls { poll.stop() }
    self.plan = plan
    // Hosts file and name servers may have changed as well.
    client = nil
    polls = plan?.urls.map { Poll($0) } ?? []
    for poll in polls { begin(poll, judge) }
  }

  private func begin(_ poll: Poll, _ judge: any Judge) {
    poll.timer = nil
    poll.task = loop.spawn { [self, unowned judge] in
      let result = await fetch(poll.url, etag: judge.etag(of: poll.url))
      guard !Task.isCancelled, polls.contains(where: { $0 === poll }), let plan else { return }
      poll.task = nil
      if case .failure = result { poll.failures += 1 } else { poll.failures = 0 }
      judge.take(result, from: poll.url)
      poll.timer = LoopTimer(loop: loop, after: plan.pause(afterFailures: poll.failures)) {
        [unowned self, unowned judge] in
        begin(poll, judge)
      }
    }
  }

  private func fetch(_ url: HTTPURL, etag: String?) async -> Result<BundleFetcher.Answer, HTTPFetchError> {
    guard let plan else { return .failure(.cancelled) }
    do throws(HTTPFetchError) {
      let fetcher = BundleFetcher(client: try sharedClient(), security: plan.security, limit: plan.limit)
      let deadline = loop.deadline(after: .seconds(BundleFetcher.seconds))
      return .success(try await fetcher.fetch(url, etag: etag, deadline: deadline))
    } catch {
      return .failure(error)
    }
  }

  private func sharedClient() throws(HTTPFetchError) -> HTTPClient {
    if let client { return client }
    do throws(IOError) {
      let made = HTTPClient(loop: loop, resolver: try Resolver(loop: loop))
      client = made
      return made
    } catch {
      throw .connect(error)
    }
  }
}
