import PinfoldLoop
import Synchronization

/// Complaints that anybody who asks can cause, measured out: each once in a while, a few altogether, and how many more
/// there were. Whoever asks for hosts that do not exist must not be able to fill the log.
final class MeasuredComplaints: Sendable {
  /// Different lines within a window.
  static let lineLimit = 20
  /// From the first line until everything may be said again.
  static let window = Duration.seconds(10)

  private struct State {
    var said: Set<String> = []
    var leftOut = 0
  }

  private let loop: EventLoop
  private let window: Duration
  private let complain: @Sendable (String) -> Void
  private let state = Mutex(State())

  /// - Parameter complain: hears what is left.
  init(loop: EventLoop, window: Duration = window, to complain: @escaping @Sendable (String) -> Void) {
    self.loop = loop
    self.window = window
    self.complain = complain
  }

  /// Says a line, unless it was said a moment ago or too much was. From any thread.
  func say(_ line: String) {
    let (isNews, isFirst) = state.withLock { state in
      if state.said.contains(line) { return (false, false) }
      guard state.said.count < Self.lineLimit else {
        state.leftOut += 1
        return (false, false)
      }
      state.said.insert(line)
      return (true, state.said.count == 1)
    }
    if isNews { complain(line) }
    if isFirst {
      loop.spawn { [self] in
        await loop.sleep(for: window)
        beginAnew()
      }
    }
  }

  private func beginAnew() {
    let leftOut = state.withLock { state in
      defer { state = State() }
      return state.leftOut
    }
    if leftOut > 0 { complain("\(leftOut) more complaints like these within \(window.components.seconds) s") }
  }
}
