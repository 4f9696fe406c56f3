import PinfoldLoop

/// The pipe that applications write their key log to, and the clock by which unclaimed secrets go. Lives on one loop.
final class KeyLogIntake {
  /// How often secrets that nobody asked for are dropped.
  private static let expiryStep = Duration.seconds(5)

  private let pipe: NamedPipe
  private let expiry: LoopTimer

  /// Opens the pipe, making it where it is missing.
  init(of log: KeyLog, from path: String, loop: EventLoop) throws(StartError) {
    do throws(IOError) {
      pipe = try NamedPipe(path: path, mode: KeyLog.pipeMode, loop: loop) { log.receive(&$0) }
    } catch {
      throw .cannotOpenKeyLog(path: path, error)
    }
    expiry = LoopTimer(loop: loop, after: Self.expiryStep, every: Self.expiryStep) { log.expire() }
  }
}
