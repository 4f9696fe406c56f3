import PinfoldLoop
import PinfoldModel
import PinfoldPolicy
import PinfoldTLS
import PinfoldWire

extension Inspection {
  /// How long a probe's verdict waits for a line that would be better.
  private static let patienceForLine = Duration.milliseconds(50)
  /// Times that secrets are asked for. An app logs one; whoever floods the pipe with forged ones shall not keep a tunnel
  /// beyond its time.
  private static let lotLimit = 4

  /// What the key log told of a handshake.
  enum KeyLogFinding {
    /// No line came in time.
    case silent
    /// The flight opened and everything in it verified.
    case evidence(Evidence)
  }

  /// Judges a TLS 1.3 flight by its own bytes, with the secret the app logs as soon as it has read the ServerHello.
  ///
  /// Only the ServerHello is released for that; certificate, CertificateVerify and Finished stay held until they were
  /// decrypted and verified. A secret that opens nothing proves nothing: `key_not_proven`. A flight that rests on a
  /// pre-shared key shows no key of the server, so no line could tell one: not to be asked for.
  mutating func judgeByKeyLog(
    _ hellos: Hellos13, _ reader: inout ServerFlightReader, _ keyLog: KeyLog, beside leg: ProbeLeg?
  ) async throws(Refusal) -> KeyLogFinding {
    do {
      try await client.send(Array(reader.held(releasedDown..<hellos.server.end)), deadline: deadline)
    } catch {
      throw Refusal(client: error)
    }
    releasedDown = hellos.server.end
    let patient = worker.loop.deadline(after: Self.patienceForLine)
    let limit = decision.tls13 == .keyLog ? deadline : min(deadline, patient)
    var hasFailed = false
    for _ in 0..<Self.lotLimit {
      let secrets = try await secrets(for: hellos.first.random, in: keyLog, &reader, beside: leg, until: limit)
      guard !secrets.isEmpty else { break }
      if let flight = try await openFlight(hellos, &reader, secrets) { return try judge(flight) }
      hasFailed = true
    }
    if hasFailed { throw Refusal(.keyNotProven, "no logged secret opens the flight", method: .keyLog) }
    if client.isCancelled { throw Refusal(upstream: .cancelled) }
    if client.hasHungUp { throw Refusal(upstream: .hungUp) }
    return .silent
  }

  /// What the app logged for its handshake, waiting until `limit` for a first line. Where a probe runs beside it the app's
  /// connection is read meanwhile, as the probe's is: see `readOn`.
  private func secrets(
    for clientRandom: [UInt8], in keyLog: KeyLog, _ reader: inout ServerFlightReader, beside leg: ProbeLeg?,
    until limit: Deadline
  ) async throws(Refusal) -> [SecretBytes] {
    guard let leg else {
      return await keyLog.secrets(for: clientRandom, of: client, on: worker.loop, until: limit)
    }
    let wake: @Sendable () -> Void = { [loop = worker.loop] in loop.execute { leg.interruptReader() } }
    defer { keyLog.forget(clientRandom) }
    while true {
      let found = keyLog.secrets(for: clientRandom, orCall: wake)
      guard found.isEmpty, worker.loop.now < limit else { return found }
      try await readMore(&reader, beside: leg, until: limit)
    }
  }

  /// The flight, opened by one of the secrets; `nil` when none of them opens its first record.
  private func openFlight(
    _ hellos: Hellos13, _ reader: inout ServerFlightReader, _ secrets: [SecretBytes]
  ) async throws(Refusal) -> Flight13? {
    var openers: [FlightOpener] = []
    for secret in secrets {
      // A secret of a length that is not the suite's is no secret of this handshake.
      if let opener = try? FlightOpener(
        secret: secret, hellos: hellos, now: rules.now, leaves: rules.verifier.leaves)
      {
        openers.append(opener)
      }
    }
    var taken = hellos.server.end
    while !openers.isEmpty {
      let bytes = reader.held(taken..<reader.receivedEnd)
      taken = reader.receivedEnd
      var refusal: HandshakeRefusal?
      openers.removeAll { opener in
        guard case .refused(let found) = opener.receive(bytes) else { return false }
        if found.reason != .keyNotProven || opener.hasOpened { refusal = found }
        return true
      }
      if let refusal { throw Refusal(refusal, from: "upstream", method: .keyLog) }
      for opener in openers {
        if case .flight(let flight) = opener.receive([]) { return flight }
      }
      guard !openers.isEmpty else { return nil }
      if case .refused(let refusal) = try await receiveFlight(&reader) { throw Refusal(refusal, from: "upstream") }
    }
    return nil
  }

  private func judge(_ flight: Flight13) throws(Refusal) -> KeyLogFinding {
    do throws(TLSError) {
      switch flight.identity {
      case .preSharedKey: break
      case .rawPublicKey(let key, _):
        return .evidence(Evidence(try rules.verifier.judge(rawPublicKey: key, now: rules.now), keyProven: true))
      case .certificates(let certificates, _):
        let judgement = try rules.verifier.judge(
          certificates: certificates, host: decision.authority.host, now: rules.now)
        return .evidence(Evidence(judgement, keyProven: true))
      }
    } catch {
      throw Refusal(error, method: .keyLog)
    }
    // The reader takes no flight like that where the ServerHello selected no key.
    throw Refusal(.malformedHandshake, "neither a certificate nor a pre-shared key", method: .keyLog)
  }
}
