/// Writes TLS bytes: the other direction of what is under test, as plain as can be.
enum Wire {
  static func number(_ value: Int, width: Int) -> [UInt8] {
    (0..<width).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
  }

  static func vector(_ width: Int, _ content: [UInt8]) -> [UInt8] { number(content.count, width: width) + content }

  static func record(_ type: UInt8, _ content: [UInt8], version: Int = 0x0303) -> [UInt8] {
    [type] + number(version, width: 2) + vector(2, content)
  }

  static func handshake(_ content: [UInt8], version: Int = 0x0303) -> [UInt8] { record(22, content, version: version) }

  static func message(_ type: UInt8, _ body: [UInt8]) -> [UInt8] { [type] + vector(3, body) }

  static func extensions(_ list: [(Int, [UInt8])]) -> [UInt8] {
    vector(2, list.flatMap { number($0.0, width: 2) + vector(2, $0.1) })
  }

  /// A ServerHello, or with another type number anything of its shape.
  static func serverHello(
    version: Int = 0x0303, random: [UInt8] = Array(repeating: 7, count: 32), sessionID: [UInt8] = [], suite: Int,
    compression: UInt8 = 0, extensions list: [(Int, [UInt8])]?, trailing: [UInt8] = []
  ) -> [UInt8] {
    let head = number(version, width: 2) + random + vector(1, sessionID) + number(suite, width: 2) + [compression]
    return message(2, head + (list.map(extensions) ?? []) + trailing)
  }

  /// A ClientHello in one message.
  static func clientHello(
    version: Int = 0x0303, sessionID: [UInt8] = [], suites: [Int] = [0x1301, 0xc02b], compression: [UInt8] = [0],
    extensions list: [(Int, [UInt8])]? = [], trailing: [UInt8] = []
  ) -> [UInt8] {
    let head = number(version, width: 2) + Array(repeating: 9, count: 32) + vector(1, sessionID)
    let offers = vector(2, suites.flatMap { number($0, width: 2) }) + vector(1, compression)
    return message(1, head + offers + (list.map(extensions) ?? []) + trailing)
  }

  /// The messages inside handshake records laid end to end, as they come in a capture's clear flight.
  static func messages(of bytes: [UInt8], upTo end: Int) -> [[UInt8]] {
    var content: [UInt8] = []
    var index = 0
    while index < end {
      let length = Int(bytes[index + 3]) << 8 | Int(bytes[index + 4])
      if bytes[index] == 22 { content += bytes[(index + 5)..<(index + 5 + length)] }
      index += 5 + length
    }
    var result: [[UInt8]] = []
    index = 0
    while index < content.count {
      let length = Int(content[index + 1]) << 16 | Int(content[index + 2]) << 8 | Int(content[index + 3])
      result.append(Array(content[index..<(index + 4 + length)]))
      index += 4 + length
    }
    return result
  }
}

/// A small generator with a seed, so that a failure can be repeated (xorshift64*).
struct Random {
  private var state: UInt64

  init(seed: UInt64) {
    state = seed &* 0x9e37_79b9_7f4a_7c15 | 1
  }

  mutating func next(below bound: Int) -> Int {
    state ^= state >> 12
    state ^= state << 25
    state ^= state >> 27
    return Int((state &* 0x2545_f491_4f6c_dd1d) >> 33) % max(bound, 1)
  }
}
