package import PinfoldModel

/// Why none of a host's addresses could be reached.
package enum DialError: Error, Hashable, Sendable {
  /// Every address is one that may not be dialled; this is the first of them.
  case prohibited(IPAddress)
  /// The last attempt's failure, or what ended the wait for all of them.
  case failed(IOError)
}

/// Connects to the first of a host's addresses that answers (RFC 8305, "Happy Eyeballs").
package enum Dialer {
  /// Head start of each attempt over the next (RFC 8305 §5).
  package static let stagger = Duration.milliseconds(250)
  /// Attempts at most, so that a long answer cannot hold many descriptors.
  package static let maximalAttempts = 16

  /// Tries the addresses, families taking turns, each with a head start; the first to connect wins, the others are
  /// closed.
  ///
  /// - Parameters:
  ///   - other: a socket whose peer going away ends the attempt: the client.
  ///   - permits: asked of each address before anything is sent to it; what it refuses is left out.
  package static func connect(
    to addresses: [IPAddress], port: UInt16, loop: EventLoop, deadline: Deadline, watching other: StreamSocket? = nil,
    permits: (IPAddress) -> Bool = { _ in true }
  ) async throws(DialError) -> StreamSocket {
    do {
      if addresses.count == 1, permits(addresses[0]) {
        let endpoint = Endpoint.tcp(SocketAddress(addresses[0], port: port))
        return try await StreamSocket.connect(to: endpoint, loop: loop, deadline: deadline, watching: other)
      }
      let permitted = addresses.filter(permits)
      if permitted.isEmpty, let first = addresses.first { throw DialError.prohibited(first) }
      let candidates = interleaved(permitted).prefix(maximalAttempts).map { SocketAddress($0, port: port) }
      var race = Race(candidates: candidates, loop: loop, deadline: deadline)
      return try await race.run(watching: other)
    } catch let error as IOError {
      throw .failed(error)
    } catch let error as DialError {
      throw error
    } catch {
      throw .failed(.unreachable)
    }
  }

  /// Families in turn, IPv6 first, each in its given order (RFC 8305 §4).
  package static func interleaved(_ addresses: [IPAddress]) -> [IPAddress] {
    var six = addresses.filter { if case .v6 = $0 { true } else { false } }[...]
    var four = addresses.filter { if case .v4 = $0 { true } else { false } }[...]
    var result: [IPAddress] = []
    while !six.isEmpty || !four.isEmpty {
      if let next = six.popFirst() { result.append(next) }
      if let next = four.popFirst() { result.append(next) }
    }
    return result
  }
}

/// The attempts of one dial.
private struct Race {
  private var candidates: ArraySlice<SocketAddress>
  private let loop: EventLoop
  private let deadline: Deadline
  private var pending: [StreamSocket] = []
  private var nextStart: Deadline
  private var lastError = IOError.unreachable

  init(candidates: [SocketAddress], loop: EventLoop, deadline: Deadline) {
    self.candidates = candidates[...]
    self.loop = loop
    self.deadline = deadline
    nextStart = loop.now
  }

  mutating func run(watching other: StreamSocket?) async throws(IOError) -> StreamSocket {
    defer { for socket in pending { socket.close() } }
    while true {
      startNext()
      if pending.isEmpty {
        if candidates.isEmpty { throw lastError }
        continue
      }
      do {
        try await StreamSocket.waitWritable(
          pending, candidates.isEmpty ? deadline : min(deadline, nextStart), watching: other)
      } catch .timedOut where loop.now < deadline {
        continue
      }
      if let winner = takeWinner() { return winner }
    }
  }

  /// Starts the next attempt when its time has come, or when none is left that could still succeed.
  private mutating func startNext() {
    guard pending.isEmpty || nextStart <= loop.now, let candidate = candidates.popFirst() else { return }
    do throws(IOError) {
      pending.append(try StreamSocket.start(.tcp(candidate), loop: loop))
      nextStart = loop.deadline(after: Dialer.stagger)
    } catch {
      lastError = error
    }
  }

  /// The first socket that is connected; those that failed are closed and forgotten.
  private mutating func takeWinner() -> StreamSocket? {
    var failed = false
    for (index, socket) in pending.enumerated().reversed() where socket.mayWrite {
      if let error = socket.connectError {
        lastError = error
        failed = true
        pending.remove(at: index).close()
      } else {
        return pending.remove(at: index)
      }
    }
    if failed { nextStart = loop.now }
    return nil
  }
}
