import FoundationEssentials
import PinfoldModel
import PinfoldTLS
import PinfoldWire

/// First inputs, made of the captured handshakes beside the tests: mutation finds its way from there.
struct Seeds {
  /// The folder with one capture in each folder.
  let handshakes: String

  /// Writes all inputs below `folder`, a folder for each target.
  func write(to folder: String) throws {
    var inputs: [FuzzTarget: [String: [UInt8]]] = [
      .connectHead: Self.heads, .policy: Self.policies, .envelope: Self.envelopes, .keyLog: [:],
      .pinRecord: PinRecordTarget.records,
    ]
    for name in try FileManager.default.contentsOfDirectory(atPath: handshakes) {
      guard let client = try? Corpus.read("\(handshakes)/\(name)/client.bin"),
        let server = try? Corpus.read("\(handshakes)/\(name)/server.bin")
      else { continue }
      let log = (try? Corpus.read("\(handshakes)/\(name)/keylog.txt")) ?? []
      for (target, bytes) in Self.inputs(client, server, log) { inputs[target, default: [:]][name] = bytes }
    }
    for (target, files) in inputs {
      let own = "\(folder)/\(target.rawValue)"
      try FileManager.default.createDirectory(atPath: own, withIntermediateDirectories: true)
      for (name, bytes) in files where bytes.count <= FuzzTarget.inputLimit {
        try Data(bytes).write(to: URL(filePath: "\(own)/\(name)"))
      }
    }
  }

  private static func inputs(_ client: [UInt8], _ server: [UInt8], _ log: [UInt8]) -> [FuzzTarget: [UInt8]] {
    var result: [FuzzTarget: [UInt8]] = [:]
    guard let hellos = ServerFlightTarget.Hellos(client) else {
      result[.clientHello] = Array(client.prefix(64))
      return result
    }
    let sent = Array(client[..<(hellos.second?.end ?? hellos.first.end)])
    result[.clientHello] = sent
    if !log.isEmpty { result[.keyLog] = log }
    var reading = ServerFlightTarget.Reading(hellos)
    reading.receive(server)
    switch reading.event {
    case .tls12Flight(let flight): result[.serverFlight] = InputBytes.counted(sent) + server[..<flight.end]
    case .tls12Resumed(let resumed): result[.serverFlight] = InputBytes.counted(sent) + server[..<resumed.end]
    case .tls13(let hello):
      let clear = Array(server[..<hello.end])
      result[.serverFlight] = InputBytes.counted(sent) + clear
      result[.encryptedFlight] = encrypted(sent, clear, server, log)
    default: result[.serverFlight] = InputBytes.counted(sent) + server.prefix(2048)
    }
    return result
  }

  /// The flight in chunks that were opened with the logged secret, so that mutation reaches what encryption hides.
  private static func encrypted(
    _ client: [UInt8], _ clear: [UInt8], _ server: [UInt8], _ log: [UInt8]
  ) -> [UInt8]? {
    var reader = KeyLogReader()
    let text = String(decoding: log, as: UTF8.self)
    var log = log + [0x0a]
    guard let hellos = EncryptedFlightTarget.hellos(client, clear),
      let line = reader.receive(&log).first(where: { $0.clientRandom == hellos.client.random }),
      let opener = try? FlightOpener(secret: line.secret, hellos: hellos, now: ServerFlightTarget.now),
      case .flight(let flight) = opener.receive(server[clear.count...]),
      let secret = text.split(whereSeparator: \.isWhitespace).compactMap({ Hex.decode($0) }).first(where: {
        $0.count == line.secret.count && line.secret.matches($0)
      })
    else { return nil }
    let head =
      [UInt8(truncatingIfNeeded: secret.count)] + secret + InputBytes.counted(client) + InputBytes.counted(clear)
    // One in four stays sealed, so that the way of real bytes is tried too.
    if client.count.isMultiple(of: 4) {
      return [EncryptedFlightTarget.isSealed] + head + server[clear.count..<flight.end]
    }
    let chunks = flight.messages.messages.map { Array(flight.messages.handshake[$0.range]) }
    return [0] + head + chunks.flatMap { $0.count < 0x4000 ? InputBytes.counted($0) : [] }
  }

  private static let heads: [String: [UInt8]] = [
    "curl": "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\nUser-Agent: curl/7.88.1\r\n\r\nx",
    "six": "CONNECT [2001:db8::1]:8443 HTTP/1.0\r\nProxy-Authorization: Basic dTpw\r\nHost: proxy:3128\r\n\r\n",
    "get": "GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
    "body": "CONNECT a.b:1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n",
  ].mapValues { Array($0.utf8) }

  private static let policies: [String: [UInt8]] = [
    "rules": """
    { version: 7, issued_at: "2026-11-21T00:00:00Z", expires_at: "2027-02-21T00:00:00Z", ssl_pinning_config: {
      enabled: true, rollout_percentage: 50.5, min_app_version: "1.5.0", hosts: {
        "api.example.com": { enabled: true, pins: { primary: "sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=" } },
        "*.example.com": { pins: ["sha256/BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBA="], match: "chain", tls13: "probe" },
        "**.example.org": { pins: ["\(String(repeating: "a1", count: 32))"], mode: "report", never_disable: true },
        "192.168.1.42:8443": { pins: ["cert-sha256/CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCA="], verify_chain: false } },
      rollout_strategy: { method: "whitelist", ids: ["x"], seed: "user_id", sticky: true },
      fallback: { use_builtin_pins: true, builtin_pin_hosts: ["api.example.com"] },
      monitoring: { enabled: true, failure_threshold: 5.0, auto_disable: true, min_samples: 20, window_seconds: 300 } } }
    """,
    "small":
      #"{version:1,issued_at:"2026-11-21T00:00:00Z",expires_at:'2027-02-21T00:00:00Z',ssl_pinning_config:{hosts:{}}}"#,
    "json5": "// c\n{/* c */ 'version': +0x1F, issued_at: .5e3, expires_at: Infinity, a: \"\\u00e9\\x41\\\n\", }",
  ].mapValues { Array($0.utf8) }

  private static let envelopes: [String: [UInt8]] = {
    guard let key = EnvelopeTarget.key else { return [:] }
    let signed = EnvelopeTarget.signed(by: [key])
    let text = String(decoding: signed, as: UTF8.self)
    let escaped = Array(text.replacing("/", with: "\\/").utf8)
    let urlSafe = Array(text.replacing("+", with: "-").replacing("/", with: "_").utf8)
    return ["signed": signed, "escaped": escaped, "url-safe": urlSafe]
  }()
}
