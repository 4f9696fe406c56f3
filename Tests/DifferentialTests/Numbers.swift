/// Fields of TLS messages, written and read as plainly as can be.
enum Wire {
  static func number(_ value: Int, _ width: Int) -> [UInt8] {
    (0..<width).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
  }

  static func vector(_ width: Int, _ content: [UInt8]) -> [UInt8] { number(content.count, width) + content }

  static func record(_ type: UInt8, _ content: [UInt8], version: [UInt8] = [3, 3]) -> [UInt8] {
    [type] + version + vector(2, content)
  }

  static func number(_ bytes: ArraySlice<UInt8>, _ width: Int) -> Int {
    bytes.prefix(width).reduce(0) { $0 << 8 | Int($1) }
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

  mutating func byte() -> UInt8 { UInt8(next(below: 256)) }

  mutating func pick<Element>(_ list: [Element]) -> Element { list[next(below: list.count)] }
}
