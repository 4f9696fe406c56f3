import PinfoldModel
import PinfoldWire
import Testing

/// Bytes of a client, and the refusal they earn.
struct RefusalRow: CustomTestStringConvertible, Sendable {
  let testDescription: String
  let bytes: [UInt8]
  let reason: Reason
  let offset: Int

  init(_ name: String, _ bytes: [UInt8], _ reason: Reason = .malformedHandshake, at offset: Int) {
    testDescription = name
    self.bytes = bytes
    self.reason = reason
    self.offset = offset
  }
}

@Suite struct ClientHelloTests {
  private static func name(_ text: String) -> (Int, [UInt8]) {
    (0, Wire.vector(2, [0] + Wire.vector(2, Array(text.utf8))))
  }

  private static let versions13: (Int, [UInt8]) = (43, [2, 3, 4])
  private static let modes: (Int, [UInt8]) = (45, [1, 1])
  private static let psk: (Int, [UInt8]) = (
    41,
    Wire.vector(2, Wire.vector(2, [1]) + [0, 0, 0, 0]) + Wire.vector(2, Wire.vector(1, Array(repeating: 1, count: 32)))
  )

  /// A hello with these extensions. Its first extension begins at byte 54: record 5, header 4, 45 of fixed fields.
  private static func hello(_ list: [(Int, [UInt8])]?) -> [UInt8] {
    Wire.handshake(Wire.clientHello(extensions: list))
  }

