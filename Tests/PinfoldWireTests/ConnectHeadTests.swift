import PinfoldModel
import PinfoldWire
import Synchronization
import Testing

/// A head, and what has to come of it.
struct HeadRow: CustomTestStringConvertible, Sendable {
  let testDescription: String
  let head: String
  let status: Int
  let offset: Int

  init(_ name: String, _ head: String, _ status: Int = 400, at offset: Int) {
    testDescription = name
    self.head = head
    self.status = status
    self.offset = offset
  }
}

/// A head that is taken, and its authority.
struct GoodHeadRow: CustomTestStringConvertible, Sendable {
  let testDescription: String
  let head: String
  let authority: String

  init(_ name: String, _ head: String, _ authority: String) {
    testDescription = name
    self.head = head
    self.authority = authority
  }
}

@Suite struct ConnectHeadTests {
  static let good = [
    GoodHeadRow("a bare request line", "CONNECT a.test:443 HTTP/1.1\r\n\r\n", "a.test:443"),
    GoodHeadRow("HTTP/1.0 without Host", "CONNECT a.test:443 HTTP/1.0\r\n\r\n", "a.test:443"),
    GoodHeadRow("Host equal to the target", "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n", "a.test:443"),
    GoodHeadRow(
      "Host that is the proxy's own address, as Node sends it",
      "CONNECT a.test:443 HTTP/1.1\r\nHost: 127.0.0.1:3128\r\n\r\n", "a.test:443"),
    GoodHeadRow("Host without a port", "CONNECT a.test:8443 HTTP/1.1\r\nHost: a.test\r\n\r\n", "a.test:8443"),
    GoodHeadRow("Host in another case", "CONNECT a.test:443 HTTP/1.1\r\nhOST:\tA.TEST.:443 \r\n\r\n", "a.test:443"),
    GoodHeadRow("IPv6 in brackets", "CONNECT [2001:DB8::1]:443 HTTP/1.1\r\n\r\n", "[2001:db8::1]:443"),
    GoodHeadRow("IPv4", "CONNECT 192.0.2.1:65535 HTTP/1.1\r\nHost: 192.0.2.1:65535\r\n\r\n", "192.0.2.1:65535"),
    GoodHeadRow("the lowest port", "CONNECT a.test:1 HTTP/1.1\r\n\r\n", "a.test:1"),
    GoodHeadRow(
      "other fields, empty and in UTF-8", "CONNECT a.test:443 HTTP/1.1\r\nX:\r\nUser-Agent: é \"x\"\r\n\r\n",
      "a.test:443"),
    GoodHeadRow(
      "a field whose name only begins like one that counts",
      "CONNECT a.test:443 HTTP/1.1\r\nContent-Length-X: 5\r\nHost-X: b.test\r\n\r\n", "a.test:443"),
  ]

  @Test(arguments: good)
  func `a head that is right is taken, whatever the cut`(_ row: GoodHeadRow) throws {
    let bytes = Array((row.head + "\u{16}\u{3}").utf8)
    for size in [1, 2, 3, 7, bytes.count] {
      var reader = ConnectHeadReader()
      var event = ConnectHeadReader.Event.incomplete
      var index = 0
      while index < bytes.count {
        let end = min(index + size, bytes.count)
        event = reader.receive(Array(bytes[index..<end]).span)
        // Incomplete up to the last byte of the head, and never again behind it.
        #expect((event == .incomplete) == (end < bytes.count - 2))
        index = end
      }
      let authority = try #require(Authority(row.authority))
      guard case .request(let request) = event else { throw Unexpected() }
      #expect(request.authority == authority)
      #expect(request.headLength == bytes.count - 2)
      #expect(request.proxyAuthorization == nil)
      #expect(Array(reader.surplus) == [0x16, 3])
    }
  }

  private static let line = "CONNECT a.test:443 HTTP/1.1\r\n"

