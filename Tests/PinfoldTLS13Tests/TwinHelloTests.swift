import PinfoldModel
import PinfoldWire
import Testing

@testable import PinfoldTLS

/// The twin of every captured hello: equal but for the fields that are named, and valid in itself.
@Suite("twin hellos") struct TwinHelloTests {
  static let now = Timestamp(seconds: 1_795_219_200)

  /// A hello, its twin, and the bytes that are allowed to differ.
  struct Pair {
    let app: ClientHello
    let twin: ClientHello
    let twinRecords: [UInt8]
  }

  /// The first hello of a capture beside its twin, and the second where there was a retry.
  static func pairs(_ capture: Capture) throws -> [Pair] {
    let app = try capture.hello()
    let keys = try TwinKeys(for: app)
    let twin = try TwinHello(of: app, with: try material(app, keys))
    var pairs = [Pair(app: app, twin: twin.hello, twinRecords: twin.bytes)]
    if let retry = try? capture.hellos().retry {
      let later = try TwinKeys(for: retry.second, after: keys)
      let second = try TwinHello(
        of: retry.second, after: app, twin: twin, retry: retry.request, with: try material(retry.second, later))
      let prefix = retry.second.changeCipherSpec == nil ? 0 : 6
      pairs.append(Pair(app: retry.second, twin: second.hello, twinRecords: Array(second.bytes[prefix...])))
      #expect(prefix == 0 || Array(second.bytes.prefix(6)) == [20, 3, 3, 0, 1, 1])
    }
    return pairs
  }

  static func material(_ app: ClientHello, _ keys: TwinKeys) throws -> TwinMaterial {
    TwinMaterial(
      random: try Entropy.bytes(TwinHello.freshCount), shares: keys.shares,
      filler: try Entropy.bytes(TwinHello.fillerCount(for: app)))
  }

  /// The ranges of the message that carry something of the client's own. The session id is none: it may name a session
  /// of TLS 1.2 that an onlooker knows.
  private static func named(_ hello: ClientHello) -> [Range<Int>] {
    var ranges: [Range<Int>] = [hello.randomRange.lowerBound + 4..<hello.randomRange.upperBound]
    for share in hello.keyShares where !ClientHello.isGrease(share.group) { ranges.append(share.key) }
    for identity in hello.pskIdentities { ranges.append(identity.lowerBound..<identity.upperBound + 4) }
    return ranges + hello.pskBinders
  }

  @Test("there are enough hellos, with shares, keys and retries of every kind") func corpus() throws {
    let hellos = try Capture.hellos13.map { try $0.hello() }
    #expect(hellos.count >= 60)
    #expect(hellos.filter(\.offersPSK).count >= 6)
    #expect(hellos.filter { $0.keyShares.contains { $0.group == 0x11ec } }.count >= 5)
    #expect(hellos.filter { $0.recordCount > 1 }.count >= 1)
    #expect(hellos.filter(\.hasEncryptedClientHello).count >= 2)
  }

  @Test("app and twin differ in the named fields alone", arguments: Capture.hellos13)
  func byteDifference(_ capture: Capture) throws {
    for pair in try Self.pairs(capture) {
      let ranges = Self.named(pair.app)
      #expect(pair.app.message.count == pair.twin.message.count)
      for index in pair.app.message.indices where pair.app.message[index] != pair.twin.message[index] {
        if !ranges.contains(where: { $0.contains(index) }) { Issue.record("byte \(index) differs") }
      }
      // And those do differ: thirteen bytes or more that are equal by chance are not to be expected.
      for range in ranges where range.count >= TwinHello.freshCount {
        #expect(pair.app.message[range] != pair.twin.message[range])
      }
    }
  }

  @Test("JA3 and JA4 are equal", arguments: Capture.hellos13) func fingerprints(_ capture: Capture) throws {
    for pair in try Self.pairs(capture) {
      let app = try Fingerprint(pair.app.message)
      #expect(try Fingerprint(pair.twin.message) == app)
      #expect(app.ja4.hasPrefix("t13"))
    }
  }

  @Test("JA4 is worked out as its authors do") func knownFingerprint() throws {
    // curl 7.88 with OpenSSL 3.0: 31 suites, 12 extensions, ALPN h2.
    let app = try Capture.named("tls13-curl-nginx-hrr").hello()
    #expect(try Fingerprint(app.message).ja4.hasPrefix("t13d3112h2_e8f1e7e78f70_"))
  }

