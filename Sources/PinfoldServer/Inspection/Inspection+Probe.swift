import PinfoldConfig
import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldTLS
import PinfoldTelemetry
import PinfoldWire

extension Inspection {
  func makeLeg(for hello: ClientHello, twin: Bool) async throws(Refusal) -> ProbeLeg {
    let handshake: ProbeHandshake
    do {
      handshake = try ProbeHandshake.make(for: hello, worker.probes, rules, twin: twin, again: firstProbe)
    } catch {
      throw Refusal(error, method: .probe)
    }
    do {
      let socket = try await StreamSocket.connect(
        to: .tcp(address), loop: worker.loop, deadline: deadline, watching: client)
      return ProbeLeg(
        handshake, over: socket, loop: worker.loop, deadline: deadline, leavesEarly: twin ? leavesEarly : true)
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
    // A twin offers the app's own session, which the upstream would resume again.
    leg?.abandon()
    if let probedAhead { return probedAhead.evidence }
    if let probed = try await runProbe(hello, nil, twin: false) { return probed.evidence }
    // The next try probes first, and without a pair: this probe's hello can be told from the app's anyway.
    openSSLStalled = true
    isOlder = true
    return nil
  }

  /// In TLS 1.3 the certificate is encrypted: the app's own key log opens it, else a probe asks the endpoint.
  mutating func judgeTLS13(
    _ hellos: Hellos13, _ reader: inout ServerFlightReader, _ leg: ProbeLeg?
  ) async throws(Refusal) -> (Evidence, VerificationMethod)? {
    isTLS13 = true
    guard decision.tls13 != .deny else { throw .tls13Denied }
    if let leg { try await awaitAnswer(&reader, beside: leg) }
    let isResumed = hellos.server.selectedPSK != nil
    if !isResumed, let keyLog = worker.services.keyLog,
      case .evidence(let evidence) = try await judgeByKeyLog(hellos, &reader, keyLog, beside: leg)
    {
      isFullTLS13 = true
      return (evidence, .keyLog)
    }
    if isResumed {
      if let evidence = evidenceBehindPreSharedKey() { return (evidence, .resumption) }
      guard rules.configuration.tls.resumption == .probe, decision.tls13 == .probe else {
        throw .resumptionUnverified
      }
    } else if decision.tls13 == .keyLog {
      throw .keyLogSilent
    } else if hellos.first.offersPSK || hellos.client.offersPSK, rules.configuration.tls.pskDeclined == .refuse {
      throw Refusal(
        .pskDeclined, "the upstream declined the pre-shared key and tls.psk_declined is refuse", method: .probe)
    }
    isFullTLS13 = !isResumed
    if let leg { try await readOn(&reader, until: leg) }
    let found: Probed?
    if let probedAhead {
      found = probedAhead
    } else if leg != nil || rules.configuration.tls.probeReuseSeconds > 0 {
      found = try await runProbe(hellos.client, leg, twin: true)
    } else {
      // A probe from now on would show which connection is the app's.
      throw .newerThanKnown
    }
    guard let found else { return nil }
    guard found.isTLS13 else {
      // The key's owner does not speak TLS 1.3 here: somebody else did on the app's connection.
      worker.probeReuse.forget(reuseKey(of: hellos.client))
      throw .olderProbe
    }
    return (found.evidence, .probe)
  }

  mutating func runProbe(
    _ hello: ClientHello, _ leg: ProbeLeg?, twin: Bool
  ) async throws(Refusal) -> Probed? {
    let outcome: ProbeLeg.Outcome
    let kind: ProbeKind
    let isShared = leg == nil && rules.configuration.tls.probeReuseSeconds > 0
    if let leg {
      kind = leg.kind
      outcome = await leg.outcome(patience: patience)
    } else if isShared {
      kind = .openssl
      outcome = try await reusableProbe(hello, seconds: rules.configuration.tls.probeReuseSeconds)
    } else {
      // Not expected, so dialled late: by a hello that needs none of the app's to answer a retry.
      let late = try await makeLeg(for: hello, twin: false)
      kind = late.kind
      probe = kind
      outcome = try await self.outcome(of: late)
    }
    probe = kind
    // A shared one is counted where it is made: it is one probe for however many tunnels.
    let shard = isShared ? nil : worker.shard
    switch outcome {
    case .stalled where releasedDown == 0:
      // The next try probes first, as after a resumption.
      if isShared { openSSLStalled = true }
      return nil
    case .stalled:
      shard?.probe(kind, .failure)
      throw Refusal(.probeFailed, "probe: the upstream serves one connection at a time", method: .probe)
    case .resumed(let detail):
      shard?.probe(kind, .failure)
      throw Refusal(.probeFailed, detail, method: .probe)
    case .failed(let reason, let detail):
      shard?.probe(kind, .failure)
      throw Refusal(reason, detail, method: .probe)
    case .finished(let seen):
      // A twin's answer vouches for TLS 1.3 only where it is one.
      let isOfUse = !twin || seen.isTLS13
      shard?.probe(kind, isOfUse ? .success : .failure)
      servedTwo = isOfUse && leg != nil && !leavesEarly
      return Probed(evidence: try judge(seen), isTLS13: seen.isTLS13)
    }
  }

  /// How a probe beside which nothing is read ended. It ends without a word where nobody waits for it any more.
  private func outcome(of leg: ProbeLeg) async throws(Refusal) -> ProbeLeg.Outcome {
    var isUnwanted = false
    let giveUp = {
      isUnwanted = true
      leg.drop()
    }
    if !client.watchDeparture(giveUp) { giveUp() }
    defer { client.endWatch() }
    let outcome = await leg.outcome(patience: patience)
    leg.abandon()
    if isUnwanted { throw Refusal(upstream: client.isCancelled ? .cancelled : .hungUp) }
    return outcome
  }

  private func judge(_ seen: ProbeHandshake.Seen) throws(Refusal) -> Evidence {
    do throws(TLSError) {
      switch seen.key {
      case .certificates(let certificates):
        let host = decision.authority.host
        return Evidence(
          try rules.verifier.judge(certificates: certificates, host: host, now: rules.now), keyProven: true)
      case .rawPublicKey(let key):
        return Evidence(try rules.verifier.judge(rawPublicKey: key, now: rules.now), keyProven: true)
      }
    } catch {
      throw Refusal(error, method: .probe)
    }
  }

  /// One probe at a time for tunnels that look the same to the upstream, used again for a while. Weaker than a probe of
  /// every tunnel's own, since an attacker may see from its absence which connection is the app's.
  private func reusableProbe(_ hello: ClientHello, seconds: Int) async throws(Refusal) -> ProbeLeg.Outcome {
    let key = reuseKey(of: hello)
    let inspection = SingleProbe(
      worker: worker, address: address, hello: hello, rules: rules, patience: patience)
    let task = worker.probeReuse.outcome(for: key, now: worker.loop.now, seconds: seconds) {
      worker.loop.spawnProbe { await inspection.run() }
    }
    // It has a time of its own, which may end behind this tunnel's.
    let waiter = LoopWaiter<ProbeLeg.Outcome>(loop: worker.loop)
    Task(executorPreference: worker.loop) { [reuse = worker.probeReuse] in
      let outcome = await task.value
      // A failure may be this moment's: the next tunnel tries again.
      if !ProbeReuse.isKept(outcome) { reuse.forget(key) }
      waiter.wake(outcome)
    }
    guard let outcome = await waiter.wait(until: deadline, for: client) else {
      if client.isCancelled { throw Refusal(upstream: .cancelled) }
      throw Refusal(upstream: client.hasHungUp ? .hungUp : .timedOut)
    }
    return outcome
  }

  private func reuseKey(of hello: ClientHello) -> ProbeReuse.Key {
    ProbeReuse.Key(
      address: address, authority: decision.authority, hello: hello, policyVersion: decision.policyVersion)
  }
}

/// A probe that belongs to no tunnel alone.
private struct SingleProbe: Sendable {
  let worker: Worker
  let address: SocketAddress
  let hello: ClientHello
  let rules: Rules
  /// How long the upstream may say nothing at all.
  let patience: Duration

