internal import CLibevent
internal import CLinux
internal import Synchronization

/// One thread's event loop on a libevent base, and the executor of the tasks that live there.
///
/// `Task(executorPreference: loop)` (or `spawn`) runs a task's synchronous stretches on the loop's thread. What a task
/// enqueues from that thread costs no system call; from another thread it costs one eventfd write at most.
///
/// `@unchecked Sendable`: what other threads may touch is in `remote`, `wakePending`, `stopping` and `thread`, each a
/// mutex or an atomic; the rest is touched on the owning thread only, which every door checks. The owning thread is the
/// one that made the loop until `handOver` or `run`, then the one inside `run`.
@safe
package final class EventLoop: TaskExecutor, @unchecked Sendable {  // One thread's, see above.
  private enum Work {
    case job(UnownedJob)
    case closure(@Sendable () -> Void)
  }

  /// Bytes a socket can be read into without a buffer of its own: 64 KiB holds four full TLS records.
  static let scratchSize = 65_536

  /// Generations of jobs run between two looks at the events. Most end after two.
  private static let maximalRounds = 8

  /// The libevent base (event_base_new_with_config). Owned; never locked, since one thread uses it.
  let base: OpaquePointer
  /// Lent to whoever reads on this thread, for as long as no other code of the loop can run.
  let scratch: UnsafeMutableRawBufferPointer
  let wheel: TimerWheel
  let pipes = PipePool()

  private let wakeDescriptor: Int32
  private var wakeEvent: OpaquePointer?
  private var wheelEvent: OpaquePointer?
  private let thread: Atomic<UInt>
  private let stopping = Atomic<Bool>(false)
  private let wakePending = Atomic<Bool>(false)
  private let remote = Mutex<[Work]>([])
  private var local: [Work] = []
  private var running: [Work] = []
  private var ready: [any Resumable] = []
  /// Made when it is first asked for.
  var fineTimer: FineTimer?
  private var cachedNow: UInt64 = 0

  /// Makes a loop with its base and its wake-up descriptor.
  /// - Throws: `.descriptorsExhausted` or another system error when the kernel gives none.
  package init() throws(IOError) {
    _ = Self.threadsPrepared
    let configuration = unsafe event_config_new()
    defer { unsafe event_config_free(configuration) }
    unsafe event_config_set_flag(configuration, Int32(EVENT_BASE_FLAG_NOLOCK.rawValue))
    let descriptor = pinfold_eventfd()
    guard descriptor >= 0 else { throw IOError(descriptor) }
    guard let made = unsafe event_base_new_with_config(configuration) else {
      pinfold_close(Int32(descriptor))
      throw .descriptorsExhausted
    }
    unsafe base = made
    wakeDescriptor = Int32(descriptor)
    unsafe scratch = .allocate(byteCount: Self.scratchSize, alignment: 64)
    thread = Atomic(UInt(pinfold_thread()))
    wheel = TimerWheel(now: pinfold_monotonic_nanoseconds())
    wheel.arm = { [unowned self] in self.armWheel($0) }
    let context = unsafe Unmanaged.passUnretained(self).toOpaque()
    unsafe wakeEvent = event_new(base, wakeDescriptor, pinfold_ev_edge, loopWoken, context)
    unsafe wheelEvent = event_new(base, -1, 0, wheelTurned, context)
    unsafe event_add(wakeEvent, nil)
  }

  deinit {
    // Its event has to go before the base.
    fineTimer = nil
    unsafe event_free(wakeEvent)
    unsafe event_free(wheelEvent)
    unsafe event_base_free(base)
    pinfold_close(wakeDescriptor)
    unsafe scratch.deallocate()
  }

  /// libevent guards its few process-wide tables (signals) only if told that there are threads.
  private static let threadsPrepared: Void = {
    _ = evthread_use_pthreads()
    // What libevent would print to standard error we report ourselves, as errors of the calls.
    unsafe event_set_log_callback { _, _ in }
    pinfold_ignore_write_signals()
  }()

  /// Overwrites what was read last, its first `count` bytes, where it may have held a secret.
  package func eraseScratch(_ count: Int = scratchSize) {
    preconditionOnLoop()
    unsafe UnsafeMutableRawBufferPointer(rebasing: scratch[..<count]).initializeMemory(as: UInt8.self, repeating: 0)
  }

  // MARK: Running

  /// Runs events and jobs on the calling thread until `stop`. To be called once.
  package func run() {
    thread.store(UInt(pinfold_thread()), ordering: .relaxed)
    let once = Int32(EVLOOP_ONCE)
    let poll = Int32(EVLOOP_ONCE | EVLOOP_NONBLOCK)
    while !stopping.load(ordering: .relaxed) {
      runLocal()
      resumeReady()
      cachedNow = 0
      unsafe _ = event_base_loop(base, local.isEmpty && ready.isEmpty ? once : poll)
    }
    handOver()
  }

  /// Ends `run` after the current pass. From any thread. Work that is still queued is not done any more.
  package func stop() {
    stopping.store(true, ordering: .relaxed)
    pinfold_eventfd_signal(wakeDescriptor)
  }

  /// Gives the loop away: from here on nobody's thread owns it until `run` is entered.
  func handOver() {
    thread.store(0, ordering: .relaxed)
  }

  /// Whether the caller runs on the loop's thread.
  package var isOnLoop: Bool { thread.load(ordering: .relaxed) == UInt(pinfold_thread()) }

  /// Stops the program if the caller is on another thread: a bug of ours, not reachable by peers.
  @inline(__always)
  package func preconditionOnLoop() {
    precondition(isOnLoop, "used outside its event loop's thread")
  }

  // MARK: Work

  /// Takes a job of a task that prefers this executor; from any thread.
  package func enqueue(_ job: consuming ExecutorJob) {
    add(.job(UnownedJob(job)))
  }

  /// Runs a closure on the loop's thread in one of the next passes. From any thread; order is kept per thread.
  package func execute(_ body: @escaping @Sendable () -> Void) {
    add(.closure(body))
  }

  /// Starts a task whose synchronous stretches run on this loop.
  @discardableResult
  package func spawn(_ operation: sending @escaping () async -> Void) -> Task<Void, Never> {
    Task(executorPreference: self, operation: operation)
  }

  private func add(_ work: Work) {
    if isOnLoop {
      local.append(work)
      return
    }
    remote.withLock { $0.append(work) }
    if !wakePending.exchange(true, ordering: .acquiringAndReleasing) { pinfold_eventfd_signal(wakeDescriptor) }
  }

  /// The eventfd is edge-triggered: every write is an edge, so nobody has to read it.
  fileprivate func takeRemote() {
    wakePending.store(false, ordering: .sequentiallyConsistent)
    let taken = remote.withLock { queue in
      defer { queue = [] }
      return queue
    }
    local.append(contentsOf: taken)
  }

  /// Runs what is queued and what that enqueues, but not for ever: events are to have their turn.
  private func runLocal() {
    for _ in 0..<Self.maximalRounds where !local.isEmpty {
      swap(&local, &running)
      for work in running {
        switch work {
        case .job(let job): unsafe job.runSynchronously(on: asUnownedTaskExecutor())
        case .closure(let body): body()
        }
      }
      running.removeAll(keepingCapacity: true)
    }
  }

  /// Has `resume` called in the next pass, after other sockets had their turn.
  func resumeLater(_ work: any Resumable) {
    ready.append(work)
  }

  private func resumeReady() {
    guard !ready.isEmpty else { return }
    let taken = ready
    ready = []
    for work in taken { work.resume() }
  }

  // MARK: Time

  /// The monotonic clock, read once per pass.
  package var now: Deadline {
    if cachedNow == 0 { cachedNow = pinfold_monotonic_nanoseconds() }
    return Deadline(nanoseconds: cachedNow)
  }

  /// A deadline so much later than now.
  package func deadline(after duration: Duration) -> Deadline { now.advanced(by: duration) }

  private func armWheel(_ nanoseconds: UInt64) {
    let now = now.nanoseconds
    let delay = nanoseconds > now ? (nanoseconds - now) / 1000 + 1 : 1
    var interval = timeval(tv_sec: Int(delay / 1_000_000), tv_usec: Int(delay % 1_000_000))
    unsafe event_add(wheelEvent, &interval)
  }

  fileprivate func turnWheel() {
    cachedNow = 0
    wheel.advance(now: now.nanoseconds)
  }
}

/// Work that gave up its turn for fairness and wants to go on in the next pass.
protocol Resumable: AnyObject {
  func resume()
}

private func loopWoken(_: Int32, _: Int16, context: UnsafeMutableRawPointer?) {
  guard let context = unsafe context else { return }
  unsafe Unmanaged<EventLoop>.fromOpaque(context).takeUnretainedValue().takeRemote()
}

private func wheelTurned(_: Int32, _: Int16, context: UnsafeMutableRawPointer?) {
  guard let context = unsafe context else { return }
  unsafe Unmanaged<EventLoop>.fromOpaque(context).takeUnretainedValue().turnWheel()
}