  @Test("records have the app's sizes and versions", arguments: Capture.hellos13)
  func framing(_ capture: Capture) throws {
    for pair in try Self.pairs(capture) {
      #expect(Self.headers(pair.app.records) == Self.headers(pair.twinRecords))
      #expect(pair.app.recordCount == pair.twin.recordCount)
    }
  }

  private static func headers(_ records: [UInt8]) -> [[UInt8]] {
    var list: [[UInt8]] = []
    var position = 0
    while position + 5 <= records.count {
      list.append(Array(records[position..<(position + 5)]))
      position += 5 + Int(records[position + 3]) << 8 + Int(records[position + 4])
    }
    return list
  }

  @Test("keys that are one in the app's shares are one in the twin's, and only those", arguments: Capture.hellos13)
  func kinship(_ capture: Capture) throws {
    func x25519(_ hello: ClientHello) -> [(String, [UInt8])] {
      hello.keyShares.compactMap { share in
        switch share.group {
        case 0x001d: ("x25519", Array(hello.message[share.key]))
        case 0x11ec: ("hybrid", Array(hello.message[share.key].suffix(32)))
        default: nil
        }
      }
    }
    let pairs = try Self.pairs(capture)
    let app = pairs.flatMap { x25519($0.app) }
    let twin = pairs.flatMap { x25519($0.twin) }
    for left in app.indices {
      for right in app.indices { #expect((app[left].1 == app[right].1) == (twin[left].1 == twin[right].1)) }
    }
  }

  @Test("some real clients do share one X25519 key, so that the row above has something to catch") func kinshipOccurs()
    throws
  {
    let sharing = try Capture.hellos13.filter { capture in
      let hello = try capture.hello()
      guard let lone = hello.keyShares.first(where: { $0.group == 0x001d }),
        let hybrid = hello.keyShares.first(where: { $0.group == 0x11ec })
      else { return false }
      return hello.message[lone.key] == hello.message[hybrid.key].suffix(32)
    }
    #expect(!sharing.isEmpty)
  }

  @Test("random and pre-shared keys of a first hello go on in the second", arguments: Capture.hellos13)
  func continuity(_ capture: Capture) throws {
    let pairs = try Self.pairs(capture)
    guard pairs.count == 2 else { return }
    let (first, second) = (pairs[0], pairs[1])
    #expect(first.twin.random == second.twin.random)
    #expect(Self.identities(first.app) == Self.identities(second.app) || !second.app.offersPSK)
    if second.app.offersPSK { #expect(Self.identities(first.twin) == Self.identities(second.twin)) }
  }

  private static func identities(_ hello: ClientHello) -> [[UInt8]] {
    hello.pskIdentities.map { Array(hello.message[$0]) }
  }

  @Test("made-up tickets keep the name of the server's key and nothing else", arguments: Capture.hellos13)
  func tickets(_ capture: Capture) throws {
    let pair = try Self.pairs(capture)[0]
    for (real, fake) in zip(Self.identities(pair.app), Self.identities(pair.twin)) {
      let kept = real.count >= 64 ? 16 : 0
      #expect(real.prefix(kept) == fake.prefix(kept))
      #expect(real.dropFirst(kept) != fake.dropFirst(kept))
    }
    for (real, fake) in zip(pair.app.pskBinders, pair.twin.pskBinders) {
      #expect(pair.app.message[real] != pair.twin.message[fake])
    }
  }

  @Test("the twin's own cookie stands in its second hello, whatever its length", arguments: [2, 30, 31, 32, 200])
  func cookies(_ count: Int) throws {
    let cookie = [UInt8](repeating: 0xc0, count: count)
    let (app, second, retry) = try Self.withCookies(app: [UInt8](repeating: 0xaa, count: 31), twin: cookie)
    let keys = try TwinKeys(for: app)
    let twin = try TwinHello(of: app, with: try Self.material(app, keys))
    let later = try TwinKeys(for: second, after: keys)
    let made = try TwinHello(
      of: second, after: app, twin: twin, retry: retry, with: try Self.material(second, later))
    #expect(made.hello.message.count == second.message.count + count - 31)
    let content = try #require(made.hello.extensions.first { $0.type == 44 }?.content)
    #expect(Array(made.hello.message[content]) == [0, UInt8(count)] + cookie)
    #expect(try Fingerprint(made.hello.message) == Fingerprint(second.message))
    // A request without a cookie, or with another group, is not the one the app answered.
    let plain = try Capture.named("tls13-curl-nginx-hrr").hellos()
    let other = try #require(plain.retry).request
    #expect(throws: TwinImpossible.differentRetry) {
      try TwinHello(of: second, after: app, twin: twin, retry: other, with: try Self.material(second, later))
    }
  }

  /// The retry of a captured handshake with a cookie put into it: one for the app, another for the twin.
  private static func withCookies(
    app: [UInt8], twin: [UInt8]
  ) throws -> (first: ClientHello, second: ClientHello, retry: ServerHello) {
    let capture = try Capture.named("tls13-curl-nginx-hrr")
    let first = try capture.hello()
    let retry = try #require(try capture.hellos().retry)
    func lengthened(_ message: [UInt8], extensionsAt: Int, by cookie: [UInt8]) -> [UInt8] {
      let added: [UInt8] = [0, 44, 0, UInt8(cookie.count + 2), 0, UInt8(cookie.count)] + cookie
      var result = message + added
      let total = Int(result[extensionsAt]) << 8 + Int(result[extensionsAt + 1]) + added.count
      (result[extensionsAt], result[extensionsAt + 1]) = (UInt8(total >> 8), UInt8(total & 0xff))
      let length = result.count - 4
      (result[2], result[3]) = (UInt8(length >> 8), UInt8(length & 0xff))
      return result
    }
    func record(_ message: [UInt8]) -> [UInt8] {
      [22, 3, 3, UInt8(message.count >> 8), UInt8(message.count & 0xff)] + message
    }
    let start = try #require(retry.second.extensions.first).content.lowerBound - 6
    var reader = ClientHelloReader(after: first)
    let bytes = record(lengthened(retry.second.message, extensionsAt: start, by: app))
    guard case .hello(let second) = reader.receive(bytes.span) else { throw Capture.Unreadable() }
    let requestStart = try #require(retry.request.extensions.first).content.lowerBound - 6
    var server = ServerFlightReader(answering: first)
    let request = record(lengthened(retry.request.message, extensionsAt: requestStart, by: twin))
    guard case .helloRetryRequest(let changed) = server.receive(request.span) else { throw Capture.Unreadable() }
    return (first, second, changed)
  }

  @Test("a share of a group without keys of ours makes a twin impossible, and says which") func unknownGroup() throws {
    let capture = try Capture.named("tls13-openssl-p256")
    let app = try capture.hello()
    let share = try #require(app.keyShares.first)
    var bytes = capture.client
    // X25519Kyber768Draft00, a group browsers sent in 2023 and 2024.
    (bytes[share.key.lowerBound + 1], bytes[share.key.lowerBound + 2]) = (0x63, 0x99)
    var reader = ClientHelloReader()
    guard case .hello(let changed) = reader.receive(bytes.span) else { throw Capture.Unreadable() }
    do throws(TwinFailure) {
      _ = try TwinSession(of: changed, now: Self.now)
      Issue.record("a twin was made")
    } catch {
      guard case .impossible(.keyShare(group: 0x6399)) = error else {
        Issue.record("\(error)")
        return
      }
    }
  }

  @Test("hellos without TLS 1.3 and material that does not fit make no twin") func misuse() throws {
    let older = try #require(Capture.all.compactMap { try? $0.hello() }.first { !$0.offersTLS13 })
    let keys = try TwinKeys(for: older)
    #expect(throws: TwinImpossible.notTLS13) { try TwinHello(of: older, with: try Self.material(older, keys)) }
    let app = try Capture.named("tls13-go-nginx-2-psk").hello()
    let shares = try TwinKeys(for: app).shares
    let random = [UInt8](repeating: 1, count: TwinHello.freshCount)
    let filler = [UInt8](repeating: 2, count: TwinHello.fillerCount(for: app))
    func make(_ material: TwinMaterial) throws(TwinImpossible) -> TwinHello { try TwinHello(of: app, with: material) }
    #expect(throws: Never.self) {
      try make(TwinMaterial(random: random, shares: shares, filler: filler))
    }
    #expect(throws: TwinImpossible.material) {
      try make(TwinMaterial(random: [1], shares: shares, filler: filler))
    }
    #expect(throws: TwinImpossible.material) {
      try make(TwinMaterial(random: random, shares: shares, filler: Array(filler.dropLast())))
    }
    #expect(throws: TwinImpossible.keyShare(group: 0x11ec)) {
      try make(TwinMaterial(random: random, shares: [0x001d: random], filler: filler))
    }
  }
}
