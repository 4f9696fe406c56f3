import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldTLS
import PinfoldTelemetry
import PinfoldWire

/// Looks at the one handshake of a tunnel: holds the upstream's flight, finds out whose key is behind it, and asks the
/// decision for the verdict.
///
/// Until `run` returns, no byte of the upstream's certificate flight has gone to the client, and nothing of the client
/// but its ClientHello (and, after a HelloRetryRequest, its second one) to the upstream. Whatever goes wrong is thrown
/// as a `Refusal`.
///
/// What every handshake goes through is inlined into `run`, for the reason told at `StreamSocket.wait`.
struct Inspection {
  /// Bytes asked of a socket at a time while a hello or a flight is read: one full TLS record.
  static let readSize = 16_384
  /// Pairs of connections drawn at most for one tunnel.
  static let drawLimit = 16
  /// Pairs that were drawn before an upstream counts as one that serves one connection at a time, and all there are for
  /// one that was ever seen to serve two: with each an attacker may look once more at the same two hellos.
  static let patientDraws = 4

  let worker: Worker
  let rules: Rules
  /// The proxy's user, where one is asked for.
  let user: String?
  /// What the rules say of this tunnel: those it began with, and from the verdict on those of then.
  var decision: Decision
  let client: StreamSocket
  let address: SocketAddress
  /// The connection that carries the app's handshake; the lot may exchange it for the one dialled beside it.
  var upstream: StreamSocket
  /// For hello, flight and verdict together.
  let deadline: Deadline
  /// What the client sent behind the bytes that were passed on: first behind its CONNECT head, later behind its hello.
  var surplus: [UInt8]
  /// Bytes of the upstream that were passed on already: a HelloRetryRequest.
  var releasedDown = 0
  /// When the app's first hello was whole.
  var greeted: Deadline?
  /// When the app's hello went to the upstream.
  var sentHello = Deadline.never
  /// Whether the upstream asked the app for a second hello.
  var hasRetried: Bool { releasedDown > 0 }
  /// When the tunnel began, as the ledger counts: what was judged later says nothing about the client's sessions.
  var moment: UInt64 = 0
  /// Whether the server chose TLS 1.3.
  var isTLS13 = false
  /// Whether the server went through a full TLS 1.3 handshake.
  var isFullTLS13 = false
  /// Whether a probe of OpenSSL's own, for a resumed session or to be used again, was not served beside the app's
  /// connection.
  var openSSLStalled = false
  /// Whether the upstream asked one connection of a pair for a second hello and never answered the other one.
  var retryStalled = false
  /// Whether the app's connection has to be answered in an older version than TLS 1.3 from now on, and needs no pair: a
  /// probe found one where the app's connection was silent, or one of the two connections was answered as if its session
  /// was resumed. What then follows tells an attacker which of the two hellos is the app's, so that no later pair with the
  /// same hellos could vouch for anything.
  var isOlder = false
  /// What was made for the probe of the first pair of connections.
  var firstProbe: ProbeHandshake?
  /// Whether the upstream was offered TLS 1.3, chose an older version and proved its key on the spot.
  var provedOlder = false
  /// Whether both connections of the pair were answered while both were open.
  var servedTwo = false
  /// What a probe found that was made before the app's connection, since the upstream serves one at a time.
  var probedAhead: Probed?
  /// Pairs of connections drawn so far.
  var draws = 1
  /// Whether the probe leaves before the app's connection is answered, as an upstream needs it that serves one
  /// connection at a time.
  var leavesEarly = false
  /// The kind of the probe, once one was needed.
  var probe: ProbeKind?
  /// The record version in which the client reads an alert.
  var alertVersion = TLSVersion.tls12

  /// What a probe found out.
  struct Probed {
    var evidence: Evidence
    /// Whether the server chose TLS 1.3.
    var isTLS13: Bool
  }

  /// A verdict that allows, and what has to be passed on because of it.
  struct Admission {
    let verdict: Verdict
    let upstream: StreamSocket
    /// The held flight, for the client.
    var down: [UInt8] = []
    /// What the client sent meanwhile, for the upstream.
    var up: [UInt8]
    /// Bytes passed on in each direction before the verdict.
    var alreadyUp = 0
    var alreadyDown = 0
    /// What the rest of the handshake may teach.
    var lesson: Lesson?
  }

  /// By what the upstream's key is known here.
  var ground: UpstreamMemory.Ground { decision.action == .verifyOnly ? .chain : .pins }

