import PinfoldModel
import PinfoldWire
import Testing

@testable import PinfoldTLS

/// Key-log lines as applications write them, and as nobody should.
@Suite("key log") struct KeyLogTests {
  private func read(_ text: String, cut: Int = .max) -> [KeyLogLine] {
    var reader = KeyLogReader()
    var lines: [KeyLogLine] = []
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      var part = Array(rest.prefix(cut))
      rest = rest.dropFirst(cut)
      lines += reader.receive(&part)
      #expect(part.isEmpty)
    }
    return lines
  }

  private static let randomDigits = String(repeating: "a1", count: 32)
  private static let secretDigits = String(repeating: "B2", count: 48)
  private static let good = "SERVER_HANDSHAKE_TRAFFIC_SECRET \(randomDigits) \(secretDigits)\n"

  @Test("a captured log gives one line, the right one, in any cut", arguments: Capture.openable)
  func captured(_ capture: Capture) throws {
    let random = try capture.hello().random
    let expected = try capture.secret("SERVER_HANDSHAKE_TRAFFIC_SECRET")
    for cut in [1, 7, 64, 4096] {
      let lines = read(capture.keyLog + "\n", cut: cut)
      #expect(lines.count == 1)
      #expect(lines.first?.clientRandom == random && lines.first?.secret.matches(expected) == true)
    }
  }

  struct Row: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let text: String
    let count: Int
  }

  static let rows = [
    Row(testDescription: "a carriage return", text: good.dropLast() + "\r\n", count: 1),
    Row(testDescription: "no end of line", text: String(good.dropLast()), count: 0),
    Row(testDescription: "a comment and an empty line before it", text: "# made by nobody\n\n" + good, count: 1),
    Row(testDescription: "another label", text: "SERVER_TRAFFIC_SECRET_0 \(randomDigits) \(secretDigits)\n", count: 0),
    Row(
      testDescription: "a label that begins the same",
      text: "SERVER_HANDSHAKE_TRAFFIC_SECRETS \(randomDigits) \(secretDigits)\n",
      count: 0),
    Row(testDescription: "something before the label", text: " " + good, count: 1),
    Row(testDescription: "a line that somebody left in its label", text: "SERVER_HANDSERVER_HANDS" + good, count: 1),
    Row(testDescription: "a line that somebody left in its label's end", text: good.prefix(26) + good, count: 1),
    Row(testDescription: "a line that somebody left in its random", text: good.prefix(70) + good, count: 1),
    Row(testDescription: "a line that somebody left in its secret", text: good.prefix(190) + good, count: 1),
    Row(testDescription: "two lines without an end between", text: good.dropLast() + good, count: 1),
    Row(testDescription: "something behind the secret", text: good.dropLast() + " \n", count: 0),
    Row(testDescription: "two spaces", text: good.replacing("SECRET ", with: "SECRET  "), count: 0),
    Row(testDescription: "a digit that is none", text: good.replacing("a1", with: "g1"), count: 0),
    Row(testDescription: "a short random", text: "SERVER_HANDSHAKE_TRAFFIC_SECRET a1 \(secretDigits)\n", count: 0),
    Row(
      testDescription: "a secret of 40 bytes",
      text: "SERVER_HANDSHAKE_TRAFFIC_SECRET \(randomDigits) \(secretDigits.prefix(80))\n",
      count: 0),
    Row(
      testDescription: "a secret of 32 bytes",
      text: "SERVER_HANDSHAKE_TRAFFIC_SECRET \(randomDigits) \(secretDigits.prefix(64))\n",
      count: 1),
    Row(
      testDescription: "a flood without end of line, then a good line",
      text: String(repeating: "S", count: 100_000) + "\n" + good, count: 1),
    Row(
      testDescription: "the label again and again, then a good line",
      text: String(repeating: "SERVER_HANDSHAKE_TRAFFIC_SECRET ", count: 99) + "\n" + good, count: 1),
    Row(testDescription: "zero bytes", text: "\0\0\0\n" + good + "\0", count: 1),
  ]

  @Test("lines with and without a secret", arguments: rows) func reads(_ row: Row) {
    for cut in [1, 33, .max] { #expect(read(row.text, cut: cut).count == row.count) }
  }

  private func made(_ random: UInt8, _ secret: UInt8) -> KeyLogLine {
    var bytes = [UInt8](repeating: secret, count: 32)
    return KeyLogLine(clientRandom: [UInt8](repeating: random, count: 32), secret: SecretBytes(taking: &bytes))
  }
  private func random(_ value: UInt8) -> [UInt8] { [UInt8](repeating: value, count: 32) }

  @Test("a secret is handed out once, to its own random") func taking() {
    var table = KeyLogTable(capacity: 4, lifetime: 10)
    let now = Timestamp(seconds: 100)
    table.insert(made(1, 1), now: now)
    table.insert(made(2, 2), now: now)
    #expect(table.take(random(3), now: now).isEmpty)
    #expect(table.take(random(1), now: now).first?.matches([UInt8](repeating: 1, count: 32)) == true)
    #expect(table.take(random(1), now: now).isEmpty)
    #expect(table.count == 1)
  }

  @Test("a forged line in front does not hide the true one, and a flood of them is bounded") func forged() {
    var table = KeyLogTable()
    let now = Timestamp(seconds: 100)
    for secret in [9, 9, 1] as [UInt8] { table.insert(made(1, secret), now: now) }
    let two = table.take(random(1), now: now)
    #expect(two.count == 2 && two.last?.matches([UInt8](repeating: 1, count: 32)) == true)
    for secret in 0...255 as ClosedRange<UInt8> { table.insert(made(1, secret), now: now) }
    #expect(table.take(random(1), now: now).count == KeyLogTable.candidateLimit)
  }

  @Test("what nobody asks for goes: by age, and by number") func bounds() {
    var table = KeyLogTable(capacity: 3, lifetime: 10)
    for value in 1...5 as ClosedRange<UInt8> { table.insert(made(value, value), now: Timestamp(seconds: 100)) }
    #expect(table.count == 3)
    #expect(table.take(random(2), now: Timestamp(seconds: 100)).isEmpty)
    #expect(table.take(random(3), now: Timestamp(seconds: 109)).count == 1)
    #expect(table.take(random(4), now: Timestamp(seconds: 110)).isEmpty)
    #expect(table.count == 0)
    for round in 0..<100 as Range<Int64> {
      table.insert(made(7, 7), now: Timestamp(seconds: 200 + round))
      #expect(table.take(random(7), now: Timestamp(seconds: 200 + round)).count == 1)
    }
  }
}
