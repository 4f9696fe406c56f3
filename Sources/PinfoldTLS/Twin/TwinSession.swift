package import PinfoldModel
package import PinfoldWire

/// A twin hello's handshake, without sockets: bytes in, steps out. It goes far enough to judge the server, then leaves.
///
///     idle ── start ──▶ hello ── receive ──▶ answered ── judge ──▶ flight ──▶ done
///                       hello ──▶ retried ── secondHello ──▶ hello
///
/// Up to `answered` it does with the server's bytes what is done with those of the app's own connection, and no more: an
/// answer is read and held. What takes time by comparison, deriving keys and verifying, begins with `judge`.
///
/// For one thread at a time. Chain, name and pins are the caller's to judge. In `done` every call fails.
package final class TwinSession {
  private enum State {
    case idle
    case hello
    case retried(ServerHello)
    /// The server's answer is there and was not judged.
    case answered(Answer)
    case flight(FlightOpener)
    case done
  }

  private enum Answer {
    case tls13(ServerHello)
    case tls12(ServerFlight)
  }

  private let app: ClientHello
  private let now: Timestamp
  private let leaves: LeafMemory
  private var keys: TwinKeys
  /// The keys of the first hello.
  private let firstKeys: TwinKeys
  private let twin: TwinHello
  private var second: (request: ServerHello, twin: TwinHello)?
  private var reader: ServerFlightReader
  private var hellos: Hellos13?
  private var client: RecordProtection?
  private var hasChangeCipherSpec = false
  private var mayJudge = false
  private var state = State.idle

  /// Makes the twin of the app's first hello. `now` is for the validity of delegated credentials, `leaves` where leaves
  /// that were read before are found again.
  package init(
    of app: ClientHello, now: Timestamp, leaves: LeafMemory = LeafMemory(capacity: 1)
  ) throws(TwinFailure) {
    self.app = app
    self.now = now
    self.leaves = leaves
    keys = try TwinKeys(for: app)
    firstKeys = keys
    let material = try Self.material(for: app, keys)
    do throws(TwinImpossible) {
      twin = try TwinHello(of: app, with: material)
    } catch {
      throw .impossible(error)
    }
    reader = ServerFlightReader(answering: twin.hello)
  }

  /// Another session with the very same first hello, for another connection. The app's hello is sent again as it is; if
  /// its twin were made anew, whoever saw both twice would know which of them stays.
  package init(again other: TwinSession) {
    app = other.app
    now = other.now
    leaves = other.leaves
    keys = other.firstKeys
    firstKeys = other.firstKeys
    twin = other.twin
    reader = ServerFlightReader(answering: other.twin.hello)
  }

  private static func material(for app: ClientHello, _ keys: TwinKeys) throws(TwinFailure) -> TwinMaterial {
    do throws(TLSError) {
      return TwinMaterial(
        random: try Entropy.bytes(TwinHello.freshCount), shares: keys.shares,
        filler: try Entropy.bytes(TwinHello.fillerCount(for: app)))
    } catch {
      throw .openSSL(error)
    }
  }

  /// The twin's first hello.
  package var hello: TwinHello { twin }

  /// The bytes to send first.
  package func start() -> TwinStep {
    guard case .idle = state else { return fail(.ended) }
    state = .hello
    return .send(twin.bytes)
  }

  /// Whether the server answered and asks for no second hello: a whole ServerHello of TLS 1.3 came, or a whole flight of an
  /// older version, or what ends the handshake.
  package var isAnswered: Bool {
    switch state {
    case .answered, .flight, .done: true
    case .idle, .hello, .retried: false
    }
  }

  /// Whether an answer is held that came in an older version than TLS 1.3.
  package var isAnsweredOlder: Bool {
    if case .answered(.tls12) = state { true } else { false }
  }

  /// Judges the answer from here on, what was held of it included.
  package func judge() -> TwinStep {
    mayJudge = true
    guard case .answered(let answer) = state else { return .needMore }
    switch answer {
    case .tls13(let server): return openFlight(server)
    case .tls12(let flight): return judge(flight)
    }
  }

  /// Takes bytes of the server.
  package func receive(_ bytes: [UInt8]) -> TwinStep {
    switch state {
    case .hello: step(reader.receive(bytes.span))
    case .flight(let opener): step(opener.receive(bytes[...]))
    // A server has nothing to say before the second hello; what it says is judged then.
    case .retried, .answered:
      if case .refused(let refusal) = reader.receive(bytes.span) { fail(.refused(refusal)) } else { .needMore }
    case .idle, .done: fail(.ended)
    }
  }

  /// The server closed the connection.
  package func receiveEnd() -> TwinStep { fail(.ended) }

  /// Goes on after `retry` with the twin of the app's second hello.
  package func secondHello(_ appSecond: ClientHello) -> TwinStep {
    guard case .retried(let request) = state else { return fail(.ended) }
    let made: TwinHello
    do throws(TwinFailure) {
      keys = try TwinKeys(for: appSecond, after: keys)
      let material = try Self.material(for: appSecond, keys)
      made = try Self.twin(of: appSecond, after: app, twin, request, material)
    } catch {
      return fail(error)
    }
    second = (request, made)
    hasChangeCipherSpec = made.hello.changeCipherSpec != nil
    state = .hello
    // The server cannot have answered yet: anything but `incomplete` came before it was asked.
    guard case .incomplete = reader.secondHello(made.hello) else {
      return fail(.refused(HandshakeRefusal(.malformedHandshake, at: request.end, "bytes behind a HelloRetryRequest")))
    }
    return .send(made.bytes)
  }

  private static func twin(
    of appSecond: ClientHello, after app: ClientHello, _ twin: TwinHello, _ request: ServerHello,
    _ material: TwinMaterial
  ) throws(TwinFailure) -> TwinHello {
    do throws(TwinImpossible) {
      return try TwinHello(of: appSecond, after: app, twin: twin, retry: request, with: material)
    } catch {
      throw .impossible(error)
    }
  }

  private func step(_ event: ServerFlightReader.Event) -> TwinStep {
    switch event {
    case .incomplete: return .needMore
    case .tls13(let server): return hold(.tls13(server))
    case .helloRetryRequest(let request):
      state = .retried(request)
      return .retry(request)
    case .tls12Flight(let flight): return hold(.tls12(flight))
    case .tls12Resumed: return fail(.resumed)
    case .fatalAlert(let code, _): return fail(.alert(code))
    case .noCertificate: return fail(.noCertificate)
    case .refused(let refusal): return fail(.refused(refusal))
    }
  }

  private func hold(_ answer: Answer) -> TwinStep {
    state = .answered(answer)
    return mayJudge ? judge() : .needMore
  }

  /// Derives the handshake secrets and goes on with what already came behind the ServerHello.
  private func openFlight(_ server: ServerHello) -> TwinStep {
    let hellos = Hellos13(first: twin.hello, retry: second.map { ($0.request, $0.twin.hello) }, server: server)
    // Our pre-shared keys are made up: a server that takes one holds no secret it could be proven by.
    guard server.selectedPSK == nil else {
      return fail(.refused(HandshakeRefusal(.keyNotProven, at: server.end, "the server took a made-up key")))
    }
    guard let suite = hellos.suite, let group = server.keyShareGroup, let range = server.keyShareRange,
      let key = keys.secret(group)
    else { return fail(.refused(HandshakeRefusal(.malformedHandshake, at: server.end, "a suite or group unknown"))) }
    let opener: FlightOpener
    do throws(TLSError) {
      let shared = try key.derive(serverShare: Array(server.message[range]))
      let secrets = try KeySchedule13(suite).handshakeSecrets(
        shared: shared, transcriptHash: try hellos.transcript(suite).current())
      client = try RecordProtection(suite, secret: secrets.client, .sealing)
      opener = try FlightOpener(secret: secrets.server, hellos: hellos, now: now, leaves: leaves)
    } catch {
      guard case .unreadable = error else { return fail(.openSSL(error)) }
      return fail(.refused(HandshakeRefusal(.malformedHandshake, at: server.end, "not a key share of its group")))
    }
    self.hellos = hellos
    state = .flight(opener)
    return step(opener.receive(reader.held(server.end..<reader.receivedEnd)))
  }

  private func step(_ event: FlightOpener.Event) -> TwinStep {
    switch event {
    case .incomplete: return .needMore
    case .refused(let refusal): return fail(.refused(refusal))
    case .flight(let flight):
      guard let hellos else { return fail(.ended) }
      let certificates = flight.certificates
      var rawPublicKey: [UInt8]?
      if case .rawPublicKey(let bytes, _) = flight.identity { rawPublicKey = bytes }
      guard rawPublicKey != nil || !certificates.isEmpty else { return fail(.noCertificate) }
      let result = TwinResult(
        certificates: certificates, rawPublicKey: rawPublicKey, serverHello: hellos.server,
        alpn: flight.messages.alpn.map { Array($0) }, wasRetried: second != nil, flight: flight)
      return finish(result)
    }
  }

  /// A server that answers TLS 1.2 or older signs its key exchange in the clear. Static RSA proves nothing to a client that
  /// does not finish.
  private func judge(_ flight: ServerFlight) -> TwinStep {
    let certificates = flight.certificateBytes.map { Array($0) }
    let rawPublicKey = flight.rawPublicKey.map { Array(flight.bytes($0)) }
    let proof: KeyProof
    do throws(TLSError) {
      let key: LeafKey
      if let rawPublicKey {
        key = try LeafKey(subjectPublicKeyInfo: rawPublicKey)
      } else if let leaf = certificates.first {
        key = try leaves.leaf(leaf).key
      } else {
        return fail(.noCertificate)
      }
      proof = KeyProof.of(flight, answering: twin.hello, by: key)
    } catch {
      return fail(.refused(HandshakeRefusal(.malformedHandshake, at: flight.end, "a certificate cannot be read")))
    }
    guard proof == .proven else {
      return fail(.refused(HandshakeRefusal(.keyNotProven, at: flight.end, "the key exchange proves no key")))
    }
    return finish(
      TwinResult(
        certificates: certificates, rawPublicKey: rawPublicKey, serverHello: flight.serverHello,
        alpn: flight.serverHello.alpn.map { Array($0) }, wasRetried: false, flight: nil))
  }

  private func finish(_ result: TwinResult) -> TwinStep {
    let farewell = result.flight == nil ? Self.clearFarewell : protectedFarewell()
    state = .done
    return .finished(result, farewell: farewell)
  }

  private func fail(_ failure: TwinFailure) -> TwinStep {
    if case .done = state { return .failed(.ended, farewell: []) }
    state = .done
    return .failed(failure, farewell: protectedFarewell())
  }

  /// `user_canceled` and `close_notify` (RFC 8446 §6.1), each a warning.
  private static let alerts: [[UInt8]] = [[1, 90], [1, 0]]
  private static let clearFarewell: [UInt8] = [
    ContentType.alert, 3, 3, 0, 2, 1, 90, ContentType.alert, 3, 3, 0, 2, 1, 0,
  ]

  /// The two alerts under the client's handshake key, behind the ChangeCipherSpec of compatibility mode (RFC 8446 §D.4)
  /// unless the second hello brought it already. Empty before there is a key.
  private func protectedFarewell() -> [UInt8] {
    guard let client else { return [] }
    let isCompatible = !twin.hello.sessionIDRange.isEmpty
    let changeCipherSpec: [UInt8] = isCompatible && !hasChangeCipherSpec ? [20, 3, 3, 0, 1, 1] : []
    return Self.alerts.reduce(into: changeCipherSpec) { bytes, alert in
      bytes += client.seal(type: ContentType.alert, content: alert) ?? []
    }
  }
}
