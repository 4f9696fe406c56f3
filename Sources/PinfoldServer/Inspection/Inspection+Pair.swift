import PinfoldConfig
import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldTelemetry
import PinfoldWire

/// The two connections of a pair, of which an attacker must not find out which is the app's.
///
/// Whatever he does on one of them before he commits himself on the other has to be answered alike, whichever of them it
/// is: a tunnel may end for it, which tells him nothing he can use, but a pair is drawn anew for it on both or on neither.
extension Inspection {
  /// Dials the connection for a probe that will probably be needed, before any hello is sent, and draws which of the two
  /// connections carries the app's handshake. `nil` where no probe is expected, or an earlier verdict may be used again.
  @inline(__always)
  mutating func openProbeLeg(for hello: ClientHello) async throws(Refusal) -> ProbeLeg? {
    guard hello.offersTLS13, decision.tls13 == .probe, rules.configuration.tls.probeReuseSeconds == 0,
      probedAhead == nil, !isOlder,
      !worker.upstreams.answersOlder(decision.authority, ground)
    else { return nil }
    let leg = try await makeLeg(for: hello, twin: true)
    firstProbe = firstProbe ?? leg.handshake
    if Bool.random() { swap(&upstream, &leg.socket) }
    return leg
  }

  /// What the upstream answers on the app's connection, once it has said something on both; `nil` when it answered on one
  /// of them and stays silent on the other, whichever it is, so that the pair is to be drawn anew.
  ///
  /// Both connections stay open and are read meanwhile. A failure on either of them ends the tunnel where it would be drawn
  /// anew. A flight of TLS 1.2 or older on the app's connection waits for nothing: it is judged by itself.
  mutating func receiveFirst(
    _ reader: inout ServerFlightReader, beside leg: ProbeLeg
  ) async throws(Refusal) -> ServerFlightReader.Event? {
    var event = ServerFlightReader.Event.incomplete
    var heardAt: Deadline?
    var limit: Deadline?
    while true {
      switch event {
      case .incomplete, .tls13, .helloRetryRequest: break
      default: return event
      }
      if heardAt != nil, leg.heardAt != nil { return event }
      if limit == nil, let first = heardAt ?? leg.heardAt {
        limit = first.advanced(by: Self.patience(answeredIn: first.duration(since: sentHello)))
      }
      if let limit, worker.loop.now >= limit {
        if case .failed(let reason, let detail) = leg.result {
          probe = leg.kind
          worker.shard.probe(leg.kind, .failure)
          throw Refusal(reason, detail, method: .probe)
        }
        note(silenceBeside: event, leg)
        return nil
      }
      guard let bytes = try await receive(beside: leg, until: min(deadline, limit ?? deadline)) else { continue }
      heardAt = heardAt ?? worker.loop.now
      event = reader.receive(bytes.span)
    }
  }

  /// Keeps what a pair that is given up has told of the upstream.
  private mutating func note(silenceBeside event: ServerFlightReader.Event, _ leg: ProbeLeg) {
    if case .helloRetryRequest = event { retryStalled = true }
    if leg.hasRetried { retryStalled = true }
    if leg.isAnsweredOlder { isOlder = true }
  }

  /// Whether the probe is asked for a second hello too, as far as it can tell. Once the client has the request, the pair
  /// cannot be drawn anew; `false` says that it has to be. The one that was asked first is read until the other is, and
  /// neither from then on: one read more on either of them would tell which it is.
  mutating func mayPassRetry(
    _ reader: inout ServerFlightReader, beside leg: ProbeLeg?
  ) async throws(Refusal) -> Bool {
    guard let leg else { return true }
    leg.holdStill()
    guard await leg.isServed(patience: patience) else {
      retryStalled = true
      return false
    }
    if case .twin = leg.handshake {
      while !leg.hasRetried, !leg.isAnswered {
        try await readMore(&reader, beside: leg, until: deadline, unless: { leg.hasRetried })
      }
      // One that failed refuses the tunnel later, whatever the app's connection comes to.
      if !leg.hasRetried, !leg.isOver {
        throw Refusal(
          .probeFailed, "probe: the upstream asked the two connections for different hellos", method: .probe)
      }
    }
    return true
  }

