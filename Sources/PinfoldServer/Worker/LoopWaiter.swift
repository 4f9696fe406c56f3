import PinfoldLoop

/// One task's wait for a value that another thread will have.
///
/// `@unchecked Sendable`: touched on its loop's thread only; others hand the value over to it.
@safe final class LoopWaiter<Value: Sendable>: @unchecked Sendable {
  private let loop: EventLoop
  private var value: Value?
  private var continuation: UnsafeContinuation<Void, Never>?

  init(loop: EventLoop) { self.loop = loop }

  /// Waits for the value, at most until `deadline`; `nil` when it did not come in time, or when the client for whom it
  /// is waited left before, or its tunnel is being ended. To be called once, on the loop.
  func wait(until deadline: Deadline, for client: StreamSocket? = nil) async -> Value? {
    loop.preconditionOnLoop()
    guard value == nil else { return value }
    if let client, !client.watchDeparture({ [self] in resume() }) { return nil }
    defer { client?.endWatch() }
    let timer = LoopTimer(loop: loop, after: deadline.duration(since: loop.now)) { [self] in resume() }
    defer { timer.cancel() }
    unsafe await withUnsafeContinuation { continuation in unsafe self.continuation = continuation }
    return value
  }

  /// Ends the wait, from any thread; before it as well.
  func wake(_ value: Value) {
    loop.execute { [self] in
      self.value = value
      resume()
    }
  }

  private func resume() {
    loop.preconditionOnLoop()
    unsafe continuation?.resume()
    unsafe continuation = nil
  }
}
