import PinfoldLoop

/// The pipe that applications write their key log to, and the clock by which unclaimed secrets go.
///
/// An application logs five lines a handshake, of which a tunnel waits for one. While no tunnel waits, what is written
/// stays in the pipe for a moment and is read at once then: a thread that is woken for every line costs more than what
/// it reads.
///
/// `@unchecked Sendable`: touched on its loop's thread only, which every door checks.
final class KeyLogIntake: @unchecked Sendable {  // One thread's, see above.
  /// How often secrets that nobody asked for are dropped.
  private static let expiryStep = Duration.seconds(5)
  /// How long what nobody waits for stays in the pipe.
  private static let rest = Duration.milliseconds(20)
  /// From so many bytes at a time on the pipe is read without a rest: it holds 64 KiB (pipe(7)), and a full one makes
  /// applications wait.
  private static let flood = 16_384

  private let log: KeyLog
  private let loop: EventLoop
  private var pipe: NamedPipe?
  private var expiry: LoopTimer?
  private var restEnd: LoopTimer?

  /// Opens the pipe, making it where it is missing.
  init(of log: KeyLog, from path: String, loop: EventLoop) throws(StartError) {
    self.log = log
    self.loop = loop
    do throws(IOError) {
      pipe = try NamedPipe(path: path, mode: KeyLog.pipeMode, loop: loop) { [unowned self] in take(&$0) }
    } catch {
      throw .cannotOpenKeyLog(path: path, error)
    }
    expiry = LoopTimer(loop: loop, after: Self.expiryStep, every: Self.expiryStep) { log.expire() }
    log.readOnDemand { [weak self] in self?.demand() }
  }

  private func take(_ bytes: inout [UInt8]) {
    let mayRest = bytes.count < Self.flood
    guard log.receive(&bytes, mayRest: mayRest) else { return }
    pipe?.pause()
    startRest()
  }

  private func startRest() {
    guard restEnd == nil else { return }
    restEnd = LoopTimer(loop: loop, after: Self.rest) { [unowned self] in
      restEnd = nil
      log.endRest()
      read()
    }
  }

  private func read() {
    guard let pipe, !pipe.resume() else { return }
    startRest()
  }

  /// A tunnel waits, on whatever thread.
  private func demand() {
    guard loop.isOnLoop else { return loop.execute { [weak self] in self?.demand() } }
    read()
  }
}
