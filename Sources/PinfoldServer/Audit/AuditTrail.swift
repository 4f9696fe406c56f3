import PinfoldConfig
import PinfoldCrypto
import PinfoldLoop
import PinfoldModel
package import PinfoldTelemetry
import Synchronization

/// The audit: records wait in a bounded queue for a thread of its own, which writes and flushes many at a time.
///
/// No worker ever waits for the disk by blocking. A refusal waits, as a task, until its record is on disk, at most for a
/// second: whatever the disk does, the tunnel goes on being refused.
package final class AuditTrail: Sendable {
  /// Bytes of records that may wait: some ten thousand.
  static let capacity = 4 << 20
  /// Bytes that tunnels which passed may take of that, so that a flood of them crowds out no refusal.
  static let ordinaryCapacity = 2 << 20
  /// How long a refusal waits for the disk.
  static let patience = Duration.seconds(1)
  /// How often a disk that failed is tried again.
  static let retryStep = Duration.seconds(1)
  /// How often is looked for files that became too old.
  private static let purgeStep = Duration.seconds(60)

  private struct State {
    var settings: AuditSettings?
    var waiting: [AuditEntry] = []
    var waitingBytes = 0
    var waiters: [LoopWaiter<Bool>] = []
    var isScheduled = false
    var figures = AuditFigures()
    /// Whether records were turned away since the last one that was written.
    var isOverflowing = false
    /// Changes of the file that are under way.
    var switches = 0

    /// Everything that waits, taken out of the queue.
    mutating func take() -> Batch {
      defer {
        waiting = []
        waitingBytes = 0
        waiters = []
        isScheduled = false
      }
      return Batch(entries: waiting, waiters: waiters, settings: settings)
    }
  }

  /// Records to be written together, who waits for that, and under which settings they were made.
  private struct Batch {
    let entries: [AuditEntry]
    let waiters: [LoopWaiter<Bool>]
    let settings: AuditSettings?
  }

  private let state = Mutex(State())
  private let isOn = Atomic<Bool>(false)
  private let log: Logger
  private let clock: @Sendable () -> LogTime
  private let moment: @Sendable () -> Deadline
  private let thread: LoopThread
  private let desk: AuditDesk

  /// Starts the thread. `settings` is `nil` where no audit is wanted; `clock` tells the time of records, and
  /// `moment` how long it has been shown.
  init(
    _ settings: AuditSettings?, log: Logger, disk: AuditDisk = AuditDisk(),
    clock: @escaping @Sendable () -> LogTime = { .now }, moment: @escaping @Sendable () -> Deadline = { .now }
  ) throws(IOError) {
    self.log = log
    self.clock = clock
    self.moment = moment
    let loop = try EventLoop()
    desk = AuditDesk(loop: loop, disk: disk)
    state.withLock { $0.settings = settings }
    isOn.store(settings != nil, ordering: .relaxed)
    desk.use(settings?.file)
    thread = try LoopThread(name: "audit", loop: loop)
    desk.loop.execute { [self] in
      purge()
      desk.every(Self.purgeStep) { [unowned self] in purge() }
    }
  }

  // MARK: Recording

  /// Whether records are wanted. Ask before one is put together.
  var isRecording: Bool { isOn.load(ordering: .relaxed) }

  /// Hands a record over, from any thread, and waits for nothing.
  package func record(_ record: AuditRecord) {
    guard isRecording else { return }
    _ = enqueue(record, nil)
  }

  /// Hands a record over and waits, on this loop, until it is on disk: `false` when it is not, or not yet after
  /// `AuditTrail.patience`. While the disk fails nobody waits for it.
  @discardableResult func commit(_ record: AuditRecord, on loop: EventLoop) async -> Bool {
    guard isRecording else { return false }
    let waiter = LoopWaiter<Bool>(loop: loop)
    guard enqueue(record, waiter) else { return false }
    return await waiter.wait(until: loop.deadline(after: Self.patience)) ?? false
  }

  /// Whether the waiter will be woken.
  private func enqueue(_ record: AuditRecord, _ waiter: LoopWaiter<Bool>?) -> Bool {
    let time = clock()
    let entry = AuditEntry(day: AuditDay.day(of: time), bytes: record.render(at: time), isDurable: record.isDurable)
    let limit = record.isDurable ? Self.capacity : Self.ordinaryCapacity
    let (waits, schedules, overflows) = state.withLock { state in
      guard state.waitingBytes + entry.bytes.count <= limit else {
        state.figures.lost += 1
        defer { state.isOverflowing = true }
        return (false, false, !state.isOverflowing)
      }
      state.waiting.append(entry)
      state.waitingBytes += entry.bytes.count
      let waits = waiter != nil && state.figures.error == nil
      if waits, let waiter { state.waiters.append(waiter) }
      defer { state.isScheduled = true }
      return (waits, !state.isScheduled, false)
    }
    if schedules { desk.loop.execute { [self] in flush() } }
    if overflows { log.write(.warning, "audit records are lost: too many are waiting") }
    return waits
  }

  /// What went through so far, for `/status`; `nil` when there is no audit.
  var figures: AuditFigures? {
    state.withLock { $0.settings == nil ? nil : $0.figures }
  }

  /// How the client of a record is called: a pseudonym that is the same as long as the installation's key is, or its
  /// address where the configuration asks for that. `unix` for clients without an address, `hidden` where there is no
  /// key for a pseudonym.
  func name(of client: SocketAddress?) -> String {
    guard let client else { return "unix" }
    return name(of: client.address.text)
  }

  /// The same for a client whose address is known as text.
  func name(of text: String) -> String {
    switch state.withLock({ $0.settings?.clients }) {
    case .address: return text
    case .pseudonym(let hash): return hash.pseudonym(text)
    case .hidden, nil: return "hidden"
    }
  }

  /// The pseudonym that records have for this text; `nil` where they have none.
  func pseudonym(of text: String) -> String? {
    guard case .pseudonym(let hash) = state.withLock({ $0.settings?.clients }) else { return nil }
    return hash.pseudonym(text)
  }

  // MARK: The audit's own thread

  /// Writes what is waiting and tells those who wait for it.
  private func flush() {
    // While another file is about to be taken into use, what waits belongs to that one.
    if let batch = state.withLock({ $0.switches == 0 ? $0.take() : nil }) { write(batch) }
  }

  private func write(_ batch: Batch, retries: Bool = true) {
    guard !batch.entries.isEmpty else { return }
    let outcome = desk.write(batch.entries)
    for waiter in batch.waiters { waiter.wake(outcome.error == nil) }
    note(outcome, of: batch)
    if retries, outcome.error != nil { desk.after(Self.retryStep) { [unowned self] in flush() } }
  }

  private func note(_ outcome: AuditWriter.Outcome, of batch: Batch) {
    let rest = batch.entries[outcome.written...]
    let (before, agrees) = state.withLock { state in
      let before = state.figures
      // What other settings are in force for has another file, or names its clients in another way.
      let agrees = batch.settings?.agree(with: state.settings) == true
      state.figures.written += UInt64(outcome.written)
      state.figures.error = agrees ? outcome.error : nil
      if outcome.error == nil {
        state.isOverflowing = false
      } else if agrees {
        keep(rest, &state)
      } else {
        state.figures.lost += UInt64(rest.count)
      }
      return (before, agrees)
    }
    guard agrees else {
      if let error = outcome.error, !rest.isEmpty {
        let count = LogEvent.Field("count", .integer(Int64(rest.count)))
        log.write(.error, "audit records are lost: other settings count", [.init("error", .text(error)), count])
      }
      return
    }
    if let error = outcome.error {
      guard before.error == nil else { return }
      log.write(.error, "audit records cannot be written: tunnels go on", [.init("error", .text(error))])
    } else if before.error != nil {
      log.write(.warning, "audit records are written again", [.init("lost", .unsigned(before.lost))])
    }
  }

  /// Puts back in front what could not be written, as far as there is room: the disk may recover.
  private func keep(_ entries: ArraySlice<AuditEntry>, _ state: inout State) {
    var room = Self.capacity - state.waitingBytes
    let kept = entries.prefix { entry in
      room -= entry.bytes.count
      return room >= 0
    }
    state.waiting.insert(contentsOf: kept, at: 0)
    state.waitingBytes += kept.reduce(0) { $0 + $1.bytes.count }
    state.figures.lost += UInt64(entries.count - kept.count)
    // The retry flushes; records that come meanwhile need no other.
    state.isScheduled = true
  }

  private func purge() {
    // The file of settings that are about to be used is not the one that lies open.
    guard let settings = state.withLock({ $0.switches == 0 ? $0.settings : nil }) else { return }
    let now = Timestamp(seconds: clock().milliseconds / 1000)
    let purge = desk.purge(at: now, moment(), retention: settings.retentionDays)
    for file in purge.removed { log.write(.info, "audit file removed: too old", [.init("file", .text(file))]) }
    for problem in purge.problems { log.write(.warning, "audit", [.init("warning", .text(problem))]) }
  }

  // MARK: Changing and ending

  /// Takes other settings, and opens the file they name. What is recorded from here on is named and kept by them, however
  /// long the disk holds the file before. What that file does not take is lost, where it may not stand in this one.
  func use(_ settings: AuditSettings?) {
    // What was recorded under the old settings goes to the old file, and nothing that comes later.
    let before = state.withLock { state in
      let before = state.take()
      state.settings = settings
      isOn.store(settings != nil, ordering: .relaxed)
      state.switches += 1
      return before
    }
    desk.loop.execute { [self] in
      write(before)
      state.withLock { $0.switches -= 1 }
      desk.use(settings?.file)
      purge()
      flush()
    }
  }

  /// Opens the file anew by its name: whoever moved it away wants a new one.
  func reopen() {
    use(state.withLock { $0.settings })
  }

  /// Writes what is waiting, also for a file before this one, and ends the thread. Waits as long as the disk does. To be
  /// called once, when nobody records any more.
  func finish() {
    thread.stop { [self] in write(state.withLock { $0.take() }, retries: false) }
    let rest = state.withLock { $0.waiting.count }
    if rest > 0 { log.write(.error, "audit records are lost", [.init("count", .integer(Int64(rest)))]) }
  }
}
