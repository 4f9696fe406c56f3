internal import CLinux

/// A thread that runs one loop.
package final class LoopThread: Sendable {
  /// The loop it runs.
  package let loop: EventLoop
  private let thread: UInt

  /// Starts a thread that runs the loop until `stop`.
  ///
  /// - Parameter name: shown by tools; the kernel keeps 15 bytes of it.
  /// - Throws: a system error when no thread can be had.
  package init(name: String, loop: EventLoop) throws(IOError) {
    self.loop = loop
    loop.handOver()
    var started: UInt = 0
    let context = unsafe Unmanaged.passRetained(loop)
    let result = unsafe pinfold_thread_start(
      String(decoding: name.utf8.prefix(15), as: UTF8.self), runLoop, context.toOpaque(), &started)
    guard result == 0 else {
      unsafe context.release()
      throw IOError(result)
    }
    thread = started
  }

  /// Ends the loop and waits for its thread. To be called once, from another thread.
  package func stop() {
    loop.stop()
    pinfold_thread_join(thread)
  }

  /// Runs `body` on the loop, behind all that was queued before, ends the loop, and waits for its thread. To be called
  /// once, in place of `stop`, where nothing that was queued may be lost.
  package func stop(after body: @escaping @Sendable () -> Void) {
    last(body)
    pinfold_thread_join(thread)
  }

  /// Runs `body` on the loop, behind all that was queued before, ends the loop, and waits for its thread, but not beyond
  /// `patience`. To be called once, in place of `stop`, where the loop may sit in a call that never comes back.
  ///
  /// Returns whether the thread has ended. One that has not ends with the process.
  @discardableResult package func stop(
    after body: @escaping @Sendable () -> Void, patience: Duration
  ) -> Bool {
    let limit = Deadline.now.advanced(by: patience)
    last(body)
    return pinfold_thread_join_until(thread, limit.nanoseconds) == 1
  }

  private func last(_ body: @escaping @Sendable () -> Void) {
    loop.execute { [loop] in
      body()
      loop.stop()
    }
  }
}

private func runLoop(context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  guard let context = unsafe context else { return nil }
  unsafe Unmanaged<EventLoop>.fromOpaque(context).takeRetainedValue().run()
  return nil
}
