import Testing

/// What has to be true at both ends of a played capture. Said without the bytes: a failure is to be readable.
enum CaptureExpectation {
  /// - Parameters:
  ///   - mayProbe: whether Pinfold may have made a connection of its own.
  ///   - sentUp: bytes of the client that may reach the upstream before a verdict; the hellos where it is `nil`.
  static func check(
    _ result: CaptureReplay.Result, of capture: Capture, _ expected: CaptureVerdict, mayProbe: Bool = false,
    sentUp: Int? = nil
  ) {
    let reply = result.reply
    #expect(reply.statusLine.contains(" 200"))
    let isRetried = capture.facts.helloRetry != nil
    let shape = "\(reply.rest.count) bytes of \(capture.server.count), \(reply.rest.prefix(16))"
    let isRight: Bool
    switch expected.passed {
    case .everything: isRight = reply.rest == capture.server
    case .alert: isRight = capture.server.starts(with: reply.rest) && reply.rest.first == 21
    case .serverHello: isRight = reply.isServerHelloAlone(retries: isRetried)
    case .nothing: isRight = reply.isSilentRefusal(allowsRetry: isRetried)
    }
    #expect(isRight, "the client got something else than \(expected.passed): \(shape)")
    let wanted =
      switch expected.passed {
      case .everything: capture.client
      case .alert, .serverHello, .nothing:
        Array(capture.client.prefix(expected.reachesUpstream ? sentUp ?? capture.helloEnd : 0))
      }
    // A probe sends its own hello and takes its leave; it is never told a byte of the client's.
    let others = result.upstream.filter { $0 != wanted }
    let isSent = expected.reachesUpstream ? others.count < result.upstream.count : result.upstream.joined().isEmpty
    let counts = "\(result.upstream.map(\.count)) bytes instead of \(wanted.count)"
    #expect(isSent, "the upstream was sent \(counts)")
    #expect(others.isEmpty || (mayProbe && others.allSatisfy { $0.count <= wanted.count + 80 }), "\(counts)")
  }
}