  static let rows = [
    RefusalRow("HTTP", Array("GET / HTTP/1.1\r\n".utf8), .notTLS, at: 0),
    RefusalRow("a greeting of another protocol", Array("EHLO a".utf8), .notTLS, at: 0),
    RefusalRow("an SSL 2.0 hello", [0x80, 0x2e, 1, 3, 1], .notTLS, at: 0),
    RefusalRow("DTLS", [0x16, 0xfe, 0xfd, 0, 0], .notTLS, at: 1),
    RefusalRow("a record type and then nothing of TLS", [0x16, 0x41], .notTLS, at: 1),
    RefusalRow("an alert first", Wire.record(21, [1, 0]), .notTLS, at: 0),
    RefusalRow("application data first", Wire.record(23, [1, 0]), .notTLS, at: 0),
    RefusalRow("an SSL 3.0 hello", Wire.handshake(Wire.clientHello(version: 0x0300)), .notTLS, at: 9),
    RefusalRow("a version above TLS 1.2's", Wire.handshake(Wire.clientHello(version: 0x0304)), at: 9),
    RefusalRow("an empty record", [22, 3, 1, 0, 0], at: 3),
    RefusalRow("a record over 2^14", [22, 3, 1, 0x40, 1], at: 3),
    RefusalRow("a record of version 3.4", [22, 3, 4, 0, 5], at: 1),
    RefusalRow("another message than a hello", Wire.handshake(Wire.message(2, [0])), at: 5),
    RefusalRow("a hello over 64 KiB", Wire.handshake([1, 1, 0, 1, 3, 3]), .helloTooLarge, at: 6),
    RefusalRow("bytes behind the hello in its record", Wire.handshake(Wire.clientHello() + [1]), at: 54),
    RefusalRow("ChangeCipherSpec before the hello", Wire.record(22, [1]) + Wire.record(20, [1]), at: 6),
    RefusalRow("an alert inside the hello", Wire.record(22, [1, 0]) + Wire.record(21, [2, 0]), at: 7),
    RefusalRow("application data inside the hello", Wire.record(22, [1, 0]) + Wire.record(23, [2, 0]), at: 7),
    RefusalRow("bytes behind the extensions", Wire.handshake(Wire.clientHello(trailing: [0])), at: 54),
    RefusalRow(
      "a session id of 33 bytes", Wire.handshake(Wire.clientHello(sessionID: Array(repeating: 1, count: 33))), at: 43),
    RefusalRow("no cipher suite", Wire.handshake(Wire.clientHello(suites: [])), at: 44),
    RefusalRow("no null compression", Wire.handshake(Wire.clientHello(compression: [1])), at: 52),
    RefusalRow("no compression list", Wire.handshake(Wire.clientHello(compression: [])), at: 50),
    RefusalRow("an extension twice", hello([(23, []), (35, []), (23, [])]), at: 62),
    RefusalRow("an unknown extension twice", hello([(0xabcd, [1]), (0xabcd, [1])]), at: 59),
    RefusalRow("257 extensions", hello((0...256).map { (1000 + $0, []) }), at: 1078),
    RefusalRow("an empty list of names", hello([(0, [0, 0])]), at: 58),
    RefusalRow("an empty server_name", hello([(0, [])]), at: 58),
    RefusalRow("an empty name", hello([name("")]), at: 61),
    RefusalRow("a name of another type", hello([(0, Wire.vector(2, [1, 0, 1, 0x61]))]), at: 60),
    RefusalRow("two names", hello([(0, Wire.vector(2, [0, 0, 1, 0x61, 0, 0, 1, 0x62]))]), at: 64),
    RefusalRow("bytes behind the list of names", hello([(0, [0, 4, 0, 0, 1, 0x61, 0])]), at: 64),
    RefusalRow("an odd list of groups", hello([(10, [0, 3, 0, 23, 0])]), at: 60),
    RefusalRow("an empty list of schemes", hello([(13, [0, 0])]), at: 58),
    RefusalRow("a list of schemes longer than its extension", hello([(13, [0, 4, 4, 3])]), at: 60),
    RefusalRow("an empty protocol name", hello([(16, [0, 3, 0, 1, 0x61])]), at: 60),
    RefusalRow("two key shares of one group", hello([(51, Wire.vector(2, [0, 29, 0, 1, 1, 0, 29, 0, 1, 1]))]), at: 65),
    RefusalRow("an empty key share", hello([(51, Wire.vector(2, [0, 29, 0, 0]))]), at: 62),
    RefusalRow("extended_master_secret with content", hello([(23, [0])]), at: 58),
    RefusalRow("pre_shared_key before the end", hello([versions13, modes, psk, (23, [])]), at: 71),
    RefusalRow("pre_shared_key without modes", hello([versions13, psk]), at: 65),
    RefusalRow(
      "more identities than binders",
      hello([
        versions13, modes,
        (
          41,
          Wire.vector(2, [0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0])
            + Wire.vector(2, Wire.vector(1, Array(repeating: 1, count: 32)))
        ),
      ]), at: 122),
    RefusalRow("early_data without a key", hello([versions13, (42, [])]), at: 65),
    RefusalRow("an inner ECH in the clear", hello([(0xfe0d, [1])]), at: 58),
    RefusalRow("TLS 1.4 alone", hello([(43, [2, 3, 5])]), at: 9),
    RefusalRow(
      "TLS 1.3 with compression", Wire.handshake(Wire.clientHello(compression: [0, 1], extensions: [versions13])),
      at: 44),
    RefusalRow(
      "a flood of one-byte records",
      ([1, 0, 0xff, 0] + Array(repeating: 0, count: 20000)).flatMap { Wire.handshake([$0]) },
      .helloTooLarge, at: WireLimits.helloRecords),
  ]

  @Test(arguments: rows)
  func `a hello that can be read in two ways is refused at its place`(_ row: RefusalRow) throws {
    var reader = ClientHelloReader()
    guard case .refused(let refusal) = reader.receive(row.bytes.span) else { throw Unexpected() }
    #expect(refusal.reason == row.reason, "\(refusal)")
    #expect(refusal.offset == row.offset, "\(refusal)")
    var slow = ClientHelloReader()
    for byte in row.bytes {
      guard case .refused(let other) = slow.receive([byte].span) else { continue }
      #expect(other == refusal)
      break
    }
    guard case .refused = slow.receive([UInt8]().span) else { throw Unexpected() }
  }

