internal import CLibevent
internal import CLinux

/// The signals a service answers.
package enum Signal: CaseIterable, Sendable {
  /// Ask for a reload.
  case hangUp
  /// Ask for a drain and an end.
  case terminate
  /// Ctrl-C.
  case interrupt

  fileprivate var number: Int32 {
    switch self {
    case .hangUp: pinfold_sighup
    case .terminate: pinfold_sigterm
    case .interrupt: pinfold_sigint
    }
  }
}

extension Signal {
  /// Runs `body` with all signals waiting until a listener that `body` makes on this thread hears them: one that comes
  /// between start and listener would end the process on the spot, its files left behind. See sigprocmask(2).
  package static func holding<Value, Failure>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value {
    for signal in allCases { pinfold_block_signal(signal.number) }
    defer { for signal in allCases { pinfold_unblock_signal(signal.number) } }
    return try body()
  }
}

/// Hears the process's signals on a loop. libevent lets one loop of a process do so at a time.
///
/// SIGPIPE is ignored from the first loop on; sends report a broken pipe as an error.
@safe
package final class SignalListener {
  fileprivate let signal: Signal
  fileprivate let handler: (Signal) -> Void
  private var registration: OpaquePointer?

  /// Calls `handler` on the loop's thread for each delivery, until the listener is let go (on the same thread).
  /// - Throws: `.descriptorsExhausted` when libevent cannot set up.
  package init(_ signal: Signal, loop: EventLoop, handler: @escaping (Signal) -> Void) throws(IOError) {
    loop.preconditionOnLoop()
    self.signal = signal
    self.handler = handler
    let context = unsafe Unmanaged.passUnretained(self).toOpaque()
    let event = unsafe event_new(loop.base, signal.number, pinfold_ev_signal, signalled, context)
    guard let event = unsafe event, unsafe event_add(event, nil) == 0 else {
      unsafe event.map { unsafe event_free($0) }
      throw .descriptorsExhausted
    }
    unsafe registration = event
    // A blocked signal mask is inherited over exec; some supervisors leave one behind.
    pinfold_unblock_signal(signal.number)
  }

  deinit {
    unsafe registration.map { unsafe event_free($0) }
  }
}

private func signalled(_: Int32, _: Int16, context: UnsafeMutableRawPointer?) {
  guard let context = unsafe context else { return }
  let listener = unsafe Unmanaged<SignalListener>.fromOpaque(context).takeUnretainedValue()
  listener.handler(listener.signal)
}
