internal import CLinux

extension StreamSocket {
  // MARK: Receiving

  /// Bytes that are there now, at most `max` (and 64 KiB): empty at the end of the stream, `nil` when there is nothing
  /// yet (recv(2)).
  /// - Throws: `.reset` and other errors of the connection, `.closed`.
  package func tryReceive(max: Int) throws(IOError) -> [UInt8]? {
    guard let count = try receiveIntoScratch(max) else { return nil }
    return unsafe [UInt8](loop.scratch[..<count])
  }

  /// Reads away bytes that are there now, at most 64 KiB, and leaves none of them in memory: a client that is refused
  /// may have sent credentials, and what lies unread at the close would turn its answer into a reset.
  package func discard() {
    guard let count = try? receiveIntoScratch(EventLoop.scratchSize) else { return }
    loop.eraseScratch(count)
  }

  /// As `discard`, waiting for the bytes, at most `max` of them. Answers their count, 0 at the end of the stream.
  /// - Throws: as `receive(max:deadline:)`.
  package func discard(max: Int, deadline: Deadline) async throws(IOError) -> Int {
    let count = try await receive(max: max, deadline: deadline) { $0.count }
    loop.eraseScratch(count)
    return count
  }

  /// Waits for bytes and takes those that are there, at most `max` (and 64 KiB). Empty at the end of the stream.
  ///
  /// - Parameter other: a socket whose peer going away ends the wait: the client, while its upstream is read.
  /// - Throws: `.timedOut`, `.cancelled`, `.reset`, `.hungUp` and other errors of the connection, `.closed`.
  package func receive(
    max: Int, deadline: Deadline, watching other: StreamSocket? = nil
  ) async throws(IOError) -> [UInt8] {
    while true {
      if let bytes = try tryReceive(max: max) { return bytes }
      try await wait(for: .read, deadline, watching: other)
    }
  }

  /// As `receive(max:deadline:watching:)`, but what came is taken only when a pause is over, in which nothing is watched;
  /// `nil` when nothing had come after all, or when `isStill` is so by then. The peer sees when its bytes are taken: by
  /// the window, and by acknowledgements that Linux sends then.
  package func receive(
    max: Int, deadline: Deadline, watching other: StreamSocket? = nil, after pause: Duration,
    unless isStill: () -> Bool = { false }
  ) async throws(IOError) -> [UInt8]? {
    if !mayRead { try await wait(for: .read, deadline, watching: other) }
    await loop.pause(for: pause)
    return isStill() ? nil : try tryReceive(max: max)
  }

  /// As `receive(max:deadline:)`, but lends the bytes out of the loop's scratch buffer instead of copying them. The
  /// span is empty at the end of the stream.
  package func receive<Result>(
    max: Int, deadline: Deadline, watching other: StreamSocket? = nil, _ body: (Span<UInt8>) -> Result
  ) async throws(IOError) -> Result {
    while true {
      if let count = try receiveIntoScratch(max) {
        let bytes = unsafe UnsafeBufferPointer(rebasing: loop.scratch.assumingMemoryBound(to: UInt8.self)[..<count])
        return body(unsafe bytes.span)
      }
      try await wait(for: .read, deadline, watching: other)
    }
  }

  /// The count of bytes now in the loop's scratch buffer, 0 at the end of the stream, `nil` when there is nothing yet.
  private func receiveIntoScratch(_ max: Int) throws(IOError) -> Int? {
    loop.preconditionOnLoop()
    guard descriptor >= 0 else { throw .closed }
    guard mayRead, let buffer = unsafe loop.scratch.baseAddress else { return nil }
    let count = unsafe pinfold_recv(descriptor, buffer, Swift.min(Swift.max(max, 1), EventLoop.scratchSize))
    if count >= 0 { return count }
    guard wouldBlock(count) else { throw IOError(count) }
    mayRead = false
    return nil
  }

  // MARK: Sending

  /// Sends all of the bytes, waiting as often as the peer is slow (send(2)).
  ///
  /// - Parameter other: a socket whose peer going away ends the wait.
  /// - Throws: `.timedOut`, `.cancelled`, `.reset`, `.hungUp` and other errors of the connection, `.closed`. How much
  ///   had gone out by then is unknown.
  package func send(
    _ bytes: [UInt8], deadline: Deadline, watching other: StreamSocket? = nil
  ) async throws(IOError) {
    var sent = try trySend(bytes.span)
    while sent < bytes.count {
      try await wait(for: .write, deadline, watching: other)
      sent += try trySend(bytes.span.extracting(sent...))
    }
  }

  /// As `send(_:deadline:)`, for the tunnel of another socket: a `cancel` of that one ends the wait, while its peer may
  /// go away and leave its last words behind.
  package func send(_ bytes: [UInt8], deadline: Deadline, inTunnelOf other: StreamSocket) async throws(IOError) {
    var sent = try trySend(bytes.span)
    while sent < bytes.count {
      try await wait(for: .write, deadline, watching: other, for: .end)
      sent += try trySend(bytes.span.extracting(sent...))
    }
  }

  /// Sends what the socket takes now; the answer is the count, 0 up to all of it.
  /// - Throws: `.reset` and other errors of the connection, `.closed`.
  package func trySend(_ bytes: Span<UInt8>) throws(IOError) -> Int {
    loop.preconditionOnLoop()
    guard descriptor >= 0 else { throw .closed }
    var sent = 0
    while mayWrite, sent < bytes.count {
      let rest = bytes.extracting(sent...)
      let count = unsafe rest.withUnsafeBufferPointer { buffer in
        guard let start = buffer.baseAddress else { return 0 }
        return unsafe pinfold_send(descriptor, start, buffer.count)
      }
      if count > 0 {
        sent += count
      } else if wouldBlock(count) {
        mayWrite = false
      } else {
        throw IOError(count)
      }
    }
    return sent
  }
}