  @Test func `a hello may come without extensions`() throws {
    var reader = ClientHelloReader()
    let bytes = Wire.handshake(Wire.clientHello(version: 0x0301, extensions: nil))
    guard case .hello(let hello) = reader.receive(bytes.span) else { throw Unexpected() }
    #expect(hello.serverName == .missing)
    #expect(hello.highestVersion == TLSVersion.tls10)
    #expect(!hello.offers(version: TLSVersion.tls11))
    #expect(!hello.offersTLS13)
    #expect(hello.alertRecordVersion == 0x0301)
  }

  @Test(arguments: ["a b", "ä.test", "a..test", "-a.test", "a\u{0}.test", "[::1]", "127.1"])
  func `a server name that is no host name is no host's`(_ text: String) throws {
    var reader = ClientHelloReader()
    guard case .hello(let hello) = reader.receive(Self.hello([Self.name(text)]).span) else { throw Unexpected() }
    #expect(hello.serverName == .unreadable)
    #expect(!hello.serverName.names(try #require(HostName("a.test"))))
  }

  @Test(arguments: ["A.Test", "a.test.", "a.test"])
  func `spellings of a host are the same host`(_ text: String) throws {
    var reader = ClientHelloReader()
    guard case .hello(let hello) = reader.receive(Self.hello([Self.name(text)]).span) else { throw Unexpected() }
    #expect(hello.serverName.names(try #require(HostName("a.test"))))
    #expect(!hello.serverName.names(try #require(HostName("b.test"))))
  }

  /// The name in the hello, the host of the CONNECT line, whether a rule lets it be missing, and what comes of it.
  static let names: [(String?, String, Bool, Reason?)] = [
    ("a.test", "a.test", false, nil),
    ("b.test", "a.test", false, .sniMismatch),
    ("b.test", "a.test", true, .sniMismatch),
    ("a.test.evil.test", "a.test", false, .sniMismatch),
    ("sub.a.test", "a.test", false, .sniMismatch),
    ("a test", "a.test", true, .sniMismatch),
    (nil, "a.test", false, .sniMissing),
    (nil, "a.test", true, nil),
    (nil, "192.0.2.1", false, nil),
    (nil, "2001:db8::1", false, nil),
    ("192.0.2.1", "192.0.2.1", false, nil),
    ("192.0.2.2", "192.0.2.1", false, .sniMismatch),
    ("a.test", "192.0.2.1", false, .sniMismatch),
  ]

  @Test(arguments: names.indices)
  func `the name in the hello has to be the host of the tunnel`(_ index: Int) throws {
    let row = Self.names[index]
    var reader = ClientHelloReader()
    let bytes = Self.hello(row.0.map { [Self.name($0)] } ?? [])
    guard case .hello(let hello) = reader.receive(bytes.span) else { throw Unexpected() }
    let host = try #require(HostName(row.1))
    #expect(hello.refusal(for: host, mayMissName: row.2)?.reason == row.3, "\(row)")
  }

  @Test func `supported_versions decides what is offered, not the old field`() throws {
    var reader = ClientHelloReader()
    guard case .hello(let hello) = reader.receive(Self.hello([Self.versions13]).span) else { throw Unexpected() }
    #expect(hello.offersTLS13)
    #expect(!hello.offers(version: TLSVersion.tls12))
    #expect(hello.highestVersion == TLSVersion.tls13)
    #expect(hello.alertRecordVersion == TLSVersion.tls12)
  }

  @Test func `what comes behind a hello is kept, and too much of it is refused`() throws {
    var reader = ClientHelloReader()
    let bytes = Self.hello([Self.versions13])
    guard case .hello = reader.receive((bytes + [23, 3, 3]).span) else { throw Unexpected() }
    #expect(Array(reader.surplus) == [23, 3, 3])
    guard case .hello = reader.receive([1, 2].span) else { throw Unexpected() }
    #expect(Array(reader.surplus) == [23, 3, 3, 1, 2])
    let flood = [UInt8](repeating: 0, count: WireLimits.helloRecords)
    guard case .refused(let refusal) = reader.receive(flood.span) else { throw Unexpected() }
    #expect(refusal.reason == .helloTooLarge)
  }
}
