import PinfoldModel

/// Reads the head of a CONNECT request from bytes in any cut, strictly by RFC 9112, but that a Host field may be missing
/// (§3.2): some old clients send none, and the target says the same.
///
///     reading ── receive ──▶ reading | done(request) | done(refused)
///
/// What two readers could read in two ways is refused: a bare LF or CR, control bytes, a folded line, a blank before a
/// colon, two Host fields, a Host that is none, a body. An answer, once given, stays.
package struct ConnectHeadReader: Sendable {
  /// What the bytes so far amount to.
  package enum Event: Equatable, Sendable {
    /// More bytes are wanted.
    case incomplete
    /// The head is whole. Bytes behind `headLength` are in `surplus`.
    case request(ConnectRequest)
    /// The client is told why and the connection closed.
    case refused(HeadRefusal)
  }

  private var bytes: [UInt8] = []
  private var scanned = 0
  private var lines: [Range<Int>] = []
  private var lineStart = 0
  private var answer = Event.incomplete
  private var headLength: Int?

  private let overwrite: @Sendable (inout [UInt8]) -> Void

  /// A reader that has seen nothing yet. `overwrite` is to zero what it is given, where it lies: a head may hold a secret.
  package init(erasingBy overwrite: @escaping @Sendable (inout [UInt8]) -> Void = { _ in }) {
    self.overwrite = overwrite
  }

  /// Bytes received behind the head: the first ones of the tunnel.
  package var surplus: ArraySlice<UInt8> { bytes[(headLength ?? bytes.count)...] }

  /// Whether any byte has come: a connection that says nothing is closed without a reply.
  package var hasBegun: Bool { !bytes.isEmpty }

  /// Lends a part of what was read; nothing of a range that lies outside.
  package func bytes(in range: Range<Int>) -> ArraySlice<UInt8> { bytes[range.clamped(to: 0..<bytes.count)] }

  /// Overwrites all that was read. Take `surplus` before.
  package mutating func erase() { overwrite(&bytes) }

  /// Takes bytes and answers what all bytes so far amount to. Everything given is kept, so hand in no more than a
  /// read's worth at a time, and nothing more once the answer is there.
  package mutating func receive(_ more: Span<UInt8>) -> Event {
    makeRoom(for: more.count)
    unsafe more.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) }
    guard case .incomplete = answer else { return answer }
    answer = advance()
    return answer
  }

  /// Moves to a larger buffer where one is needed: an array that grows by itself leaves a copy behind.
  private mutating func makeRoom(for count: Int) {
    guard !bytes.isEmpty, bytes.capacity - bytes.count < count else { return }
    var larger: [UInt8] = []
    larger.reserveCapacity(max(2 * bytes.capacity, bytes.count + count))
    larger.append(contentsOf: bytes)
    overwrite(&bytes)
    bytes = larger
  }

  private mutating func advance() -> Event {
    if bytes.first == 0x16 {
      return .refused(
        HeadRefusal(at: 0, "This port speaks HTTP: write the proxy's URL with http://, not with https://."))
    }
    while scanned < bytes.count {
      guard scanned < WireLimits.connectHead else {
        return .refused(HeadRefusal(at: scanned, "The head is longer than 8192 bytes."))
      }
      let byte = bytes[scanned]
      let follows = scanned > 0 && bytes[scanned - 1] == 0x0d
      guard follows == (byte == 0x0a) else {
        return .refused(HeadRefusal(at: scanned, "A line has to end in CR LF, and neither may stand alone."))
      }
      guard byte >= 0x20 || byte == 0x09 || byte == 0x0d || byte == 0x0a, byte != 0x7f else {
        return .refused(HeadRefusal(at: scanned, "The head has a control byte in it."))
      }
      scanned += 1
      guard byte == 0x0a else { continue }
      let line = lineStart..<(scanned - 2)
      lineStart = scanned
      guard line.isEmpty else {
        lines.append(line)
        continue
      }
      headLength = scanned
      switch read(length: scanned) {
      case .success(let request): return .request(request)
      case .failure(let refusal): return .refused(refusal)
      }
    }
    return .incomplete
  }

  private func read(length: Int) -> Result<ConnectRequest, HeadRefusal> {
    do throws(HeadRefusal) {
      guard let first = lines.first else { throw HeadRefusal(at: 0, "The request line is missing.") }
      let (target, authority) = try requestLine(first)
      var fields = ConnectFields(target: target, authority: authority)
      for line in lines.dropFirst() { try fields.take(bytes[line]) }
      return .success(
        ConnectRequest(
          authority: authority, proxyAuthorization: fields.proxyAuthorization.map { $0.startIndex..<$0.endIndex },
          headLength: length))
    } catch {
      return .failure(error)
    }
  }

  /// `method SP request-target SP HTTP-version` (RFC 9112 §3), one space each.
  private func requestLine(
    _ line: Range<Int>
  ) throws(HeadRefusal) -> (target: ArraySlice<UInt8>, authority: Authority) {
    let bytes = bytes[line]
    guard let first = bytes.firstIndex(of: 0x20), let second = bytes[(first + 1)...].firstIndex(of: 0x20),
      first > line.lowerBound, !bytes[(second + 1)...].contains(0x20),
      bytes[..<first].allSatisfy(ConnectFields.isTokenByte)
    else { throw HeadRefusal(at: line.lowerBound, "The request line has to be: CONNECT host:port HTTP/1.1") }
    let (method, target, version) = (bytes[..<first], bytes[(first + 1)..<second], bytes[(second + 1)...])
    guard version.elementsEqual("HTTP/1.1".utf8) || version.elementsEqual("HTTP/1.0".utf8) else {
      throw HeadRefusal(at: version.startIndex, "The version has to be HTTP/1.1 or HTTP/1.0.")
    }
    guard method.elementsEqual("CONNECT".utf8) else {
      if target.starts(with: "http://".utf8) {
        throw HeadRefusal(405, at: 0, "Plain HTTP cannot be pinned: use https:// URLs, which arrive here as CONNECT.")
      }
      throw HeadRefusal(405, at: 0, "Only CONNECT is served here; plain HTTP cannot be pinned.")
    }
    guard let authority = Authority(utf8: target) else {
      throw HeadRefusal(
        at: target.startIndex, "The target has to be host:port, with a port from 1 to 65535 and IPv6 in brackets.")
    }
    return (target, authority)
  }
}

extension HeadRefusal: Error {}
