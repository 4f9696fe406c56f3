import PinfoldModel
import PinfoldWire
import Testing

/// Every extension in every message of a server, held against the table of RFC 8446 §4.2 as it is written down here, and
/// every form that is not the one its document gives. Would catch a list of the forbidden that forgot one.
@Suite struct ServerExtensionTests {
  /// A message of a server that holds extensions.
  enum Message: String, CaseIterable, Sendable {
    case serverHello12, encryptedExtensions, certificate, certificateRequest
  }

  /// An extension: what the client says in it, and what a server says, by the messages where it may.
  struct Row: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let type: Int
    let asked: [UInt8]
    let contents: [Message: [UInt8]]

    init(_ name: String, _ type: Int, asked: [UInt8] = [], contents: [Message: [UInt8]]) {
      (testDescription, self.type, self.asked, self.contents) = (name, type, asked, contents)
    }

    /// The same content wherever it may stand.
    init(_ name: String, _ type: Int, asked: [UInt8] = [], says content: [UInt8] = [], _ places: Message...) {
      self.init(name, type, asked: asked, contents: Dictionary(uniqueKeysWithValues: places.map { ($0, content) }))
    }
  }

  private static let list: [UInt8] = [0, 2, 4, 3]
  private static let timestamps: [UInt8] = [0, 3, 0, 1, 9]
  private static let status: [UInt8] = [1, 0, 0, 1, 9]

  static let rows = [
    Row("server_name", 0, asked: [0, 4, 0, 0, 1, 0x61], says: [], .serverHello12, .encryptedExtensions),
    Row("max_fragment_length", 1, asked: [2], says: [2], .serverHello12, .encryptedExtensions),
    Row("client_certificate_url", 2, .serverHello12),
    Row("trusted_ca_keys", 3, .serverHello12),
    Row("truncated_hmac", 4, .serverHello12),
    Row("user_mapping", 6, .serverHello12),
    Row(
      "supported_groups", 10, asked: [0, 6, 0, 29, 0x11, 0xec, 1, 0], says: [0, 2, 0, 29], .serverHello12,
      .encryptedExtensions),
    Row("ec_point_formats", 11, asked: [1, 0], says: [1, 0], .serverHello12),
    Row("srp", 12, .serverHello12),
    Row("signature_algorithms", 13, asked: list, says: list, .certificateRequest),
    Row("use_srtp", 14, asked: [0, 2, 0, 1, 0], says: [0, 2, 0, 1, 0], .serverHello12, .encryptedExtensions),
    Row("heartbeat", 15, asked: [1], says: [1], .serverHello12, .encryptedExtensions),
    Row("ALPN", 16, asked: [0, 3, 2, 0x68, 0x32], says: [0, 3, 2, 0x68, 0x32], .serverHello12, .encryptedExtensions),
    Row("status_request_v2", 17, .serverHello12),
    Row("client_certificate_type", 19, asked: [1, 0], says: [0], .serverHello12, .encryptedExtensions),
    Row("server_certificate_type", 20, asked: [1, 0], says: [0], .serverHello12, .encryptedExtensions),
    Row("padding", 21),
    Row("encrypt_then_mac", 22, .serverHello12),
    Row("extended_master_secret", 23, .serverHello12),
    Row("token_binding", 24, .serverHello12),
    Row("cached_info", 25, .serverHello12),
    Row("compress_certificate", 27, asked: [2, 0, 1], says: [2, 0, 1], .certificateRequest),
    Row("record_size_limit", 28, asked: [64, 1], says: [64, 1], .serverHello12, .encryptedExtensions),
    Row("pwd_protect", 29, .serverHello12),
    Row("session_ticket", 35, .serverHello12),
    Row("supported_versions", 43, asked: [8, 3, 4, 3, 3, 3, 2, 3, 1], says: [3, 3]),
    Row("cookie", 44, asked: [0, 1, 9], says: [0, 1, 9]),
    Row("psk_key_exchange_modes", 45, asked: [1, 1], says: [1, 1]),
    Row("certificate_authorities", 47, asked: timestamps, says: timestamps, .certificateRequest),
    Row("oid_filters", 48, says: [0, 0], .certificateRequest),
    Row("post_handshake_auth", 49),
    Row("signature_algorithms_cert", 50, asked: list, says: list, .certificateRequest),
    Row("key_share", 51, asked: [0, 5, 0, 29, 0, 1, 9], says: [0, 29, 0, 1, 9]),
    Row("transparency_info", 52, .serverHello12, .certificate, .certificateRequest),
    Row("connection_id", 54, .serverHello12),
    Row("quic_transport_parameters", 57, .encryptedExtensions),
    Row("ticket_request", 58, .encryptedExtensions),
    Row("dnssec_chain", 59, .serverHello12, .certificate),
    Row("next_protocol_negotiation", 13172, .serverHello12),
    Row("encrypted_client_hello", 0xfe0d, asked: [0], says: [0, 4, 0xfe, 0x0d, 0, 0], .encryptedExtensions),
    Row("renegotiation_info", 0xff01, asked: [0], says: [0], .serverHello12),
    Row("GREASE", 0x1a1a, .certificateRequest),
    Row("a type of tomorrow", 0xabcd, .serverHello12, .encryptedExtensions, .certificate, .certificateRequest),
    Row(
      "status_request", 5, asked: [1, 0, 0, 0, 0],
      contents: [.serverHello12: [], .certificate: status, .certificateRequest: [1, 0, 0, 0, 0]]),
    Row(
      "signed_certificate_timestamp", 18,
      contents: [.serverHello12: timestamps, .certificate: timestamps, .certificateRequest: []]),
    Row("delegated_credential", 34, asked: list, contents: [.certificate: [9], .certificateRequest: list]),
  ]

  private static func client(without missing: Int? = nil) throws -> ClientHello {
    let asked = rows.filter { $0.type != missing }.map { ($0.type, $0.asked) }
    var reader = ClientHelloReader()
    let hello = Wire.clientHello(suites: [0x1301, 0xc02b, 0xc023, 0xc009, 0x009c], extensions: asked)
    guard case .hello(let hello) = reader.receive(Wire.handshake(hello).span) else { throw Unexpected() }
    return hello
  }

  /// What refuses the extension in this message; nil when it is taken.
  private static func refusal(
    _ type: Int, _ content: [UInt8], in message: Message, without missing: Int? = nil
  ) throws -> HandshakeRefusal? {
    let client = try client(without: missing)
    var clear = ServerFlightReader(answering: client)
    if message == .serverHello12 {
      let hello = Wire.serverHello(suite: 0xc02b, extensions: [(type, content)])
      guard case .refused(let refusal) = clear.receive(Wire.handshake(hello).span) else { return nil }
      return refusal
    }
    let share: (Int, [UInt8]) = (51, [0, 29, 0, 1, 9])
    let bytes = Wire.serverHello(suite: 0x1301, extensions: [(43, [3, 4]), share])
    guard case .tls13(let hello) = clear.receive(Wire.handshake(bytes).span) else { throw Unexpected() }
    func extensions(_ place: Message) -> [(Int, [UInt8])] { message == place ? [(type, content)] : [] }
    let algorithms: [(Int, [UInt8])] = type == 13 && message == .certificateRequest ? [] : [(13, list)]
    let entry = Wire.vector(3, [1, 2]) + Wire.extensions(extensions(.certificate))
    let messages = [
      Wire.message(8, Wire.extensions(extensions(.encryptedExtensions))),
      Wire.message(13, [0] + Wire.extensions(algorithms + extensions(.certificateRequest))),
      Wire.message(11, [0] + Wire.vector(3, entry)), Wire.message(15, [4, 3] + Wire.vector(2, [1])),
      Wire.message(20, Array(repeating: 5, count: 32)),
    ]
    let flight = messages.flatMap { $0 }
    var reader = EncryptedFlightReader(answering: client, with: hello)
    switch reader.receive(flight.span) {
    case .flight: return nil
    case .refused(let refusal): return refusal
    case .incomplete: throw Unexpected()
    }
  }

  @Test(arguments: rows) func `an extension stands where it may and nowhere else`(_ row: Row) throws {
    for message in Message.allCases {
      guard let content = row.contents[message] else {
        let refusal = try Self.refusal(row.type, row.contents.first?.value ?? [], in: message)
        #expect(refusal?.reason == .malformedHandshake, "\(message)")
        // A ServerHello is told to be one of TLS 1.2 by supported_versions, before its extensions are looked at.
        #expect(row.type == 43 || refusal?.detail == "an extension that may not stand in this message", "\(message)")
        continue
      }
      #expect(try Self.refusal(row.type, content, in: message) == nil, "\(message)")
      // What nobody asked for may stand only where the server asks itself.
      let unasked = try Self.refusal(row.type, content, in: message, without: row.type)
      #expect((unasked == nil) == (message == .certificateRequest), "\(message)")
    }
  }

  static let forms: [(name: String, type: Int, content: [UInt8], message: Message)] = [
    ("server_name with content", 0, [0], .encryptedExtensions),
    ("another max_fragment_length", 1, [3], .encryptedExtensions),
    ("another max_fragment_length in the clear", 1, [1], .serverHello12),
    ("max_fragment_length of two bytes", 1, [2, 2], .serverHello12),
    ("half a group", 10, [0, 3, 0, 29, 0], .encryptedExtensions),
    ("groups that lie about their length", 10, [0, 4, 0, 29], .encryptedExtensions),
    ("bytes behind the groups", 10, [0, 2, 0, 29, 0], .encryptedExtensions),
    ("point formats without the uncompressed one", 11, [1, 1], .serverHello12),
    ("no point format", 11, [0], .serverHello12),
    ("bytes behind the point formats", 11, [1, 0, 0], .serverHello12),
    ("an unknown heartbeat mode", 15, [3], .encryptedExtensions),
    ("a client certificate type that was not offered", 19, [2], .encryptedExtensions),
    ("the same in the clear", 19, [2], .serverHello12),
    ("a record size limit of 63", 28, [0, 63], .encryptedExtensions),
    ("a record size limit of one byte", 28, [64], .serverHello12),
    ("a ticket in the ServerHello", 35, [0], .serverHello12),
    ("encrypt_then_mac with content", 22, [0], .serverHello12),
    ("a status in the ServerHello", 5, [1], .serverHello12),
    ("a status without an answer", 5, [1, 0, 0, 0], .certificate),
    ("a status of another type", 5, [2, 0, 0, 1, 9], .certificate),
    ("a status that lies about its length", 5, [1, 0, 0, 2, 9], .certificate),
    ("bytes behind the status", 5, [1, 0, 0, 1, 9, 0], .certificate),
    ("no timestamp", 18, [0, 0], .certificate),
    ("an empty timestamp", 18, [0, 2, 0, 0], .certificate),
    ("a timestamp longer than the list", 18, [0, 3, 0, 2, 9], .serverHello12),
    ("timestamps asked for with content", 18, [0], .certificateRequest),
    ("no scheme", 13, [0, 0], .certificateRequest),
    ("half a scheme", 13, [0, 3, 4, 3, 4], .certificateRequest),
    ("bytes behind the ways to compress", 27, [2, 0, 1, 0], .certificateRequest),
    ("an empty authority", 47, [0, 2, 0, 0], .certificateRequest),
    ("configurations that lie about their length", 0xfe0d, [0, 4, 0xfe, 0x0d, 0, 1], .encryptedExtensions),
  ]

  @Test(arguments: forms.indices) func `another form is refused inside the extension`(_ index: Int) throws {
    let row = Self.forms[index]
    let refusal = try Self.refusal(row.type, row.content, in: row.message)
    #expect(refusal?.reason == .malformedHandshake, "\(row.name)")
    #expect(refusal?.detail != "an extension that may not stand in this message", "\(row.name)")
  }

  static let suites: [(suite: Int, oldest: Int)] = [
    (0xc009, 0x0301), (0xc023, 0x0303), (0xc02b, 0x0303), (0x009c, 0x0303),
  ]

  @Test(arguments: suites.indices)
  func `a suite of TLS 1.2 works in nothing older`(_ index: Int) throws {
    let (suite, oldest) = Self.suites[index]
    for version in 0x0301...0x0303 {
      var reader = ServerFlightReader(answering: try Self.client())
      let hello = Wire.handshake(Wire.serverHello(version: version, suite: suite, extensions: []), version: version)
      let event = reader.receive(hello.span)
      if version >= oldest {
        guard case .incomplete = event else { throw Unexpected() }
      } else {
        guard case .refused(let refusal) = event else { throw Unexpected() }
        #expect(refusal.reason == .malformedHandshake)
      }
    }
  }

  @Test(arguments: [[0x11, 0xec], [1, 0]] as [[UInt8]])
  func `a group that is no curve of TLS 1.2 signs nothing`(_ group: [UInt8]) throws {
    var reader = ServerFlightReader(answering: try Self.client())
    let exchange = [3] + group + Wire.vector(1, [1]) + [4, 3] + Wire.vector(2, [1])
    let flight = [
      Wire.serverHello(suite: 0xc02b, extensions: []), Wire.message(11, Wire.vector(3, Wire.vector(3, [1, 2]))),
      Wire.message(12, exchange), Wire.message(14, []),
    ]
    guard case .refused(let refusal) = reader.receive(Wire.handshake(flight.flatMap { $0 }).span) else {
      throw Unexpected()
    }
    #expect(refusal.detail == "the ServerKeyExchange has a group that is no curve of TLS 1.2")
  }
}