  static let bad = [
    HeadRow("TLS at the proxy's port", "\u{16}\u{3}\u{1}", at: 0),
    HeadRow("an empty line in front", "\r\n" + line + "\r\n", at: 0),
    HeadRow("a bare LF behind the request line", "CONNECT a.test:443 HTTP/1.1\nHost: a.test\r\n\r\n", at: 27),
    HeadRow("a bare LF at the end", line + "\n", at: 29),
    HeadRow("a bare CR inside a value", line + "X: a\rb\r\n\r\n", at: 34),
    HeadRow("two CRs", line + "X: a\r\r\n\r\n", at: 34),
    HeadRow("a NUL in the target", "CONNECT a\u{0}.test:443 HTTP/1.1\r\n\r\n", at: 9),
    HeadRow("a control byte in a value", line + "X: \u{1b}[2J\r\n\r\n", at: 32),
    HeadRow("a DEL in a value", line + "X: \u{7f}\r\n\r\n", at: 32),
    HeadRow("a folded line", line + "X: a\r\n b\r\n\r\n", at: 35),
    HeadRow("a line folded with a tab", line + "X: a\r\n\tb\r\n\r\n", at: 35),
    HeadRow("a first field that begins with a blank", line + " X: a\r\n\r\n", at: 29),
    HeadRow("a blank before the colon", line + "Host : a.test:443\r\n\r\n", at: 29),
    HeadRow("a tab before the colon", line + "Content-Length\t: 5\r\n\r\n", at: 29),
    HeadRow("no colon", line + "Host\r\n\r\n", at: 29),
    HeadRow("no name", line + ": a\r\n\r\n", at: 29),
    HeadRow("a name that is no token", line + "Ho(st: a\r\n\r\n", at: 29),
    HeadRow("a name with a byte above ASCII", line + "Hóst: a\r\n\r\n", at: 29),
    HeadRow("two Hosts", line + "Host: a.test:443\r\nhost: a.test:443\r\n\r\n", at: 47),
    HeadRow("a Host with a path", line + "Host: a.test/x\r\n\r\n", at: 29),
    HeadRow("a Host that is empty", line + "Host:\r\n\r\n", at: 29),
    HeadRow("a Host with userinfo", line + "Host: x@a.test:443\r\n\r\n", at: 29),
    HeadRow("a Host with a list", line + "Host: a.test:443, b.test:443\r\n\r\n", at: 29),
    HeadRow("a Content-Length", line + "Content-Length: 5\r\n\r\nhello", at: 29),
    HeadRow("a Content-Length of nothing", line + "Content-Length: 0\r\n\r\n", at: 29),
    HeadRow("a Transfer-Encoding", line + "TRANSFER-ENCODING: chunked\r\n\r\n0\r\n\r\n", at: 29),
    HeadRow("two credentials", line + "Proxy-Authorization: Basic YQ==\r\nProxy-Authorization: x\r\n\r\n", at: 62),
    HeadRow("no target", "CONNECT HTTP/1.1\r\n\r\n", at: 0),
    HeadRow("two blanks in the request line", "CONNECT  a.test:443 HTTP/1.1\r\n\r\n", at: 0),
    HeadRow("a tab in the request line", "CONNECT\ta.test:443 HTTP/1.1\r\n\r\n", at: 0),
    HeadRow("a blank behind the version", "CONNECT a.test:443 HTTP/1.1 \r\n\r\n", at: 0),
    HeadRow("no version", "CONNECT a.test:443\r\n\r\n", at: 0),
    HeadRow("version 2.0", "CONNECT a.test:443 HTTP/2.0\r\n\r\n", at: 19),
    HeadRow("version 1.1 in lower case", "CONNECT a.test:443 http/1.1\r\n\r\n", at: 19),
    HeadRow("version 1.10", "CONNECT a.test:443 HTTP/1.10\r\n\r\n", at: 19),
    HeadRow("no port", "CONNECT a.test HTTP/1.1\r\n\r\n", at: 8),
    HeadRow("an empty port", "CONNECT a.test: HTTP/1.1\r\n\r\n", at: 8),
    HeadRow("port 0", "CONNECT a.test:0 HTTP/1.1\r\n\r\n", at: 8),
    HeadRow("port 65536", "CONNECT a.test:65536 HTTP/1.1\r\n\r\n", at: 8),
    HeadRow("a port with a sign", "CONNECT a.test:+443 HTTP/1.1\r\n\r\n", at: 8),
    HeadRow("a port with a leading zero", "CONNECT a.test:0443 HTTP/1.1\r\n\r\n", at: 8),
    HeadRow("two ports", "CONNECT a.test:443:443 HTTP/1.1\r\n\r\n", at: 8),
    HeadRow("userinfo", "CONNECT user@a.test:443 HTTP/1.1\r\n\r\n", at: 8),
    HeadRow("IPv6 without brackets", "CONNECT 2001:db8::1:443 HTTP/1.1\r\n\r\n", at: 8),
    HeadRow("a bracket that is not closed", "CONNECT [::1:443 HTTP/1.1\r\n\r\n", at: 8),
    HeadRow("IPv4 in brackets", "CONNECT [192.0.2.1]:443 HTTP/1.1\r\n\r\n", at: 8),
    HeadRow("an IPv4 address in short form", "CONNECT 127.1:443 HTTP/1.1\r\n\r\n", at: 8),
    HeadRow("a path behind the port", "CONNECT a.test:443/ HTTP/1.1\r\n\r\n", at: 8),
    HeadRow("a URL as target", "CONNECT https://a.test:443 HTTP/1.1\r\n\r\n", at: 8),
    HeadRow("a name in UTF-8", "CONNECT é.test:443 HTTP/1.1\r\n\r\n", at: 8),
    HeadRow("a percent sign", "CONNECT a%2etest:443 HTTP/1.1\r\n\r\n", at: 8),
    HeadRow("plain HTTP", "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n", 405, at: 0),
    HeadRow("another method", "OPTIONS * HTTP/1.1\r\nHost: a.test\r\n\r\n", 405, at: 0),
    HeadRow("the method in lower case", "connect a.test:443 HTTP/1.1\r\n\r\n", 405, at: 0),
    HeadRow("a method that is no token", "CONN{ECT a.test:443 HTTP/1.1\r\n\r\n", at: 0),
    HeadRow("the preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", at: 6),
    HeadRow("SSH", "SSH-2.0-OpenSSH_9.2\r\n\r\n", at: 0),
    HeadRow("8193 bytes", line + "X: " + String(repeating: "a", count: 8192), at: 8192),
  ]

