import PinfoldCrypto
import PinfoldLoop
import PinfoldModel
import PinfoldWire
import Synchronization

/// Asks who a client is. Passwords are hashed on a thread of its own, one at a time; what was right is remembered for a
/// while for that client's network, under a keyed hash, so that only the first tunnel of a program waits.
final class Gatekeeper: Sendable {
  /// Passwords that are remembered, and networks.
  private static let memoryLimit = 4096
  /// Passwords that may wait to be hashed: some six seconds' work. One network has some ten of them, by `attempts`.
  static let queueLimit = 64
  /// How many of these are for networks from which a password was right before: strangers from many addresses keep out
  /// nobody who comes from where he came from last time.
  static let reserve = 16

  private struct State {
    /// Until when a password is known to be right.
    var known: RecentTable<Attempt, Deadline>
    /// Who waits for the passwords that are being hashed, or wait for that.
    var pending: [Attempt: [LoopWaiter<Bool>]] = [:]
    /// Networks from which a password was right, those that were not heard of for the longest time forgotten first.
    var familiar: RecentTable<IPAddress?, Bool>
    var attempts = AttemptLimiter()
    var thread: LoopThread?
  }

  /// Credentials that come from a client's network. What one network got right says nothing to another: there the same
  /// credentials may be the last of many guesses, and those are bounded by `attempts`.
  private struct Attempt: Hashable {
    /// Of user and password, under the list in force.
    let name: Digest256
    let network: IPAddress?
  }

  private let state: Mutex<State>
  /// `nil` when there is no key: then nobody is admitted.
  private let hash: KeyedHash?
  /// How long a right password is remembered after its last use.
  private let memory: Duration
  /// How long a tunnel waits for its turn.
  private let patience: Duration
  /// Whether the process ends: nobody waits for what is still to be hashed.
  private let isOver = Atomic<Bool>(false)

  init(memory: Duration = .seconds(300), patience: Duration = .seconds(15)) {
    self.memory = memory
    self.patience = patience
    hash = try? KeyedHash()
    state = Mutex(
      State(known: RecentTable(limit: Self.memoryLimit), familiar: RecentTable(limit: Self.memoryLimit)))
  }

  /// The user behind these credentials, which the caller erases. Throws `credentialsNeeded` when they are missing or
  /// wrong, `clientLimit` when this client has been wrong too often, `tunnelLimit` when too many are waiting.
  ///
  /// The wait ends when the client behind `socket` leaves (`credentialsNeeded`) or its tunnel is ended (`draining`). The
  /// hashing goes on.
  func admit(
    _ credentials: BasicCredentials?, from client: IPAddress?, _ list: CredentialList, for socket: StreamSocket?,
    on loop: EventLoop
  ) async throws(TunnelFailure) -> String {
    guard let credentials else { throw .credentialsNeeded }
    guard let name = name(of: credentials, list) else { throw .internalError }
    let attempt = Attempt(name: name, network: AttemptLimiter.network(of: client))
    let waiter = LoopWaiter<Bool>(loop: loop)
    switch try standing(of: attempt, client, waiter, now: loop.now) {
    case .known: return credentials.user
    case .pending: break
    case .new:
      do throws(TunnelFailure) {
        try start(attempt, credentials, client, list)
      } catch {
        settle(attempt, isRight: false, client)
        throw error
      }
    }
    switch await waiter.wait(until: loop.deadline(after: patience), for: socket) {
    case true: return credentials.user
    case false: throw .credentialsNeeded
    case nil: break
    }
    // Who left waits no longer, or those who come and go would heap up behind one password.
    state.withLock { $0.pending[attempt]?.removeAll { $0 === waiter } }
    if socket?.isCancelled == true { throw .draining }
    throw socket?.hasHungUp == true ? .credentialsNeeded : .tunnelLimit(retryAfterSeconds: 1)
  }

  private enum Standing {
    /// The password is right.
    case known
    /// The waiter will be told.
    case pending
    /// The waiter will be told once somebody has the password hashed.
    case new
  }

  private func standing(
    of attempt: Attempt, _ client: IPAddress?, _ waiter: LoopWaiter<Bool>, now: Deadline
  ) throws(TunnelFailure) -> Standing {
    let answer = state.withLock { state -> Result<Standing, TunnelFailure> in
      if let end = state.known.value(for: attempt), now < end {
        state.known.set(now.advanced(by: memory), for: attempt)
        return .success(.known)
      }
      // The same password is hashed once, however many tunnels a program opens at a time.
      if state.pending[attempt] != nil {
        state.pending[attempt]?.append(waiter)
        return .success(.pending)
      }
      let isFamiliar = state.familiar.value(for: attempt.network) != nil
      let places = isFamiliar ? Self.queueLimit : Self.queueLimit - Self.reserve
      guard state.pending.count < places else { return .failure(.tunnelLimit(retryAfterSeconds: 1)) }
      if let seconds = state.attempts.take(client, now: now) {
        return .failure(.clientLimit(retryAfterSeconds: seconds))
      }
      state.pending[attempt] = [waiter]
      return .success(.new)
    }
    return try answer.get()
  }

  private func start(
    _ attempt: Attempt, _ credentials: BasicCredentials, _ client: IPAddress?, _ list: CredentialList
  ) throws(TunnelFailure) {
    let user = credentials.user
    var copy = Array(credentials.password)
    defer { erase(&copy) }
    guard let password = try? SecretBytes(copying: copy), let loop = try? hashingLoop() else { throw .internalError }
    loop.execute { [self] in
      let isRight = !isOver.load(ordering: .relaxed) && list.admits(user, password)
      settle(attempt, isRight: isRight, client)
    }
  }

  /// The thread that hashes, started when it is needed first.
  private func hashingLoop() throws(IOError) -> EventLoop {
    let made = state.withLock { state -> Result<EventLoop, IOError> in
      if let thread = state.thread { return .success(thread.loop) }
      do throws(IOError) {
        let thread = try LoopThread(name: "credentials", loop: try EventLoop())
        state.thread = thread
        return .success(thread.loop)
      } catch {
        return .failure(error)
      }
    }
    return try made.get()
  }

  /// Tells everybody who waits.
  private func settle(_ attempt: Attempt, isRight: Bool, _ client: IPAddress?) {
    let waiters = state.withLock { state in
      if isRight {
        state.known.set(.now.advanced(by: memory), for: attempt)
        state.familiar.set(true, for: attempt.network)
        state.attempts.giveBack(client)
      }
      return state.pending.removeValue(forKey: attempt) ?? []
    }
    for waiter in waiters { waiter.wake(isRight) }
  }

  /// A name for these credentials under this list, from which they cannot be worked out.
  private func name(of credentials: BasicCredentials, _ list: CredentialList) -> Digest256? {
    var bytes: [UInt8] = []
    // A buffer that grew would leave copies behind.
    bytes.reserveCapacity(8 + credentials.bytes.count)
    unsafe withUnsafeBytes(of: list.generation.bigEndian) { unsafe bytes.append(contentsOf: $0) }
    bytes.append(contentsOf: credentials.bytes)
    defer { erase(&bytes) }
    return hash?.digest(bytes)
  }

  /// Ends the thread, if there is one, behind the password that it hashes; those that wait are not right. To be called
  /// once, at the very end.
  func finish() {
    isOver.store(true, ordering: .relaxed)
    state.withLock { $0.thread }?.stop(after: {})
  }
}
