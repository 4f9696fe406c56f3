import PinfoldModel
import PinfoldTLS
import PinfoldTelemetry
import PinfoldWire

/// Pinfold's own handshake of either kind, without sockets: bytes in, steps out.
///
/// A twin cannot be told from the app's hello by its bytes, so it is made wherever it can be made; OpenSSL's own hello
/// stands in where it cannot.
enum ProbeHandshake {
  case twin(TwinSession)
  case openSSL(ProbeSession)

  /// What to do next.
  enum Step {
    case send([UInt8])
    case needMore
    /// The upstream asked for another hello: `secondHello` goes on once the app has sent its own.
    case retry
    case finished(Seen, farewell: [UInt8])
    case failed(Reason, String, farewell: [UInt8])
    /// The upstream resumed the session of TLS 1.2 or older that app and twin offer, which shows no key.
    case resumed(String, farewell: [UInt8])
  }

  /// Whose key was proven.
  struct Seen: Sendable {
    enum Key: Sendable {
      /// Certificates in DER, leaf first, as sent.
      case certificates([[UInt8]])
      /// A SubjectPublicKeyInfo (RFC 7250).
      case rawPublicKey([UInt8])
    }

    let key: Key
    /// Whether the server chose TLS 1.3.
    let isTLS13: Bool
  }

  /// The twin of the app's hello, or OpenSSL's with the app's parameters where there is no twin.
  ///
  /// - Parameter earlier: what was made for the same hello before: its twin is sent again, as the app's hello is.
  static func make(
    for hello: ClientHello, _ client: ProbeClient, _ rules: Rules, twin: Bool, again earlier: ProbeHandshake? = nil
  ) throws(TLSError) -> ProbeHandshake {
    if twin, case .twin(let session) = earlier { return .twin(TwinSession(again: session)) }
    if twin, let session = try? TwinSession(of: hello, now: rules.now, leaves: rules.verifier.leaves) {
      return .twin(session)
    }
    guard let offer = ProbeOffer(mirroring: hello) else {
      throw .failed(call: "probe", detail: "no version of the application's offer is known")
    }
    return .openSSL(try client.session(offer))
  }

  /// The label of metrics and lines.
  var kind: ProbeKind {
    switch self {
    case .twin: .twin
    case .openSSL: .openssl
    }
  }

  /// The hello to send first.
  func start() -> Step {
    switch self {
    case .twin(let session): Self.step(session.start())
    case .openSSL(let session): Self.step(session.start())
    }
  }

  /// Takes bytes of the upstream; none stand for the end of the connection.
  func receive(_ bytes: [UInt8]) -> Step {
    switch self {
    case .twin(let session): Self.step(bytes.isEmpty ? session.receiveEnd() : session.receive(bytes))
    case .openSSL(let session): Self.step(bytes.isEmpty ? session.receiveEnd() : session.receive(bytes))
    }
  }

  /// Whether the upstream answered with more than the wish for another hello. OpenSSL's hello can be told from the app's
  /// anyway: nothing is held back for it.
  var isAnswered: Bool {
    switch self {
    case .twin(let session): session.isAnswered
    case .openSSL: true
    }
  }

  /// Whether an answer is held that came in an older version than TLS 1.3.
  var isAnsweredOlder: Bool {
    switch self {
    case .twin(let session): session.isAnsweredOlder
    case .openSSL: false
    }
  }

  /// Judges the answer from here on, which until then is read and held.
  func judge() -> Step {
    switch self {
    case .twin(let session): Self.step(session.judge())
    case .openSSL: .needMore
    }
  }

  /// Goes on after a retry with the app's second hello; without one the two connections were treated differently.
  func secondHello(_ hello: ClientHello?) -> Step {
    guard case .twin(let session) = self, let hello else {
      return .failed(.probeFailed, "the upstream asked the two connections for different hellos", farewell: [])
    }
    return Self.step(session.secondHello(hello))
  }

  private static func step(_ step: TwinStep) -> Step {
    switch step {
    case .send(let bytes): return .send(bytes)
    case .needMore: return .needMore
    case .retry: return .retry
    case .finished(let result, let farewell):
      let key = result.rawPublicKey.map { Seen.Key.rawPublicKey($0) } ?? .certificates(result.certificates)
      return .finished(Seen(key: key, isTLS13: result.flight != nil), farewell: farewell)
    case .failed(let failure, let farewell):
      let (reason, detail) = describe(failure)
      if case .resumed = failure { return .resumed(detail, farewell: farewell) }
      return .failed(reason, detail, farewell: farewell)
    }
  }

  private static func step(_ step: ProbeStep) -> Step {
    switch step {
    case .send(let bytes): .send(bytes)
    case .needMore: .needMore
    case .finished(let result, let farewell):
      .finished(
        Seen(key: .certificates(result.certificates), isTLS13: result.version == TLSVersion.tls13), farewell: farewell)
    case .failed(let detail, let farewell): .failed(.probeFailed, detail, farewell: farewell)
    }
  }

  private static func describe(_ failure: TwinFailure) -> (Reason, String) {
    switch failure {
    case .impossible: (.probeFailed, "the upstream asked the two connections for different hellos")
    case .alert(let code): (.probeFailed, "the upstream answered with alert \(code)")
    case .resumed: (.probeFailed, "the upstream resumed a session instead of showing its certificate")
    case .noCertificate: (.probeFailed, "the upstream showed no certificate")
    case .refused(let refusal) where refusal.reason == .keyNotProven: (.keyNotProven, refusal.detail)
    case .refused(let refusal): (.probeFailed, "\(refusal.detail) (offset \(refusal.offset))")
    case .ended: (.probeFailed, "connection closed in the handshake")
    case .openSSL(let error): (.probeFailed, error.description)
    }
  }
}
