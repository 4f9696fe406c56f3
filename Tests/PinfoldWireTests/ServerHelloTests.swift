import PinfoldModel
import PinfoldWire
import Testing

/// A ServerHello made by hand, and the refusal it earns.
@Suite struct ServerHelloTests {
  /// curl's hello: TLS 1.0–1.3, ALPN h2 and http/1.1, a session id of 32 bytes, X25519 share, RFC 5746's suite.
  private static let client = try? Capture("tls13-curl-nginx").hello()
  private static let sessionID = client.map { Array($0.sessionID) } ?? []
  private static let share: (Int, [UInt8]) = (51, [0, 29] + Wire.vector(2, Array(repeating: 1, count: 32)))
  private static let version13: (Int, [UInt8]) = (43, [3, 4])
  private static let retryRandom: [UInt8] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
  ]

  private static func hello13(
    random: [UInt8] = Array(repeating: 7, count: 32), sessionID: [UInt8] = Self.sessionID, suite: Int = 0x1301,
    _ list: [(Int, [UInt8])], trailing: [UInt8] = []
  ) -> [UInt8] {
    Wire.handshake(
      Wire.serverHello(random: random, sessionID: sessionID, suite: suite, extensions: list) + trailing)
  }

  private static func hello12(
    version: Int = 0x0303, random: [UInt8] = Array(repeating: 7, count: 32), suite: Int = 0xc02c,
    compression: UInt8 = 0, _ list: [(Int, [UInt8])]?, trailing: [UInt8] = []
  ) -> [UInt8] {
    Wire.handshake(
      Wire.serverHello(
        version: version, random: random, suite: suite, compression: compression, extensions: list,
        trailing: trailing), version: version)
  }

  private static func sentinel(_ last: UInt8) -> [UInt8] {
    Array(repeating: 7, count: 24) + Array("DOWNGRD".utf8) + [last]
  }

  // The suite stands at 44, behind the 32 bytes of a session id at 76; the first extension at 49 or 81.
  static let rows = [
    RefusalRow("HTTP", Array("HTTP/1.1 400".utf8), .notTLS, at: 0),
    RefusalRow("SSH", Array("SSH-2.0-".utf8), .notTLS, at: 0),
    RefusalRow("ChangeCipherSpec first", Wire.record(20, [1]), .notTLS, at: 0),
    RefusalRow("SSL 3.0", hello12(version: 0x0300, nil), .notTLS, at: 9),
    RefusalRow("a version above TLS 1.2's in the old field", hello12(version: 0x0303, nil).replacing(10, 4), at: 9),
    RefusalRow("another message than a ServerHello", Wire.handshake(Wire.message(11, [0, 0, 0])), at: 5),
    RefusalRow("a suite that was not offered", hello12(suite: 0xc0ae, nil), at: 44),
    RefusalRow("a TLS 1.3 suite in TLS 1.2", hello12(suite: 0x1301, nil), at: 44),
    RefusalRow("a TLS 1.2 suite in TLS 1.3", hello13(suite: 0xc02c, [version13, share]), at: 76),
    RefusalRow("the signalling suite chosen", hello12(suite: 0x00ff, nil), .keyNotProven, at: 5),
    RefusalRow("compression", hello12(compression: 1, nil), at: 46),
    RefusalRow("bytes behind the extensions", hello12([], trailing: [0]), at: 49),
    RefusalRow("an extension twice", hello12([(23, []), (23, [])]), at: 53),
    RefusalRow("an extension that was not asked for", hello12([(35, [])]), at: 49),
    RefusalRow("an unknown extension", hello12([(0xabcd, [])]), at: 49),
    RefusalRow("signature_algorithms from the server", hello12([(13, [0, 2, 4, 3])]), at: 49),
    RefusalRow("a key share in TLS 1.2", hello12([share]), at: 49),
    RefusalRow("server_name with content", hello12([(0, [0])]), at: 53),
    RefusalRow("extended_master_secret with content", hello12([(23, [0])]), at: 53),
    RefusalRow("renegotiation_info that is not empty", hello12([(0xff01, [1, 0])]), at: 53),
    RefusalRow("a protocol that was not offered", hello12([(16, [0, 3, 2, 0x68, 0x33])]), at: 56),
    RefusalRow("two protocols", hello12([(16, [0, 6, 2, 0x68, 0x32, 2, 0x68, 0x32])]), at: 58),
    RefusalRow("supported_versions that says TLS 1.2", hello12([(43, [3, 3])]), at: 53),
    RefusalRow("a sentinel of TLS 1.2", hello12(random: sentinel(1), nil), at: 35),
    RefusalRow("a sentinel of TLS 1.1", hello12(version: 0x0302, random: sentinel(0), suite: 0xc00a, nil), at: 35),
    RefusalRow("a HelloRetryRequest's random in TLS 1.2", hello12(random: retryRandom, nil), at: 9),
    RefusalRow("another session id", hello13(sessionID: [1], [version13, share]), at: 43),
    RefusalRow("neither share nor key", hello13([version13]), at: 5),
    RefusalRow("a share of another group", hello13([version13, (51, [0, 23, 0, 1, 1])]), at: 5),
    RefusalRow("an empty share", hello13([version13, (51, [0, 29, 0, 0])]), at: 93),
    RefusalRow("a pre-shared key nobody offered", hello13([version13, share, (41, [0, 0])]), at: 127),
    RefusalRow("ALPN in the clear", hello13([version13, share, (16, [0, 3, 2, 0x68, 0x32])]), at: 127),
    RefusalRow("a cookie outside a retry", hello13([version13, share, (44, [0, 1, 1])]), at: 127),
    RefusalRow("bytes behind a TLS 1.3 ServerHello", hello13([version13, share], trailing: [8]), at: 127),
    RefusalRow("a retry that asks for nothing", hello13(random: retryRandom, [version13]), at: 5),
    RefusalRow("a retry for the group there is", hello13(random: retryRandom, [version13, (51, [0, 29])]), at: 5),
    RefusalRow("a retry for a group unknown", hello13(random: retryRandom, [version13, (51, [0, 1])]), at: 5),
    RefusalRow("a retry with an empty cookie", hello13(random: retryRandom, [version13, (44, [0, 0])]), at: 91),
    RefusalRow("a closing alert", Wire.record(21, [1, 0]), .upstreamUnreachable, at: 0),
    RefusalRow("another warning", Wire.record(21, [1, 90]), at: 5),
    RefusalRow("the warning twice", Wire.record(21, [1, 112]) + Wire.record(21, [1, 112]), at: 12),
    RefusalRow("two alerts in a record", Wire.record(21, [1, 112, 1, 112]), at: 3),
    RefusalRow("half an alert", Wire.record(21, [2]), at: 3),
    RefusalRow("an alert inside the ServerHello", Wire.record(22, [2]) + Wire.record(21, [1, 112]), at: 6),
    RefusalRow("ChangeCipherSpec before the ServerHello", Wire.record(21, [1, 112]) + Wire.record(20, [1]), at: 7),
    RefusalRow("a message over 128 KiB", Wire.handshake([2, 2, 0, 1]), at: 6),
    RefusalRow("an empty record", [22, 3, 3, 0, 0], at: 3),
    RefusalRow("a record over 2^14", [22, 3, 3, 0x40, 1], at: 3),
    RefusalRow("a record of version 4", [22, 3, 4, 0, 1], at: 1),
  ]

  @Test(arguments: rows)
  func `a ServerHello that may not be is refused at its place`(_ row: RefusalRow) throws {
    var reader = ServerFlightReader(answering: try #require(Self.client))
    guard case .refused(let refusal) = reader.receive(row.bytes.span) else { throw Unexpected() }
    #expect(refusal.reason == row.reason, "\(refusal)")
    #expect(refusal.offset == row.offset, "\(refusal)")
    guard case .refused(let again) = reader.receive(Wire.handshake([14, 0, 0, 0]).span) else { throw Unexpected() }
    #expect(again == refusal)
  }

  @Test func `the hello the rows are made of is taken when nothing is wrong with it`() throws {
    let client = try #require(Self.client)
    var reader = ServerFlightReader(answering: client)
    guard case .tls13(let hello) = reader.receive(Self.hello13([Self.version13, Self.share]).span) else {
      throw Unexpected()
    }
    #expect(hello.keyShareGroup == 29)
    reader = ServerFlightReader(answering: client)
    let renegotiation: (Int, [UInt8]) = (0xff01, [0])
    guard case .incomplete = reader.receive(Self.hello12([renegotiation, (23, [])]).span) else { throw Unexpected() }
    // The sentinels mean nothing where the version they speak of was not offered.
    reader = ServerFlightReader(answering: try Capture("tls12-gnutls-rsa-kex").hello())
    let plain = Self.hello12(random: Self.sentinel(1), suite: 0x009d, nil)
    guard case .incomplete = reader.receive(plain.span) else { throw Unexpected() }
  }

  @Test func `behind a retry the rules go on`() throws {
    let capture = try Capture("tls13-openssl-hrr")
    let first = try capture.hello()
    let second = try capture.secondHello(after: first)
    let retry = Array(capture.server.prefix(try #require(capture.facts.helloRetry?.end)))
    let sessionID = Array(first.sessionID)
    let share: (Int, [UInt8]) = (51, [0, 24] + Wire.vector(2, Array(repeating: 1, count: 97)))
    let good = Self.hello13(sessionID: sessionID, suite: 0x1302, [Self.version13, share])
    let change = Wire.record(20, [1])
    let rows: [(String, [UInt8], Bool)] = [
      ("as it should be", change + good, true),
      ("without ChangeCipherSpec", good, true),
      ("two of them", change + change + good, false),
      ("another suite", Self.hello13(sessionID: sessionID, suite: 0x1301, [Self.version13, share]), false),
      ("a second retry", retry, false),
      ("an older version", Self.hello12(suite: 0xc02c, nil), false),
      ("another group", Self.hello13(sessionID: sessionID, suite: 0x1302, [Self.version13, Self.share]), false),
      ("the warning", Wire.record(21, [1, 112]) + good, false),
    ]
    for row in rows {
      var reader = ServerFlightReader(answering: first)
      // What comes before the second hello is held back and read behind it.
      guard case .helloRetryRequest(let asked) = reader.receive((retry + row.1).span) else { throw Unexpected() }
      #expect(asked.end == retry.count)
      guard case .helloRetryRequest = reader.receive([UInt8]().span) else { throw Unexpected() }
      let event = reader.secondHello(second)
      if row.2 {
        guard case .tls13(let hello) = event else { throw Unexpected() }
        #expect(hello.end == retry.count + row.1.count, "\(row.0)")
      } else {
        guard case .refused(let refusal) = event else { throw Unexpected() }
        #expect(refusal.reason == .malformedHandshake, "\(row.0)")
        #expect(refusal.offset >= retry.count, "\(row.0)")
      }
    }
  }

  @Test func `a pre-shared key is taken only in a way that was offered`() throws {
    let capture = try Capture("tls13-openssl-early-data")
    let client = try capture.hello()
    let sessionID = Array(client.sessionID)
    // Modes of the capture: psk_dhe_ke alone.
    let bare = Self.hello13(sessionID: sessionID, suite: 0x1302, [Self.version13, (41, [0, 0])])
    let second = Self.hello13(sessionID: sessionID, suite: 0x1302, [Self.version13, Self.share, (41, [0, 1])])
    for bytes in [bare, second] {
      var reader = ServerFlightReader(answering: client)
      guard case .refused(let refusal) = reader.receive(bytes.span) else { throw Unexpected() }
      #expect(refusal.reason == .malformedHandshake)
    }
  }
}

extension [UInt8] {
  /// The same bytes with one replaced.
  func replacing(_ index: Int, _ value: UInt8) -> [UInt8] {
    var copy = self
    copy[index] = value
    return copy
  }
}
