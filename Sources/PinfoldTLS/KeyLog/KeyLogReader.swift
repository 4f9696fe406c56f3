import COpenSSL

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
/// Whatever is no such line is skipped up to its end. At most `lineLimit` bytes wait for their end of line.
package struct KeyLogReader {
  /// Bytes of the longest line that is kept: label, random and a secret of 48 bytes in hexadecimal, two spaces and a
  /// carriage return take 195.
  package static let lineLimit = 256
  private static let label: [UInt8] = Array("SERVER_HANDSHAKE_TRAFFIC_SECRET ".utf8)

  private var line: [UInt8] = []
  private var isSkipping = false

  /// Begins at the start of a line.
  package init() { line.reserveCapacity(Self.lineLimit) }

  /// Takes bytes, zeroes them where they stand, and answers the lines that became whole.
  package mutating func receive(_ bytes: inout [UInt8]) -> [KeyLogLine] {
    var lines: [KeyLogLine] = []
    for byte in bytes {
      if byte == 0x0a {
        if !isSkipping, let whole = parsed() { lines.append(whole) }
        isSkipping = false
        forget()
      } else if !isSkipping {
        line.append(byte)
        let isOther = line.count <= Self.label.count && byte != Self.label[line.count - 1]
        if isOther || line.count >= Self.lineLimit {
          isSkipping = true
          forget()
        }
      }
    }
    unsafe bytes.withUnsafeMutableBytes { memory in unsafe OPENSSL_cleanse(memory.baseAddress, memory.count) }
    bytes.removeAll(keepingCapacity: true)
    return lines
  }

  /// Zeroes what was collected and keeps the room for the next line.
  private mutating func forget() {
    unsafe line.withUnsafeMutableBytes { memory in unsafe OPENSSL_cleanse(memory.baseAddress, memory.count) }
    line.removeAll(keepingCapacity: true)
  }

  private func parsed() -> KeyLogLine? {
    var end = line.count
    if line.last == 0x0d { end -= 1 }
    let start = Self.label.count
    // Two fields of hexadecimal digits with one space between.
    guard end == start + 64 + 1 + 64 || end == start + 64 + 1 + 96, line[start + 64] == 0x20,
      let random = Self.bytes(line[start..<(start + 64)]), var secret = Self.bytes(line[(start + 65)..<end])
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