  /// Inspects the handshake from the client's first byte to the verdict.
  mutating func run() async throws(Refusal) -> Admission {
    moment = worker.ledger.moment
    let hello = try await readHello(ClientHelloReader())
    greeted = worker.loop.now
    alertVersion = hello.alertRecordVersion
    // Certificate and pins are looked up by one name only.
    if let refusal = hello.refusal(for: decision.authority.host, mayMissName: decision.sniOptional) {
      throw Refusal(refusal, from: "client")
    }
    var reader = ServerFlightReader(answering: hello)
    var finding = try await exchange(hello, &reader)
    while finding == nil {
      guard draws < (worker.upstreams.servesTwo(decision.authority, ground) ? Self.patientDraws : Self.drawLimit) else {
        throw Refusal(.probeFailed, "probe: the upstream serves one connection at a time", method: .probe)
      }
      draws += 1
      upstream.close()
      leavesEarly = draws > Self.patientDraws && !worker.upstreams.servesTwo(decision.authority, ground)
      // A twin cannot answer a retry before the app has, so here too a hello that needs none of the app's goes ahead.
      if openSSLStalled || (leavesEarly && retryStalled), probedAhead == nil {
        probedAhead = try await runProbe(hello, nil, twin: false)
      }
      try await redial()
      reader = ServerFlightReader(answering: hello)
      finding = try await exchange(hello, &reader)
    }
    guard let finding else { throw Refusal(.internalError) }
    let verdict = try await judge(finding)
    guard verdict.allows else { throw Refusal(verdict) }
    if isTLS13 { noteTLS13(finding) }
    // Whoever could make Pinfold believe it would meet a lone connection next time.
    if servedTwo { worker.upstreams.noteServesTwo(decision.authority, ground) }
    if provedOlder { worker.upstreams.noteOlder(decision.authority, by: verdict.reason) }
    return Admission(
      verdict: verdict, upstream: upstream, down: Array(reader.held(releasedDown..<reader.receivedEnd)), up: surplus,
      alreadyUp: finding.sentUp, alreadyDown: releasedDown, lesson: finding.lesson)
  }

  /// One exchange of hello and flight, with a probe beside it where one is needed; `nil` when the upstream did not serve
  /// the probe's connection.
  @inline(__always)
  private mutating func exchange(
    _ hello: ClientHello, _ reader: inout ServerFlightReader
  ) async throws(Refusal) -> Finding? {
    isTLS13 = false
    isFullTLS13 = false
    provedOlder = false
    servedTwo = false
    let leg = try await openProbeLeg(for: hello)
    defer { leg?.abandon() }
    try await sendHello(hello.records, beside: leg)
    let finding = try await readFlight(&reader, hello, leg)
    if finding == nil { giveUp(leg) }
    return finding
  }

  // MARK: The hello

  /// Reads one hello, the first or the second. What lies behind it stays in `surplus`.
  @inline(__always)
  private mutating func readHello(_ fresh: ClientHelloReader) async throws(Refusal) -> ClientHello {
    var reader = fresh
    var event = reader.receive(surplus.span)
    while true {
      switch event {
      case .hello(let hello):
        surplus = Array(reader.surplus)
        return hello
      case .refused(let refusal): throw Refusal(refusal, from: "client")
      case .incomplete:
        // Swift 6.3.1 crashes on the span of an awaited temporary: it needs a name.
        let bytes = try await receiveFromClient()
        event = reader.receive(bytes.span)
      }
    }
  }

  /// The client's next bytes. An upstream that speaks before the first hello does not speak TLS; after it asked for
  /// another one, it may send a ChangeCipherSpec at any time.
  @inline(__always)
  private func receiveFromClient() async throws(Refusal) -> [UInt8] {
    do {
      while true {
        if let bytes = try client.tryReceive(max: Self.readSize) {
          if bytes.isEmpty { break }
          return bytes
        }
        if hasRetried {
          try await client.waitReadable(deadline: deadline)
        } else {
          try checkUpstreamIsSilent()
          try await StreamSocket.waitReadable(client, or: upstream, deadline: deadline)
        }
      }
    } catch let refusal as Refusal {
      throw refusal
    } catch let error as IOError {
      throw Refusal(client: error)
    } catch {
      throw Refusal(.internalError)
    }
    throw Refusal(.notTLS, "the client closed before its ClientHello was whole")
  }

