import PinfoldLoop
import PinfoldModel

/// The control loop and what lives on it: the admin port and the clock of a drain.
///
/// `@unchecked Sendable`: its variables are touched on the loop's thread only, or before that thread runs.
final class ControlRoom: @unchecked Sendable {
  /// How often a drain looks whether it is over.
  private static let drainStep = Duration.milliseconds(50)
  /// How often is looked whether the policy expired.
  private static let policyStep = Duration.seconds(2)
  /// How often suspensions that are over are said to be so. They are over without that.
  private static let breakerStep = Duration.seconds(1)
  /// Time for cancelled tunnels to write their lines.
  private static let lastWords = Duration.seconds(2)

  let loop: EventLoop
  private var site: HTTPServer?
  private var drainTimer: LoopTimer?
  private var policyTimer: LoopTimer?
  private var policyWatch = PolicyWatch()
  private var passedTime = PassedTime()
  private var breakerTimer: LoopTimer?

  init(loop: EventLoop) { self.loop = loop }

  /// Opens the admin port.
  func serve(_ pages: AdminSite, on address: SocketAddress) throws(StartError) -> Endpoint {
    do throws(IOError) {
      let socket = try ListeningSocket(.tcp(address), sharing: false)
      let endpoint = socket.endpoint
      site = try HTTPServer(socket, loop: loop, posts: [AdminSite.rearmPath]) { pages.answer($0, $1) }
      return endpoint
    } catch {
      throw .cannotListen(address: address.text, error)
    }
  }

  /// Says it when the policy in force expires. `remember` is told what time has passed for certain: that end at once,
  /// every other time when the clock has shown it for a while.
  func watchPolicy(_ services: Services, remember: @escaping @Sendable (Timestamp) -> Void) {
    policyTimer = LoopTimer(loop: loop, after: .zero, every: Self.policyStep) { [unowned self] in
      let now = Timestamp.now
      if let end = policyWatch.look(services, at: now) { remember(end) }
      if let time = passedTime.look(at: now, loop.now) { remember(time) }
    }
  }

  /// Ends suspensions in time.
  func watch(_ breaker: BreakerWatch) {
    breakerTimer = LoopTimer(loop: loop, after: Self.breakerStep, every: Self.breakerStep) { breaker.expire() }
  }

  /// Waits until no tunnel is open, at most `limit`; then calls `cancel`, and `over` at the end in any case.
  func watchDrain(
    of tunnels: TunnelCount, limit: Duration, cancel: @escaping @Sendable () -> Void,
    over: @escaping @Sendable () -> Void
  ) {
    loop.preconditionOnLoop()
    let end = loop.deadline(after: limit)
    var isCancelled = false
    drainTimer = LoopTimer(loop: loop, after: .zero, every: Self.drainStep) { [unowned self] in
      let now = loop.now
      if tunnels.connections.now == 0 || now >= end.advanced(by: Self.lastWords) {
        drainTimer?.cancel()
        drainTimer = nil
        // Whoever asks from here on is refused by the system, and does not wait for an answer.
        site = nil
        over()
      } else if now >= end, !isCancelled {
        isCancelled = true
        cancel()
      }
    }
  }
}