  /// Reads on until the probe's connection is answered too. Nothing that takes its time on one connection alone may begin
  /// before: neither the probe's judgement nor what the client does with a ServerHello.
  func awaitAnswer(_ reader: inout ServerFlightReader, beside leg: ProbeLeg) async throws(Refusal) {
    leg.giveUpRetry()
    while !leg.isAnswered { try await readMore(&reader, beside: leg, until: deadline) }
  }

  /// Reads on until the probe is over. An attacker sees by the window how much lies unread (RFC 9293 §3.8.6), and the
  /// probe's connection is read all the time.
  func readOn(_ reader: inout ServerFlightReader, until leg: ProbeLeg) async throws(Refusal) {
    leg.judge()
    while !leg.isOver { try await readMore(&reader, beside: leg, until: deadline) }
  }

  /// Reads the app's connection once, or ends with nothing read: when there is news of the probe, `end` has come, or
  /// `isStill` is so when it would be read.
  func readMore(
    _ reader: inout ServerFlightReader, beside leg: ProbeLeg, until end: Deadline,
    unless isStill: () -> Bool = { false }
  ) async throws(Refusal) {
    guard let bytes = try await receive(beside: leg, until: end, unless: isStill) else { return }
    if case .refused(let refusal) = reader.receive(bytes.span) { throw Refusal(refusal, from: "upstream") }
  }

  /// As `receiveFlight`, beside a probe.
  func receiveFlight(
    _ reader: inout ServerFlightReader, beside leg: ProbeLeg
  ) async throws(Refusal) -> ServerFlightReader.Event {
    while true {
      if let bytes = try await receive(beside: leg, until: deadline) { return reader.receive(bytes.span) }
    }
  }

  /// The upstream's next bytes on the app's connection; `nil` when there is news of the probe, or `end` has come before
  /// the handshake's deadline.
  private func receive(
    beside leg: ProbeLeg, until end: Deadline, unless isStill: () -> Bool = { false }
  ) async throws(Refusal) -> [UInt8]? {
    leg.onProgress = { [upstream] in upstream.interrupt() }
    defer { leg.onProgress = nil }
    let bytes: [UInt8]?
    do {
      bytes =
        if leg.isHeld {
          try await upstream.receive(
            max: Self.readSize, deadline: end, watching: client, after: Self.pauseBeforeReading(), unless: isStill)
        } else {
          try await upstream.receive(max: Self.readSize, deadline: end, watching: client)
        }
    } catch {
      guard error == .timedOut, worker.loop.now < deadline else { throw Refusal(upstream: error) }
      return nil
    }
    guard bytes?.isEmpty != true else {
      throw Refusal(.upstreamUnreachable, "the upstream closed inside its flight")
    }
    return bytes
  }

  /// How long what came on either connection of a pair lies unread while an attacker may still choose. What Pinfold does
  /// with it is another thing on one than on the other by some microseconds, which are lost in what is drawn here.
  static func pauseBeforeReading() -> Duration { .nanoseconds(Int.random(in: 0..<500_000)) }

  /// Ends both connections of a pair that is given up. The next pair carries the same two hellos: whoever could tell from
  /// the end of this one which of them was the app's would know it then. So both end alike, in an order that is drawn.
  func giveUp(_ leg: ProbeLeg?) {
    let isProbeFirst = Bool.random()
    if isProbeFirst { leg?.drop() }
    upstream.abort()
    if !isProbeFirst { leg?.drop() }
  }

  /// How long the probe may hear nothing after the app's connection was answered. An upstream that serves one connection
  /// at a time would never answer it.
  var patience: Duration { Self.patience(answeredIn: worker.loop.now.duration(since: sentHello)) }

  /// The same on both sides: how long one connection may stay silent after the other was answered. What the two ways to
  /// measure it differ by is a few milliseconds at most, and lost in what is drawn.
  private static func patience(answeredIn duration: Duration) -> Duration {
    max(.milliseconds(250), duration * 4) + .microseconds(Int.random(in: 0..<100_000))
  }

  /// Draws anew: two fresh connections for the same hello. Possible as long as nothing was passed to the client.
  ///
  /// Each draw is independent of those before it, so an attacker who stalls a connection learns nothing he could use.
  mutating func redial() async throws(Refusal) {
    do {
      upstream = try await StreamSocket.connect(
        to: .tcp(address), loop: worker.loop, deadline: deadline, watching: client)
    } catch {
      throw Refusal(upstream: error)
    }
  }
}