  private func checkUpstreamIsSilent() throws(Refusal) {
    let early: [UInt8]?
    do {
      early = try upstream.tryReceive(max: 1)
    } catch {
      throw Refusal(upstream: error)
    }
    guard let early else { return }
    if early.isEmpty { throw Refusal(.upstreamUnreachable, "the upstream closed before the ClientHello") }
    throw Refusal(.notTLS, "the upstream speaks first")
  }

  // MARK: The flight

  /// What was found out, on which way, and how many bytes of the client were passed on for it.
  struct Finding {
    var evidence: Evidence
    var method: VerificationMethod
    var sentUp: Int
    var lesson: Lesson?
    /// Whether the upstream showed a certificate and signed nothing with its key (static RSA).
    var awaitsProof = false
  }

  @inline(__always)
  private mutating func readFlight(
    _ reader: inout ServerFlightReader, _ first: ClientHello, _ leg: ProbeLeg?
  ) async throws(Refusal) -> Finding? {
    var hello = first
    var request: ServerHello?
    var sentUp = hello.records.count
    var event: ServerFlightReader.Event
    if let leg {
      guard let first = try await receiveFirst(&reader, beside: leg) else { return nil }
      event = first
    } else {
      event = try await receiveFlight(&reader)
    }
    while true {
      switch event {
      case .incomplete:
        event = if let leg { try await receiveFlight(&reader, beside: leg) } else { try await receiveFlight(&reader) }
      case .helloRetryRequest(let retry):
        guard try await mayPassRetry(&reader, beside: leg) else { return nil }
        hello = try await passRetry(retry, &reader, answering: hello)
        sentUp += try await sendSecondHello(hello, beside: leg)
        request = retry
        event = reader.secondHello(hello)
      case .tls12Flight(let flight):
        if case .signature = flight.keyProof { provedOlder = hello.offersTLS13 }
        let evidence = try judgeInBand(flight, hello)
        let lesson = lesson(behind: flight, answering: hello, evidence: evidence, receivedEnd: reader.receivedEnd)
        return Finding(
          evidence: evidence, method: .inBand, sentUp: sentUp, lesson: lesson,
          awaitsProof: flight.keyProof == .keyTransport)
      case .tls12Resumed(let resumed):
        if let origin = try origin(ofSessionIn: hello) {
          return Finding(
            evidence: origin.evidence, method: .resumption, sentUp: sentUp,
            lesson: lesson(behind: resumed, from: origin))
        }
        guard let evidence = try await judgeResumed(hello, leg) else { return nil }
        return Finding(evidence: evidence, method: .probe, sentUp: sentUp)
      case .tls13(let serverHello):
        worker.upstreams.noteTLS13(decision.authority, ground)
        if isOlder { throw .olderProbe }
        let hellos = Hellos13(first: first, retry: request.map { ($0, hello) }, server: serverHello)
        guard let (evidence, method) = try await judgeTLS13(hellos, &reader, leg) else { return nil }
        return Finding(evidence: evidence, method: method, sentUp: sentUp)
      case .fatalAlert(let code, let end):
        var refusal = Refusal(.upstreamUnreachable, "the upstream answered with alert \(code)")
        refusal.alert = Array(reader.held(releasedDown..<end))
        throw refusal
      case .noCertificate:
        throw Refusal(.anonymousSuite, "the upstream chose a suite without certificate", method: .inBand)
      case .refused(let refusal):
        throw Refusal(refusal, from: "upstream")
      }
    }
  }

  @inline(__always)
  func receiveFlight(_ reader: inout ServerFlightReader) async throws(Refusal) -> ServerFlightReader.Event {
    let bytes: [UInt8]
    do {
      bytes = try await upstream.receive(max: Self.readSize, deadline: deadline, watching: client)
    } catch {
      throw Refusal(upstream: error)
    }
    guard !bytes.isEmpty else { throw Refusal(.upstreamUnreachable, "the upstream closed inside its flight") }
    return reader.receive(bytes.span)
  }

  /// A HelloRetryRequest carries no key: it passes to the client, whose second hello has to name the same server.
  private mutating func passRetry(
    _ retry: ServerHello, _ reader: inout ServerFlightReader, answering first: ClientHello
  ) async throws(Refusal) -> ClientHello {
    do {
      try await client.send(Array(reader.held(releasedDown..<retry.end)), deadline: deadline)
    } catch {
      throw Refusal(client: error)
    }
    releasedDown = retry.end
    let second = try await readHello(ClientHelloReader(after: first))
    if let refusal = first.refusal(ofSecond: second, after: retry) { throw Refusal(refusal, from: "client") }
    return second
  }
}
