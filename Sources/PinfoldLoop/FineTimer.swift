internal import CLibevent
internal import CLinux

/// A loop's timer for pauses that are shorter than a tick of its wheel, good to some tens of microseconds (timerfd(2)).
///
/// Belongs to its loop and is touched on its thread only.
@safe
final class FineTimer {
  @safe private struct Pause {
    let due: UInt64
    let continuation: UnsafeContinuation<Void, Never>
  }

  private let descriptor: Int32
  private var event: OpaquePointer?
  /// Few at a time: each lasts a moment.
  private var pauses: [Pause] = []

  /// `nil` when the kernel gives no descriptor.
  init?(base: OpaquePointer) {
    let made = pinfold_timerfd()
    guard made >= 0 else { return nil }
    descriptor = Int32(made)
    let context = unsafe Unmanaged.passUnretained(self).toOpaque()
    unsafe event = event_new(base, descriptor, pinfold_ev_edge, fineTimerFired, context)
    unsafe event_add(event, nil)
  }

  deinit {
    unsafe event_free(event)
    pinfold_close(descriptor)
  }

  /// Suspends until that moment of the monotonic clock.
  func pause(until due: UInt64) async {
    unsafe await withUnsafeContinuation { continuation in
      pauses.append(unsafe Pause(due: due, continuation: continuation))
      arm()
    }
  }

  private func arm() {
    // Past moments fire at once; 0 would stop the timer.
    let next = pauses.map(\.due).min()
    pinfold_timerfd_set(descriptor, next.map { max($0, 1) } ?? 0)
  }

  /// Edge-triggered like the loop's wake-up, so that nobody has to read the descriptor.
  fileprivate func fire() {
    let now = pinfold_monotonic_nanoseconds()
    let over = pauses.filter { $0.due <= now }.sorted { $0.due < $1.due }
    pauses.removeAll { $0.due <= now }
    arm()
    for pause in over { unsafe pause.continuation.resume() }
  }
}

extension EventLoop {
  /// Suspends the task for a few milliseconds or less, exactly where `sleep` takes ticks; on this loop's thread. Costs
  /// two system calls. Where no descriptor is left it is a sleep.
  package func pause(for duration: Duration) async {
    preconditionOnLoop()
    if fineTimer == nil { unsafe fineTimer = FineTimer(base: base) }
    guard let fineTimer else { return await sleep(for: duration) }
    // Not the loop's clock, which stands still while one of its tasks computes.
    let now = Deadline(nanoseconds: pinfold_monotonic_nanoseconds())
    await fineTimer.pause(until: now.advanced(by: duration).nanoseconds)
  }
}

private func fineTimerFired(_: Int32, _: Int16, context: UnsafeMutableRawPointer?) {
  guard let context = unsafe context else { return }
  unsafe Unmanaged<FineTimer>.fromOpaque(context).takeUnretainedValue().fire()
}