  func run() async -> ProbeLeg.Outcome {
    let outcome = await handshake()
    switch outcome {
    case .finished: worker.shard.probe(.openssl, .success)
    case .resumed, .failed: worker.shard.probe(.openssl, .failure)
    case .stalled: break
    }
    return outcome
  }

  private func handshake() async -> ProbeLeg.Outcome {
    let deadline = worker.loop.deadline(after: .seconds(rules.configuration.limits.handshakeSeconds))
    let handshake: ProbeHandshake
    do {
      handshake = try ProbeHandshake.make(for: hello, worker.probes, rules, twin: false)
    } catch {
      return .failed(.internalError, error.description)
    }
    do {
      let socket = try await StreamSocket.connect(to: .tcp(address), loop: worker.loop, deadline: deadline)
      let leg = ProbeLeg(
        handshake, over: socket, loop: worker.loop, deadline: deadline, leavesEarly: true)
      defer { leg.abandon() }
      return await leg.outcome(patience: patience)
    } catch {
      return .failed(.probeFailed, "probe: \(error.text)")
    }
  }
}

extension EventLoop {
  fileprivate func spawnProbe(
    _ operation: @escaping @Sendable () async -> ProbeLeg.Outcome
  ) -> Task<ProbeLeg.Outcome, Never> {
    Task(executorPreference: self, operation: operation)
  }
}
