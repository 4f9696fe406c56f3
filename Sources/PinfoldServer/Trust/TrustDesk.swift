import FoundationEssentials
import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldSupply
import PinfoldTelemetry

/// The trusted keys of devices in the running proxy: learns first keys for tunnels, and sees what other processes pair
/// and forget.
///
/// `@unchecked Sendable`: `timer`, `seen` and `said` are touched on the loop's thread only, or before that thread runs;
/// everything else is immutable or safe by itself.
final class TrustDesk: @unchecked Sendable {
  /// How often is looked whether the cache changed.
  private static let step = Duration.seconds(1)
  /// A change may still get a neighbour of the same time.
  private static let settling = 2.0

  private let book: TrustBook
  private let cache: SealedCache?
  /// Its thread may wait for the disk.
  private let loop: EventLoop
  private let log: Logger
  private let audit: AuditTrail
  /// Called when a device was forgotten: what was seen of its key is no evidence any more.
  private let forget: @Sendable () -> Void
  private var timer: LoopTimer?
  private var seen: Double?
  private var said: Set<String> = []

  /// Reads what there is. `loop` has to be the calling thread's still.
  init(
    cache: SealedCache?, locked: LockedCache? = nil, loop: EventLoop, log: Logger, audit: AuditTrail,
    forget: @escaping @Sendable () -> Void
  ) {
    book = TrustBook(cache: cache, locked: locked)
    self.cache = cache
    self.loop = loop
    self.log = log
    self.audit = audit
    self.forget = forget
    seen = cache?.lastChange
    tell(book.load(), isNews: false)
    timer = LoopTimer(loop: loop, after: Self.step, every: Self.step) { [unowned self] in look() }
  }

  /// The key that this host and port is trusted with; never waits.
  func key(of authority: Authority) -> TrustedKey? { book.key(of: authority) }

  /// Whether the key of this host and port is kept and cannot be read; never waits.
  func isDamaged(_ authority: Authority) -> Bool { book.isDamaged(authority) }

  /// Trusts the first key of a device, or says that another one was quicker; waits for the disk, on this loop. `nil` when
  /// that took too long, or the client left; the key may be trusted from then on all the same.
  func learn(
    _ pin: Pin, of authority: Authority, for client: StreamSocket? = nil, on loop: EventLoop,
    until deadline: Deadline
  ) async -> TrustBook.Lesson? {
    let waiter = LoopWaiter<TrustBook.Lesson>(loop: loop)
    self.loop.execute { [self] in
      let lesson = book.learn(pin, of: authority, at: .now)
      tell(lesson, pin, authority)
      waiter.wake(lesson)
    }
    return await waiter.wait(until: deadline, for: client)
  }

  /// Reads the cache anew, on the desk's own loop.
  func reload() {
    loop.preconditionOnLoop()
    seen = cache?.lastChange
    tell(book.load(), isNews: true)
  }

  private func look() {
    if book.mayFindMore { return reload() }
    guard let change = cache?.lastChange else { return }
    let isSettled = Date().timeIntervalSince1970 - change > Self.settling
    if change != seen || !isSettled { reload() }
  }

  // MARK: Words

  private func tell(_ lesson: TrustBook.Lesson, _ pin: Pin, _ authority: Authority) {
    switch lesson {
    case .known: break
    case .learnt(let warning):
      note("first_use", authority, pin)
      if let warning { complain([warning]) }
    case .refused(let problem): complain(["\(authority.text): \(problem)"])
    }
  }

  private func tell(_ loaded: (changes: [TrustBook.Change], warnings: [String]), isNews: Bool) {
    complain(loaded.warnings)
    guard isNews else { return }
    for change in loaded.changes {
      note(change.key?.origin.rawValue ?? "forgotten", change.authority, change.key?.pin)
    }
    if loaded.changes.contains(where: { $0.key == nil }) { forget() }
  }

  private func note(_ action: String, _ authority: Authority, _ pin: Pin?) {
    var fields: [LogEvent.Field] = [.init("action", .text(action)), .init("host", .text(authority.text))]
    if let pin { fields.append(.init("key", .text(pin.text))) }
    log.write(.info, "trust", fields)
    audit.record(AuditRecord(.trust, fields))
  }

  /// Each thing is said once, however often it is found.
  private func complain(_ warnings: [String]) {
    for warning in warnings where said.count < 1000 && said.insert(warning).inserted {
      log.write(.warning, "trust", [.init("warning", .text(warning))])
    }
  }
}
