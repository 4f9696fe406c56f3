import COpenSSL
import Glibc

/// One line of a key log that Pinfold keeps: the server's handshake secret of one handshake.
package struct KeyLogLine: Sendable {
  /// ClientHello.random, 32 bytes.
  package let clientRandom: [UInt8]
  /// server_handshake_traffic_secret, 32 or 48 bytes. Believed only once a flight opens with it.
  package let secret: SecretBytes
}

/// Reads an `SSLKEYLOGFILE` (draft-ietf-tls-keylogfile) from bytes in any cut: what applications write into the pipe.
///
/// Only `SERVER_HANDSHAKE_TRAFFIC_SECRET` lines are kept; every other line is dropped unread, and its bytes are zeroed.
/// The label counts wherever in a line it stands: somebody who left a line unfinished, or never ends one, must not take
/// the next application's line with it. At most `fieldLimit` bytes wait for their end of line.
package struct KeyLogReader {
  /// Bytes kept behind a label: random and a secret of 48 bytes in hexadecimal, a space and a carriage return.
  package static let fieldLimit = 64 + 1 + 96 + 1
  private static let label: [UInt8] = Array("SERVER_HANDSHAKE_TRAFFIC_SECRET ".utf8)
  private static let firstOfLabel = UInt8(ascii: "S")
  private static let newline: UInt8 = 0x0a

  /// For each length of the label's start, the longest shorter start that it ends with: where to go on comparing after a
  /// byte that does not fit (Knuth, Morris and Pratt).
  private static let fallback: [Int] = (0...label.count).map { length in
    (0..<max(length, 1)).last { label[..<length].suffix($0).elementsEqual(label[..<$0]) } ?? 0
  }

  /// Bytes of the label that stand right before the next byte.
  private var matched = 0
  /// What came behind the label, while `isCollecting`.
  private var fields: [UInt8] = []
  /// Whether a label stands in this line and not too much came behind it.
  private var isCollecting = false

  /// Begins at the start of a line.
  package init() { fields.reserveCapacity(Self.fieldLimit) }

  /// Takes bytes, zeroes them where they stand, and answers the lines that became whole.
  package mutating func receive(_ bytes: inout [UInt8]) -> [KeyLogLine] {
    let lines = take(bytes.span)
    unsafe bytes.withUnsafeMutableBytes { memory in unsafe OPENSSL_cleanse(memory.baseAddress, memory.count) }
    bytes.removeAll(keepingCapacity: true)
    return lines
  }

  private mutating func take(_ bytes: Span<UInt8>) -> [KeyLogLine] {
    var lines: [KeyLogLine] = []
    var next = 0
    while next < bytes.count {
      if matched == 0 {
        // Most bytes neither end a line nor can begin a label: they are taken in one go.
        let end = endOfPlain(bytes, from: next)
        collect(bytes.extracting(next..<end))
        next = end
        guard next < bytes.count else { break }
      }
      if bytes[next] == Self.newline {
        if isCollecting, let whole = parsed() { lines.append(whole) }
        if isCollecting { forget() }
        matched = 0
      } else {
        collect(bytes.extracting(next...next))
        match(bytes[next])
      }
      next += 1
    }
    return lines
  }

  /// Where the next byte stands that may begin a label or, while that means something, ends a line.
  private func endOfPlain(_ bytes: Span<UInt8>, from start: Int) -> Int {
    guard isCollecting else {
      return unsafe bytes.withUnsafeBytes { bytes in
        guard let base = bytes.baseAddress,
          let found = unsafe memchr(base + start, Int32(Self.firstOfLabel), bytes.count - start)
        else { return bytes.count }
        return unsafe base.distance(to: found)
      }
    }
    var end = start
    while end < bytes.count, bytes[end] != Self.newline, bytes[end] != Self.firstOfLabel { end += 1 }
    return end
  }

  private mutating func collect(_ bytes: Span<UInt8>) {
    guard isCollecting else { return }
    guard bytes.count <= Self.fieldLimit - fields.count else { return forget() }
    for index in bytes.indices { fields.append(bytes[index]) }
  }

  /// Follows the label, byte by byte; at its end what comes behind it is collected, and nothing that came before.
  private mutating func match(_ byte: UInt8) {
    while matched > 0, byte != Self.label[matched] { matched = Self.fallback[matched] }
    if byte == Self.label[matched] { matched += 1 }
    guard matched == Self.label.count else { return }
    forget()
    isCollecting = true
    matched = 0
  }

  /// Zeroes what was collected and keeps the room for the next line.
  private mutating func forget() {
    unsafe fields.withUnsafeMutableBytes { memory in unsafe OPENSSL_cleanse(memory.baseAddress, memory.count) }
    fields.removeAll(keepingCapacity: true)
    isCollecting = false
  }

  private func parsed() -> KeyLogLine? {
    var end = fields.count
    if fields.last == 0x0d { end -= 1 }
    // Two fields of hexadecimal digits with one space between.
    guard end == 64 + 1 + 64 || end == 64 + 1 + 96, fields[64] == 0x20, let random = Self.bytes(fields[..<64]),
      var secret = Self.bytes(fields[65..<end])
    else { return nil }
    return KeyLogLine(clientRandom: random, secret: SecretBytes(taking: &secret))
  }

  /// Hexadecimal digits of either case, an even number of them. No text is made of them, since texts are not zeroed.
  private static func bytes(_ digits: ArraySlice<UInt8>) -> [UInt8]? {
    var result: [UInt8] = []
    result.reserveCapacity(digits.count / 2)
    var index = digits.startIndex
    while index + 1 < digits.endIndex {
      guard let high = value(digits[index]), let low = value(digits[index + 1]) else { return nil }
      result.append(high << 4 | low)
      index += 2
    }
    return index == digits.endIndex ? result : nil
  }

  private static func value(_ digit: UInt8) -> UInt8? {
    switch digit {
    case 0x30...0x39: digit - 0x30
    case 0x41...0x46: digit - 0x41 + 10
    case 0x61...0x66: digit - 0x61 + 10
    default: nil
    }
  }
}
