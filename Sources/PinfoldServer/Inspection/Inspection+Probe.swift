import PinfoldConfig
import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldTLS
import PinfoldTelemetry
import PinfoldWire

extension Inspection {
  /// Dials the connection for a probe that will probably be needed, before any hello is sent, and draws which of the two
  /// connections carries the app's handshake. `nil` where no probe is expected, or an earlier verdict may be used again.
  mutating func openProbeLeg(for hello: ClientHello) async throws(Refusal) -> ProbeLeg? {
    guard hello.offersTLS13, decision.tls13 != .deny, rules.configuration.tls.probeReuseSeconds == 0,
      !worker.upstreams.answersOlder(decision.authority)
    else { return nil }
    let leg = try await makeLeg(for: hello)
    if Bool.random() { swap(&upstream, &leg.socket) }
    return leg
  }

  private func makeLeg(for hello: ClientHello) async throws(Refusal) -> ProbeLeg {
    let session: ProbeSession
    do {
      session = try worker.probes.session(mirroring: hello)
    } catch {
      throw Refusal(error, method: .probe)
    }
    do {
      let socket = try await StreamSocket.connect(
        to: .tcp(address), loop: worker.loop, deadline: deadline, watching: client)
      return ProbeLeg(session, over: socket, loop: worker.loop, deadline: deadline)
    } catch {
      switch error {
      case .refused, .unreachable, .reset: throw Refusal(.probeFailed, "probe: \(error.text)", method: .probe)
      default: throw Refusal(upstream: error)
      }
    }
  }

  /// A resumed TLS 1.0–1.2 handshake shows no certificate.
  mutating func judgeResumed(_ hello: ClientHello, _ leg: ProbeLeg?) async throws(Refusal) -> Evidence? {
    guard rules.configuration.tls.resumption == .probe else {
      throw Refusal(.resumptionUnverified, "the session was resumed and tls.resumption is refuse", method: .resumption)
    }
    return try await runProbe(hello, leg)
  }

  /// In TLS 1.3 the certificate is encrypted.
  mutating func judgeTLS13(_ answer: ServerHello, _ hello: ClientHello, _ leg: ProbeLeg?) async throws(Refusal)
    -> Evidence?
  {
    switch decision.tls13 {
    case .deny:
      throw Refusal(.tls13Denied, "the rule demands TLS 1.2 or older and the upstream chose TLS 1.3")
    case .keyLog:
      throw Refusal(.handshakeTimeout, "the rule demands a key-log line and none came", method: .keyLog)
    case .probe:
      break
    }
    if answer.selectedPSK != nil {
      guard rules.configuration.tls.resumption == .probe else {
        throw Refusal(
          .resumptionUnverified, "the session was resumed and tls.resumption is refuse", method: .resumption)
      }
    } else if hello.offersPSK, rules.configuration.tls.pskDeclined == .refuse {
      throw Refusal(
        .pskDeclined, "the upstream declined the pre-shared key and tls.psk_declined is refuse", method: .probe)
    }
    return try await runProbe(hello, leg)
  }

  private mutating func runProbe(_ hello: ClientHello, _ leg: ProbeLeg?) async throws(Refusal) -> Evidence? {
    probe = .openssl
    let outcome: ProbeLeg.Outcome
    let reuse = rules.configuration.tls.probeReuseSeconds
    if reuse > 0 {
      outcome = await reusableProbe(hello, seconds: reuse)
    } else if let leg {
      outcome = await leg.outcome(patience: patience)
    } else {
      outcome = try await makeLeg(for: hello).outcome(patience: patience)
    }
    switch outcome {
    case .stalled where releasedDown == 0:
      return nil
    case .stalled:
      throw Refusal(.probeFailed, "probe: the upstream serves one connection at a time", method: .probe)
    case .failed(let reason, let detail):
      worker.shard.probe(.openssl, .failure)
      throw Refusal(reason, detail, method: .probe)
    case .finished(let result):
      worker.shard.probe(.openssl, .success)
      return try judge(result)
    }
  }

  /// How long the probe may hear nothing after the app's connection was answered. An upstream that serves one connection
  /// at a time would never answer it.
  var patience: Duration {
    let answerTook = worker.loop.now.duration(since: sentHello)
    return max(.milliseconds(250), answerTook * 4)
  }

  /// Draws anew: two fresh connections for the same hello. Possible as long as nothing was passed to the client.
  ///
  /// Each draw is independent of those before it, so an attacker who stalls a connection learns nothing he could use.
  mutating func redial() async throws(Refusal) {
    upstream.close()
    do {
      upstream = try await StreamSocket.connect(
        to: .tcp(address), loop: worker.loop, deadline: deadline, watching: client)
    } catch {
      throw Refusal(upstream: error)
    }
  }

  private func judge(_ result: ProbeResult) throws(Refusal) -> Evidence {
    do {
      let judgement = try rules.verifier.judge(
        certificates: result.certificates, host: decision.authority.host, now: .now)
      return Evidence(judgement, keyProven: true)
    } catch {
      throw Refusal(error, method: .probe)
    }
  }

  /// One probe at a time for tunnels that look the same to the upstream, used again for a while. Weaker than a probe of
  /// every tunnel's own, since an attacker may see from its absence which connection is the app's.
  private func reusableProbe(_ hello: ClientHello, seconds: Int) async -> ProbeLeg.Outcome {
    let key = ProbeReuse.Key(
      address: address, authority: decision.authority, hello: hello, policyVersion: decision.policyVersion)
    let inspection = SingleProbe(worker: worker, address: address, hello: hello, rules: rules)
    let outcome = await worker.probeReuse.outcome(for: key, now: worker.loop.now, seconds: seconds) {
      worker.loop.spawnProbe { await inspection.run() }
    }.value
    // A failure may be this moment's: the next tunnel tries again.
    if case .failed = outcome { worker.probeReuse.forget(key) }
    return outcome
  }
}

/// A probe that belongs to no tunnel alone.
private struct SingleProbe: Sendable {
  let worker: Worker
  let address: SocketAddress
  let hello: ClientHello
  let rules: Rules

  func run() async -> ProbeLeg.Outcome {
    let deadline = worker.loop.deadline(after: .seconds(rules.configuration.limits.handshakeSeconds))
    let session: ProbeSession
    do {
      session = try worker.probes.session(mirroring: hello)
    } catch {
      return .failed(.internalError, error.description)
    }
    do {
      let socket = try await StreamSocket.connect(to: .tcp(address), loop: worker.loop, deadline: deadline)
      return await ProbeLeg(session, over: socket, loop: worker.loop, deadline: deadline).outcome(
        patience: .seconds(3600))
    } catch {
      return .failed(.probeFailed, "probe: \(error.text)")
    }
  }
}

extension ProbeClient {
  /// A probe that offers what the app's hello offers.
  fileprivate func session(mirroring hello: ClientHello) throws(TLSError) -> ProbeSession {
    guard let offer = ProbeOffer(mirroring: hello) else {
      throw .failed(call: "probe", detail: "no version of the application's offer is known")
    }
    return try session(offer)
  }
}

extension EventLoop {
  fileprivate func spawnProbe(
    _ operation: @escaping @Sendable () async -> ProbeLeg.Outcome
  ) -> Task<ProbeLeg.Outcome, Never> {
    Task(executorPreference: self, operation: operation)
  }
}