  @Test(arguments: bad)
  func `a head that is wrong is refused at its place, whatever the cut`(_ row: HeadRow) throws {
    let bytes = Array(row.head.utf8)
    for size in [bytes.count, 1, 5] {
      var reader = ConnectHeadReader()
      var event = ConnectHeadReader.Event.incomplete
      var index = 0
      while index < bytes.count, event == .incomplete {
        let end = min(index + size, bytes.count)
        event = reader.receive(Array(bytes[index..<end]).span)
        index = end
      }
      guard case .refused(let refusal) = event else { throw Unexpected() }
      #expect(refusal.status == row.status)
      #expect(refusal.offset == row.offset)
      #expect(refusal.sentence.hasSuffix(".") || refusal.sentence.hasSuffix("1.1"))
      #expect(reader.receive([0x41].span) == event, "an answer stays")
    }
  }

  @Test func `plain HTTP is told that it cannot be pinned`() throws {
    var reader = ConnectHeadReader()
    let bytes = Array("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n".utf8)
    guard case .refused(let refusal) = reader.receive(bytes.span) else { throw Unexpected() }
    #expect(refusal.sentence.hasPrefix("Plain HTTP cannot be pinned"))
    let reply = String(decoding: ProxyReply(.head(refusal)).bytes, as: UTF8.self)
    #expect(reply.hasPrefix("HTTP/1.1 405 Method Not Allowed\r\n"))
    #expect(reply.contains("\r\nAllow: CONNECT\r\n"))
  }

  @Test func `credentials are handed on as sent, without the blanks around them`() throws {
    var reader = ConnectHeadReader()
    let head = "CONNECT a.test:443 HTTP/1.1\r\nProxy-Authorization:  Basic dTpw \r\n\r\n"
    guard case .request(let request) = reader.receive(Array(head.utf8).span) else { throw Unexpected() }
    let place = try #require(request.proxyAuthorization)
    #expect(Array(reader.bytes(in: place)) == Array("Basic dTpw".utf8))
  }

  /// Would catch a buffer that the reader outgrew and left behind with a password in it.
  @Test func `all buffers a head was in are overwritten`() throws {
    let overwritten = Mutex<[[UInt8]]>([])
    var reader = ConnectHeadReader { bytes in
      overwritten.withLock { [bytes] in $0.append(bytes) }
      for index in bytes.indices { bytes[index] = 0 }
    }
    let filler = String(repeating: "a", count: 3000)
    let head = Array(
      "CONNECT a.test:443 HTTP/1.1\r\nProxy-Authorization: Basic dTpw\r\nX: \(filler)\r\n\r\n".utf8)
    var places: Set<UInt> = []
    for byte in head {
      _ = reader.receive([byte].span)
      let place = unsafe reader.bytes(in: 0..<1).withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
      places.insert(place)
    }
    reader.erase()
    #expect(reader.bytes(in: 0..<Int.max).allSatisfy { $0 == 0 })
    let found = overwritten.withLock { $0 }
    #expect(found.count > 3 && found.count >= places.count, "\(found.map(\.count)), \(places.count) places")
    #expect(found.allSatisfy { head.starts(with: $0) })
    #expect(found.last == head)
  }

  @Test func `a head of exactly 8192 bytes is taken`() throws {
    let line = "CONNECT a.test:443 HTTP/1.1\r\nX: "
    let head = line + String(repeating: "a", count: WireLimits.connectHead - line.utf8.count - 4) + "\r\n\r\n"
    #expect(head.utf8.count == 8192)
    var reader = ConnectHeadReader()
    guard case .request(let request) = reader.receive(Array(head.utf8).span) else { throw Unexpected() }
    #expect(request.headLength == 8192)
  }
}
