/// What is fed with bytes nobody chose. Each target is a pure function: it returns, or throws a promise that was broken.
enum FuzzTarget: String, CaseIterable, Sendable {
  /// The head of a CONNECT request.
  case connectHead = "connect-head"
  /// A ClientHello, a second one behind it, and their twins.
  case clientHello = "client-hello"
  /// A hello, and the server's answer to it.
  case serverFlight = "server-flight"
  /// Hellos of TLS 1.3, and the flight behind them, sealed or about to be.
  case encryptedFlight = "encrypted-flight"
  /// What applications write into the key-log pipe.
  case keyLog = "key-log"
  /// A policy document.
  case policy = "policy"
  /// A DSSE envelope.
  case envelope = "envelope"
  /// What a pin service answers.
  case pinRecord = "pin-record"

  /// Bytes one input may have. Longer ones are cut: what limits do is tested elsewhere, and short inputs find more.
  static let inputLimit = 16 * 1024

  /// Feeds the target.
  func run(_ bytes: [UInt8]) throws(BrokenPromise) {
    let bytes = Array(bytes.prefix(Self.inputLimit))
    switch self {
    case .connectHead: try ConnectHeadTarget.run(bytes)
    case .clientHello: try ClientHelloTarget.run(bytes)
    case .serverFlight: try ServerFlightTarget.run(bytes)
    case .encryptedFlight: try EncryptedFlightTarget.run(bytes)
    case .keyLog: try KeyLogTarget.run(bytes)
    case .policy: try PolicyTarget.run(bytes)
    case .envelope: try EnvelopeTarget.run(bytes)
    case .pinRecord: try PinRecordTarget.run(bytes)
    }
  }
}
