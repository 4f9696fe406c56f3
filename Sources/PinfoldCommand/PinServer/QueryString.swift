import PinfoldModel

/// The part of a URL behind `?`, as forms write it: pairs with `&` between, `%` escapes, `+` for a space.
struct QueryString {
  private let pairs: [(name: String, value: String)]

  /// Pairs with a broken escape, or that are no UTF-8, are left out.
  init(_ text: String?) {
    pairs = (text ?? "").utf8.split(separator: 0x26).compactMap { pair in
      let end = pair.firstIndex(of: 0x3d) ?? pair.endIndex
      guard let name = Self.decoded(pair[..<end]), let value = Self.decoded(pair[end...].dropFirst()) else {
        return nil
      }
      return (name, value)
    }
  }

  /// The first value of this name; `nil` without one.
  subscript(name: String) -> String? { pairs.first { $0.name == name }?.value }

  private static func decoded(_ text: Substring.UTF8View.SubSequence) -> String? {
    var bytes: [UInt8] = []
    var rest = text
    while let byte = rest.popFirst() {
      switch byte {
      case 0x2b: bytes.append(0x20)
      case 0x25:
        guard rest.count >= 2, let value = Hex.decode(String(decoding: rest.prefix(2), as: UTF8.self)) else {
          return nil
        }
        bytes += value
        rest = rest.dropFirst(2)
      default: bytes.append(byte)
      }
    }
    return String(validating: bytes, as: UTF8.self)
  }
}
