internal import CLinux

/// One way through a relay: what its source sends, its sink gets, in order and whole.
///
/// Small data goes through the loop's scratch buffer by recv(2) and send(2). A read of `bulkThreshold` or more turns
/// the direction to splice(2) through a pipe of the loop's pool, until a turn moves less than that again. What a slow
/// sink leaves behind stays in the pipe or in `rest`, and the source is not read before that is gone: the peer's own
/// window then holds it back. A direction at rest holds neither.
struct RelayDirection {
  /// What a turn came to.
  enum Outcome {
    /// Nothing can be done before the next edge.
    case waiting
    /// The turn's share is used up; there is more to do.
    case again
    /// The source's end was passed on.
    case done
    case sourceFailed
    case sinkFailed
  }

  /// Bytes in one read from which on splicing is cheaper than copying.
  static let bulkThreshold = 32_768
  /// Bytes moved before other sockets get their turn.
  static let turnShare = 1_048_576

  /// Bytes taken from the source.
  private(set) var byteCount: UInt64 = 0
  private(set) var isDone = false
  /// A short read was taken for "nothing more there" without asking the kernel again.
  private(set) var isUnconfirmed = false

  private var pipe: Pipe?
  /// Copied bytes that the sink did not take, up to 64 KiB; empty otherwise.
  private var rest: [UInt8] = []
  private var restStart = 0
  private var isBulk = false
  private var sourceEnded = false

  /// Moves what can be moved now.
  ///
  /// - Parameter trustsShortReads: a read that does not fill the buffer means that nothing is left, so that the read
  ///   that would answer EAGAIN can be left out. Not so when an end may lie behind the bytes: epoll reports both as one
  ///   edge.
  /// - Parameter passesEnd: false for the last turn from a source that failed elsewhere: after its error was reported,
  ///   reads answer "end of stream" although none was sent.
  mutating func turn(
    from source: StreamSocket, to sink: StreamSocket, loop: EventLoop, trustsShortReads: Bool, passesEnd: Bool = true
  ) -> Outcome {
    if isDone { return .waiting }
    let start = byteCount
    while true {
      guard flush(to: sink) else { return .sinkFailed }
      if holdsBytes { return .waiting }
      if sourceEnded {
        guard passesEnd else { return .waiting }
        release(loop)
        sink.shutdownWrite()
        isDone = true
        return .done
      }
      let moved = byteCount - start
      guard source.mayRead else {
        isBulk = moved >= UInt64(Self.bulkThreshold)
        release(loop)
        return .waiting
      }
      if moved >= UInt64(Self.turnShare) { return .again }
      if isBulk, pipe == nil {
        pipe = loop.pipes.take()
        isBulk = pipe != nil
      }
      let succeeded =
        if let pipe { splice(from: source, into: pipe) } else {
          copy(from: source, to: sink, loop, trustsShortReads: trustsShortReads)
        }
      guard succeeded else { return .sourceFailed }
    }
  }

  /// Whether the source failed, as by a reset, after its end was passed on: nobody reads it any more, so the system is
  /// asked for its error. Asks on the source's own events only, and never before the end. A source that merely ended,
  /// and goes on to receive, has no error.
  func hasLost(_ source: StreamSocket) -> Bool {
    guard isDone, source.mayRead else { return false }
    source.mayRead = false
    return source.hasFailed
  }

  /// Has the next turn read again although the last read seemed to have taken everything.
  mutating func confirm(_ source: StreamSocket) {
    if isUnconfirmed { source.mayRead = true }
    isUnconfirmed = false
  }

  /// Gives back what is borrowed; bytes not delivered are lost.
  mutating func release(_ loop: EventLoop) {
    if let pipe { loop.pipes.give(pipe) }
    pipe = nil
  }

  /// Whether the sink has yet to take bytes; the source is not read meanwhile.
  var holdsBytes: Bool { !rest.isEmpty || (pipe?.fill ?? 0) > 0 }

  /// False if the sink failed.
  private mutating func flush(to sink: StreamSocket) -> Bool {
    while !rest.isEmpty, sink.mayWrite {
      let sent = unsafe rest.withUnsafeBytes { bytes in
        guard let start = bytes.baseAddress else { return 0 }
        return unsafe pinfold_send(sink.descriptor, start + restStart, bytes.count - restStart)
      }
      guard account(sent, sink) else { return false }
      if sent > 0 { restStart += sent }
      if restStart == rest.count {
        rest = []
        restStart = 0
      }
    }
    guard let pipe else { return true }
    while pipe.fill > 0, sink.mayWrite {
      let sent = pinfold_splice(pipe.reader, sink.descriptor, pipe.fill)
      guard account(sent, sink) else { return false }
      if sent > 0 { pipe.fill -= sent }
    }
    return true
  }

  /// Notes that the sink is full; false if it failed. Zero cannot be: it would be asked for ever, so it is a failure.
  private func account(_ sent: Int, _ sink: StreamSocket) -> Bool {
    if wouldBlock(sent) {
      sink.mayWrite = false
      return true
    }
    return sent > 0
  }

  /// False if the source failed. The pipe is empty before, so that EAGAIN can only mean the source.
  private mutating func splice(from source: StreamSocket, into pipe: Pipe) -> Bool {
    let count = pinfold_splice(source.descriptor, pipe.writer, pipe.capacity)
    guard count > 0 else { return ended(count, source) }
    byteCount &+= UInt64(count)
    pipe.fill = count
    return true
  }

  private mutating func copy(
    from source: StreamSocket, to sink: StreamSocket, _ loop: EventLoop, trustsShortReads: Bool
  ) -> Bool {
    guard let buffer = unsafe loop.scratch.baseAddress else { return false }
    let count = unsafe pinfold_recv(source.descriptor, buffer, EventLoop.scratchSize)
    guard count > 0 else { return ended(count, source) }
    byteCount &+= UInt64(count)
    if count >= Self.bulkThreshold { isBulk = true }
    if count < EventLoop.scratchSize, trustsShortReads {
      source.mayRead = false
      isUnconfirmed = true
    }
    let sent = sink.mayWrite ? unsafe pinfold_send(sink.descriptor, buffer, count) : -Int(EAGAIN)
    if sent == count { return true }
    // A failed sink is found by the flush that follows.
    if wouldBlock(sent) { sink.mayWrite = false }
    rest = unsafe [UInt8](UnsafeRawBufferPointer(start: buffer, count: count)[max(sent, 0)...])
    return true
  }

  /// Folds a read that gave nothing: end of stream, nothing there, or failure (false).
  private mutating func ended(_ result: Int, _ source: StreamSocket) -> Bool {
    if result == 0 {
      sourceEnded = true
    } else if wouldBlock(result) {
      source.mayRead = false
      isUnconfirmed = false
    } else {
      return false
    }
    return true
  }
}
