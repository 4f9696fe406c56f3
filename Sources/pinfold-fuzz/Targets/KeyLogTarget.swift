import PinfoldModel
import PinfoldTLS

/// Promises: the cut of the bytes does not matter; exactly the lines that a second reader, as plain as can be, finds are
/// kept; nothing handed in stays.
enum KeyLogTarget {
  static func run(_ bytes: [UInt8]) throws(BrokenPromise) {
    let expected = plain(bytes)
    for size in [1, 7, bytes.count + 1] {
      var reader = KeyLogReader()
      var lines: [KeyLogLine] = []
      for piece in bytes.pieces(of: size) {
        var piece = piece
        lines += reader.receive(&piece)
        try BrokenPromise.unless(piece.isEmpty, "bytes stay where they stood")
      }
      try BrokenPromise.unless(lines.count == expected.count, "\(lines.count) lines, not \(expected.count)")
      for (line, other) in zip(lines, expected) {
        try BrokenPromise.unless(
          line.clientRandom == other.random && line.secret.matches(other.secret), "a line reads as another one")
      }
      var table = KeyLogTable(capacity: 2, lifetime: 5)
      for (index, line) in lines.enumerated() {
        table.insert(line, now: Timestamp(seconds: Int64(index)))
        try BrokenPromise.unless(table.count <= 2, "the table outgrows its bound")
      }
    }
  }

  private static let label = Array("SERVER_HANDSHAKE_TRAFFIC_SECRET ".utf8)

  /// The last label of each line counts, whatever stands before it.
  private static func plain(_ bytes: [UInt8]) -> [(random: [UInt8], secret: [UInt8])] {
    bytes.split(separator: 0x0a, omittingEmptySubsequences: false).dropLast().compactMap { line in
      guard line.count >= label.count,
        let place = (line.startIndex...line.endIndex - label.count).last(where: { line[$0...].starts(with: label) })
      else { return nil }
      let behind = line[(place + label.count)...]
      let fields = (behind.last == 0x0d ? behind.dropLast() : behind)
        .split(separator: 0x20, omittingEmptySubsequences: false)
      guard fields.count == 2,
        let random = Hex.decode(String(decoding: fields[0], as: UTF8.self)), random.count == 32,
        let secret = Hex.decode(String(decoding: fields[1], as: UTF8.self)), [32, 48].contains(secret.count)
      else { return nil }
      return (random, secret)
    }
  }
}
