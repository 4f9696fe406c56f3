/// Calls a closure on the loop's thread, once or again and again. Made and cancelled there.
package final class LoopTimer: TimerEntry {
  private let loop: EventLoop
  private let interval: Duration?
  private var body: (() -> Void)?

  /// - Parameters:
  ///   - delay: time to the first call.
  ///   - interval: time from the end of each call to the next; `nil` for a single call.
  package init(loop: EventLoop, after delay: Duration, every interval: Duration? = nil, _ body: @escaping () -> Void) {
    loop.preconditionOnLoop()
    self.loop = loop
    self.interval = interval
    self.body = body
    super.init(wheel: loop.wheel)
    schedule(due: loop.deadline(after: delay).nanoseconds)
  }

  /// No call comes after this one. Letting the timer go has the same effect.
  package func cancel() {
    body = nil
    due = .max
  }

  override func timerFired() {
    body?()
    if let interval, body != nil { schedule(due: loop.deadline(after: interval).nanoseconds) }
  }
}

extension EventLoop {
  /// Suspends the task until the deadline; on this loop's thread.
  package func sleep(until deadline: Deadline) async {
    preconditionOnLoop()
    let sleeper = Sleeper(wheel: wheel)
    unsafe await withUnsafeContinuation { continuation in
      unsafe sleeper.continuation = continuation
      sleeper.schedule(due: deadline.nanoseconds)
    }
  }

  /// Suspends the task for a time; on this loop's thread.
  package func sleep(for duration: Duration) async { await sleep(until: deadline(after: duration)) }
}

@safe
private final class Sleeper: TimerEntry {
  var continuation: UnsafeContinuation<Void, Never>?

  override func timerFired() {
    unsafe continuation?.resume()
  }
}
